"""Google Cloud's ProviderConfig as Python sees it, and the limits that only it has. Pure.

A test compares it with its CRD.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from providers.external.config import AllowedNamespaces, SecretReference
from providers.external.config import Limits as CommonLimits


class Credentials(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """As whom the provider speaks to Google; there is no default chain.

    MetadataServer: the service account that the node's metadata server gives the Pod (workload identity of GKE).
    Federation: an `external_account` configuration in a Secret (workload identity federation). ServiceAccountKey: a
    service account's JSON key in a Secret.
    """

    source: Literal["MetadataServer", "Federation", "ServiceAccountKey"]
    secret_ref: SecretReference | None = None


class Limits(CommonLimits, frozen=True, kw_only=True, rename="camel"):
    """Bounds checked before an instance is made, grown or destroyed; None is no bound."""

    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    tiers: tuple[str, ...] | None = None
    public_access: bool = False


class ProviderConfigSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`spec` of the ProviderConfig: one project, as whom, and for whom."""

    project: str
    endpoint: str | None = None
    credentials: Credentials
    name_prefix: str = "fl-"
    allowed_namespaces: AllowedNamespaces = AllowedNamespaces()
    limits: Limits = Limits()
    login_check: Literal["Auto", "Required", "Off"] = "Auto"
    allow_adoption: bool = False


def secrets_of(config: ProviderConfigSpec) -> tuple[str, ...]:
    """Name the Secrets of the provider's own namespace that a ProviderConfig needs."""
    reference = config.credentials.secret_ref
    return () if reference is None else (reference.name,)


def endpoint_of(config: ProviderConfigSpec) -> str:
    """Return the URL that is asked instead of Google's own endpoint, empty for none."""
    return config.endpoint or ""


def refusal(limits: Limits, *, tier: str, storage_gib: int, networks: tuple[str, ...] | None) -> tuple[str, str] | None:
    """Return reason and sentence when an instance is outside of what the ProviderConfig allows.

    `storage_gib` is the largest that it may become by itself, or what it has at least; `networks` are those of the
    internet that may reach it, None for no address there.
    """
    if limits.tiers is not None and tier not in limits.tiers:
        offered = ", ".join(limits.tiers) or "none"
        return "LimitReached", f"tier {tier} is not offered here, only {offered}; ask the platform team"
    if limits.storage_gib is not None and storage_gib > limits.storage_gib:
        return "LimitReached", (
            f"at most {limits.storage_gib} GiB of storage are allowed for an instance, not {storage_gib}; ask the"
            " platform team, or set storageAutoResizeLimit"
        )
    if networks and not limits.public_access:
        return "LimitReached", "networks of the internet are not allowed here; ask the platform team"
    return None
