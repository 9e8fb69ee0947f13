"""Entra's tokens by azure-identity, one class for each source. Impure: it calls the SDK.

The classes read projected tokens anew whenever they ask for another one, and keep a token until shortly before its end.
"""

from __future__ import annotations

from typing import Any, assert_never

from azure.core.credentials_async import AsyncTokenCredential
from azure.identity.aio import ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential

from providers.azure.config import CloudHosts
from providers.azure.credentials import ClientSecret, ManagedIdentity, Source, WorkloadIdentity

_CONNECT_SECONDS = 5
_READ_SECONDS = 15


def credential_of(source: Source, hosts: CloudHosts) -> AsyncTokenCredential:
    """Return what hands out tokens, without retries of its own; it asks for none yet."""
    options: dict[str, Any] = {
        "retry_total": 0,
        "connection_timeout": _CONNECT_SECONDS,
        "read_timeout": _READ_SECONDS,
        "logging_enable": False,
    }
    match source:
        case WorkloadIdentity(tenant, client, token_file):
            return WorkloadIdentityCredential(
                tenant_id=tenant, client_id=client, token_file_path=token_file, authority=hosts.authority, **options
            )
        case ClientSecret(tenant, client, secret):
            return ClientSecretCredential(tenant, client, secret, authority=hosts.authority, **options)
        case ManagedIdentity(client):
            return ManagedIdentityCredential(client_id=client or None, **options)
        case never:
            assert_never(never)
