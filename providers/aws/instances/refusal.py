"""Which instances a ProviderConfig allows. Pure."""

from __future__ import annotations

from providers.aws.config import ProviderConfigSpec
from providers.aws.models import RDSInstanceParameters
from providers.external.config import limit_refusal


def refusal(spec: RDSInstanceParameters, config: ProviderConfigSpec) -> tuple[str, str] | None:
    """Return reason and sentence when an instance is outside of what is allowed."""
    return limit_refusal(
        config.limits,
        instance_class=spec.db_instance_class,
        storage_gib=max(spec.allocated_storage, spec.max_allocated_storage or 0),
        publicly_accessible=bool(spec.publicly_accessible),
    )
