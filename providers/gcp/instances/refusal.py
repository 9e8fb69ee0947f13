"""Which instances a ProviderConfig allows, and which a published login would open. Pure."""

from __future__ import annotations

from providers.gcp import config as limits
from providers.gcp.config import ProviderConfigSpec
from providers.gcp.instances.states import what_a_password_lacks
from providers.gcp.models import CloudSQLInstanceParameters


def refusal(spec: CloudSQLInstanceParameters, config: ProviderConfigSpec) -> tuple[str, str] | None:
    """Return reason and sentence where an instance is not allowed, or no published login would open it."""
    lacks = what_a_password_lacks(spec.ssl_mode, spec.connector_enforcement)
    if lacks:
        return "InvalidValue", lacks
    grows = spec.storage_auto_resize is not False and bool(spec.storage_auto_resize_limit)
    largest = max(spec.data_disk_size_gb or 10, (spec.storage_auto_resize_limit or 0) if grows else 0)
    networks = spec.authorized_networks if spec.ipv4_enabled is not False else None
    return limits.refusal(config.limits, tier=spec.tier, storage_gib=largest, networks=networks)
