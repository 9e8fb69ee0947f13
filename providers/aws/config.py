"""AWS's ProviderConfig as Python sees it, and the limits that only AWS has. Pure; a test compares it with its CRD."""

from __future__ import annotations

from typing import Literal

import msgspec

from providers.external.config import AllowedNamespaces, CaReference, SecretReference
from providers.external.config import Limits as CommonLimits


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """One role of a chain: each is assumed with the credentials that the one before it gave."""

    role_arn: str = msgspec.field(name="roleARN")
    external_id: str | None = msgspec.field(name="externalID", default=None)
    session_name: str = msgspec.field(name="sessionName", default="fairlead-provider-aws")


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Where the first credentials come from, and the roles assumed with them; there is no default chain."""

    source: Literal["Secret", "WebIdentity", "PodIdentity"]
    secret_ref: SecretReference | None = msgspec.field(name="secretRef", default=None)
    role_arn: str | None = msgspec.field(name="roleARN", default=None)
    assume_role_chain: tuple[Role, ...] = msgspec.field(name="assumeRoleChain", default=())


class Limits(CommonLimits, frozen=True, kw_only=True, rename="camel"):
    """Bounds checked before an instance is made, grown or destroyed; None is no bound."""

    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    classes: tuple[str, ...] | None = None
    public_access: bool = False


class ProviderConfigSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` of AWS's ProviderConfig: one account in one region, as whom, and for whom."""

    region: str
    account_id: str | None = msgspec.field(name="accountID", default=None)
    endpoint: str | None = None
    credentials: Credentials
    name_prefix: str = msgspec.field(name="namePrefix", default="fl-")
    allowed_namespaces: AllowedNamespaces = msgspec.field(name="allowedNamespaces", default=AllowedNamespaces())
    limits: Limits = Limits()
    ca_bundle_ref: CaReference | None = msgspec.field(name="caBundleRef", default=None)
    login_check: Literal["Auto", "Required", "Off"] = msgspec.field(name="loginCheck", default="Auto")
    logins: Literal["Administrator", "Alternating"] = "Administrator"
    allow_adoption: bool = msgspec.field(name="allowAdoption", default=False)


def secrets_of(config: ProviderConfigSpec) -> tuple[str, ...]:
    """Name the Secrets of the provider's own namespace that a ProviderConfig needs."""
    references = (config.credentials.secret_ref, config.ca_bundle_ref)
    return tuple(reference.name for reference in references if reference is not None)


def endpoint_of(config: ProviderConfigSpec) -> str:
    """Return the URL that is asked instead of AWS's own endpoints, empty for none."""
    return config.endpoint or ""


def refusal(
    limits: Limits, *, instance_class: str, storage_gib: int | None, publicly_accessible: bool
) -> tuple[str, str] | None:
    """Return reason and sentence when an instance is outside of what the ProviderConfig allows.

    `storage_gib` is the largest that the instance may become, what RDS grows by itself included; None is unknown.
    """
    if limits.classes is not None and instance_class not in limits.classes:
        offered = ", ".join(limits.classes) or "none"
        return "LimitReached", f"class {instance_class} is not offered here, only {offered}; ask the platform team"
    if limits.storage_gib is not None and (storage_gib or 0) > limits.storage_gib:
        return "LimitReached", (
            f"at most {limits.storage_gib} GiB of storage are allowed for an instance, not {storage_gib};"
            " ask the platform team"
        )
    if publicly_accessible and not limits.public_access:
        return "LimitReached", "an address on the internet is not allowed here; ask the platform team"
    return None
