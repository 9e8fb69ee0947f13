"""Azure's ProviderConfig as Python sees it, and the limits that only Azure has. Pure; a test compares both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from providers.external.config import AllowedNamespaces, CaReference, SecretReference
from providers.external.config import Limits as CommonLimits
from runtime.errors import Terminal

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """As whom the provider speaks to Azure; there is no default chain."""

    source: Literal["WorkloadIdentity", "ClientSecret", "ManagedIdentity"]
    client_id: str | None = msgspec.field(name="clientID", default=None)
    tenant_id: str | None = msgspec.field(name="tenantID", default=None)
    secret_ref: SecretReference | None = msgspec.field(name="secretRef", default=None)


class Limits(CommonLimits, frozen=True, kw_only=True, rename="camel"):
    """Bounds checked before a server is made, grown or destroyed; None is no bound."""

    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    classes: tuple[str, ...] | None = None
    resource_groups: tuple[str, ...] | None = None
    public_access: bool = False


class ProviderConfigSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` of Azure's ProviderConfig: one subscription in one cloud, as whom, and for whom."""

    subscription_id: str = msgspec.field(name="subscriptionID")
    cloud: Literal["AzureCloud", "AzureChinaCloud", "AzureUSGovernment"] = "AzureCloud"
    endpoint: str | None = None
    authority_host: str | None = msgspec.field(name="authorityHost", default=None)
    credentials: Credentials
    name_prefix: str = msgspec.field(name="namePrefix", default="fl-")
    allowed_namespaces: AllowedNamespaces = msgspec.field(name="allowedNamespaces", default=AllowedNamespaces())
    limits: Limits = Limits()
    ca_bundle_ref: CaReference | None = msgspec.field(name="caBundleRef", default=None)
    login_check: Literal["Auto", "Required", "Off"] = msgspec.field(name="loginCheck", default="Auto")
    logins: Literal["Administrator", "Alternating"] = "Administrator"
    allow_adoption: bool = msgspec.field(name="allowAdoption", default=False)


@dataclass(frozen=True, slots=True)
class CloudHosts:
    """Where one of Azure's clouds answers: Azure Resource Manager, Entra's tokens, and the scope of a token."""

    resource_manager: str
    authority: str
    scope: str


# "Azure China developer guide" and "Compare Azure Government and global Azure", the tables of endpoints.
CLOUDS = {
    "AzureCloud": CloudHosts(
        "https://management.azure.com",
        "https://login.microsoftonline.com",
        "https://management.azure.com/.default",
    ),
    "AzureChinaCloud": CloudHosts(
        "https://management.chinacloudapi.cn",
        "https://login.chinacloudapi.cn",
        "https://management.chinacloudapi.cn/.default",
    ),
    "AzureUSGovernment": CloudHosts(
        "https://management.usgovcloudapi.net",
        "https://login.microsoftonline.us",
        "https://management.usgovcloudapi.net/.default",
    ),
}
_MICROSOFTS = {urlsplit(url).hostname for known in CLOUDS.values() for url in (known.resource_manager, known.authority)}


def secrets_of(config: ProviderConfigSpec) -> tuple[str, ...]:
    """Name the Secrets of the provider's own namespace that a ProviderConfig needs."""
    references = (config.credentials.secret_ref, config.ca_bundle_ref)
    return tuple(reference.name for reference in references if reference is not None)


def endpoint_of(config: ProviderConfigSpec) -> str:
    """Return the URL that is asked instead of Azure's own endpoints, empty for none."""
    return config.endpoint or ""


def hosts_of(config: ProviderConfigSpec) -> CloudHosts:
    """Return where a ProviderConfig's cloud answers.

    Raises:
        Terminal: `EndpointNotAllowed`: the endpoint is plain http to another machine, or a token would be asked for at
            a host that is neither the cloud's own nor the endpoint's.
    """
    cloud = CLOUDS[config.cloud]
    endpoint = (config.endpoint or cloud.resource_manager).rstrip("/")
    if not is_safe(endpoint):
        text = f"endpoint {endpoint} is plain http to another machine; write https"
        raise Terminal("EndpointNotAllowed", text)
    authority = (config.authority_host or cloud.authority).rstrip("/")
    own = {urlsplit(known.authority).hostname for known in CLOUDS.values()}
    of_endpoint = {urlsplit(endpoint).hostname} if config.endpoint else set()
    if urlsplit(authority).scheme != "https" or urlsplit(authority).hostname not in own | of_endpoint:
        text = f"authorityHost {authority} is neither one of Microsoft's nor on the host of endpoint; nothing was sent"
        raise Terminal("EndpointNotAllowed", text)
    return CloudHosts(endpoint, authority, cloud.scope)


def ca_of(url: str, ca: str) -> str:
    """Return the PEM by which whoever answers at a URL is verified: `ca`, or empty for a host of Microsoft's own.

    Those have certificates of public authorities, which the system's roots hold.
    """
    return "" if urlsplit(url).hostname in _MICROSOFTS else ca


def is_safe(url: str) -> bool:
    """Return whether a token may be sent to a URL as far as its scheme says: https, or plain http to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def is_of(url: str, endpoint: str) -> bool:
    """Return whether a URL leads to an endpoint: the same scheme, host and port, and no login in it."""
    try:
        parts, own = urlsplit(url), urlsplit(endpoint)
        same_port = (parts.port or _port(parts.scheme)) == (own.port or _port(own.scheme))
    except ValueError:
        return False
    same_host = (parts.hostname or "").lower() == (own.hostname or "").lower()
    return parts.scheme == own.scheme and same_host and same_port and "@" not in parts.netloc


def _port(scheme: str) -> int:
    return {"https": 443, "http": 80}.get(scheme, 0)
