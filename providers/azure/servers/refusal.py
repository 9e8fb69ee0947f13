"""Which servers a ProviderConfig allows, and which Azure would refuse at once. Pure."""

from __future__ import annotations

from providers.azure.config import Limits
from providers.azure.models import FlexibleServerParameters
from providers.azure.servers.facts import is_a_size, next_size


def refusal(limits: Limits, spec: FlexibleServerParameters) -> tuple[str, str] | None:
    """Return reason and sentence when a server is outside of what is allowed or possible."""
    ask = "; ask the platform team"
    groups = limits.resource_groups
    if groups is not None and spec.resource_group_name.lower() not in {name.lower() for name in groups}:
        offered = ", ".join(groups) or "none"
        return "LimitReached", f"resource group {spec.resource_group_name} is not offered here, only {offered}{ask}"
    if limits.classes is not None and spec.sku_name not in limits.classes:
        offered = ", ".join(limits.classes) or "none"
        return "LimitReached", f"SKU {spec.sku_name} is not offered here, only {offered}{ask}"
    size = spec.storage_size_gb
    if limits.storage_gib is not None and (size or 0) > limits.storage_gib:
        return "LimitReached", f"at most {limits.storage_gib} GiB of storage are allowed for a server, not {size}{ask}"
    is_public = spec.delegated_subnet_resource_id is None and spec.public_network_access != "Disabled"
    if is_public and not limits.public_access:
        return "LimitReached", (
            "an address on the internet is not allowed here; set delegatedSubnetResourceId, or publicNetworkAccess to"
            f" Disabled{ask}"
        )
    if size is not None and not is_a_size(size, spec.storage_type):
        return "InvalidValue", f"Azure makes no storage of {size} GiB; write {next_size(size)}, the next larger size"
    return None
