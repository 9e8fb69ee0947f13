"""Entra's tokens by azure-identity, one class for each source. Impure: it calls the SDK.

The classes read projected tokens anew whenever they ask for another one, and keep a token until shortly before its end.
"""

from __future__ import annotations

from typing import Any, assert_never

from azure.core.credentials_async import AsyncTokenCredential
from azure.identity.aio import ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential

from providers.azure.config import CloudHosts
from providers.azure.credentials import ClientSecret, ManagedIdentity, Source, WorkloadIdentity
from providers.azure.transport import SECONDS, NewTransport, Transport


def credential_of(
    source: Source, hosts: CloudHosts, ca: str = "", *, transport: NewTransport = Transport
) -> AsyncTokenCredential:
    """Return what hands out tokens, without retries of its own; it asks for none yet.

    `ca` is the PEM by which the authority of tokens is verified, empty for the system's roots.
    """
    options: dict[str, Any] = {"retry_total": 0, "logging_enable": False, **SECONDS}
    match source:
        case WorkloadIdentity(tenant, client, token_file):
            return WorkloadIdentityCredential(
                tenant_id=tenant,
                client_id=client,
                token_file_path=token_file,
                authority=hosts.authority,
                transport=transport(ca),
                **options,
            )
        case ClientSecret(tenant, client, secret):
            return ClientSecretCredential(
                tenant, client, secret, authority=hosts.authority, transport=transport(ca), **options
            )
        case ManagedIdentity(client):
            return ManagedIdentityCredential(client_id=client or None, **options)
        case never:
            assert_never(never)
