"""AWS's ProviderConfig as Python sees it. Pure; a test compares it with its CRD."""

from __future__ import annotations

from typing import Literal

import msgspec

from providers.external.config import AllowedNamespaces, CaReference, InstanceLimits, SecretReference


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


class ProviderConfigSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` of AWS's ProviderConfig: one account in one region, as whom, and for whom."""

    region: str
    account_id: str | None = msgspec.field(name="accountID", default=None)
    endpoint: str | None = None
    credentials: Credentials
    name_prefix: str = msgspec.field(name="namePrefix", default="fl-")
    allowed_namespaces: AllowedNamespaces = msgspec.field(name="allowedNamespaces", default=AllowedNamespaces())
    limits: InstanceLimits = InstanceLimits()
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
