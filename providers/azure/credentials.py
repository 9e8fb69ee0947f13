"""As whom the provider speaks to Azure, read from what the ProviderConfig names and from nowhere else. Pure.

Workload identity: "Use Microsoft Entra Workload ID with Azure Kubernetes Service"; the webhook of the cluster sets
the variables. Of AZURE_AUTHORITY_HOST nothing is read: the ProviderConfig's cloud says where tokens come from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from providers.azure.config import Credentials
from runtime.errors import Blocked, Terminal

CLIENT: Final = "AZURE_CLIENT_ID"
TENANT: Final = "AZURE_TENANT_ID"
SECRET: Final = "AZURE_CLIENT_SECRET"  # noqa: S105 - the name of a key, and no secret
TOKEN_FILE: Final = "AZURE_FEDERATED_TOKEN_FILE"  # noqa: S105 - the name of a variable
KEYS: Final = (TENANT, CLIENT, SECRET)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """The token of the Pod's service account, exchanged for one of the application."""

    tenant: str
    client: str
    token_file: str


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """An application with a secret; never printed."""

    tenant: str
    client: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """The identity of the machine; `client` chooses among several, empty for the only one."""

    client: str


Source: TypeAlias = WorkloadIdentity | ClientSecret | ManagedIdentity


def source_of(config: Credentials, secrets: Mapping[str, Mapping[str, str]], environ: Mapping[str, str]) -> Source:
    """Return as whom the provider speaks.

    Raises:
        Blocked: `CredentialsMissing`: a Secret's key, or what the cluster's webhook should have put into the Pod.
        Terminal: `CredentialsForbidden` for a Secret with other keys, `CredentialsInvalid` for a broken value.
    """
    match config.source:
        case "WorkloadIdentity":
            tenant = config.tenant_id or environ.get(TENANT, "")
            client = config.client_id or environ.get(CLIENT, "")
            file = environ.get(TOKEN_FILE, "")
            for value, name in ((file, TOKEN_FILE), (client, CLIENT), (tenant, TENANT)):
                if not value:
                    raise _unset(name)
            return WorkloadIdentity(_checked(tenant, "the tenant"), _checked(client, "the client"), file)
        case "ClientSecret":
            name = "" if config.secret_ref is None else config.secret_ref.name
            return _client_secret(name, secrets.get(name, {}))
        case "ManagedIdentity":
            return ManagedIdentity(_checked(config.client_id, "the client") if config.client_id else "")


def _unset(variable: str) -> Blocked:
    return Blocked(
        "CredentialsMissing",
        f"credentials.source is WorkloadIdentity and the process has no {variable}; annotate its service account with"
        " azure.workload.identity/client-id, label its Pod azure.workload.identity/use=true, and restart it",
    )


def _client_secret(name: str, secret: Mapping[str, str]) -> ClientSecret:
    strange = sorted(set(secret) - set(KEYS))
    if strange:
        raise Terminal("CredentialsForbidden", f"Secret {name} has key {strange[0]}; only {', '.join(KEYS)} are read")
    for key in KEYS:
        if not secret.get(key):
            raise Blocked("CredentialsMissing", f"Secret {name} has no key {key}")
        if re.search(r"[^!-~]", secret[key]):
            raise Terminal(
                "CredentialsInvalid", f"key {key} of Secret {name} holds white space or a line's end; write it without"
            )
    tenant, client = (_checked(secret[key], f"key {key} of Secret {name}") for key in (TENANT, CLIENT))
    return ClientSecret(tenant, client, secret[SECRET])


def _checked(value: str, name: str) -> str:
    if _ID.fullmatch(value) is None:
        raise Terminal("CredentialsInvalid", f"{name} is no id: letters, digits, dots and dashes alone")
    return value
