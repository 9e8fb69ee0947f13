"""The authority by which servers are verified: PEM certificates under a key of a Secret, or in a spec. Pure."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from providers.external.config import CaReference
from runtime.errors import Blocked, Terminal


def authority_in(secrets: Mapping[str, Mapping[str, str]], reference: CaReference, *, remedy: str) -> str:
    """Return the certificates under a key of a Secret; `remedy` says what to put there.

    Raises:
        Blocked: `CredentialsMissing`: the Secret has no such key.
        Terminal: `CredentialsInvalid`: it holds no certificate.
    """
    place = f"key {reference.key} of Secret {reference.name}"
    pem = secrets[reference.name].get(reference.key, "")
    if not pem:
        raise Blocked("CredentialsMissing", f"there is no {place}")
    return certificates(pem, place, remedy=remedy)


def certificates(pem: str, place: str, *, remedy: str) -> str:
    """Return a PEM text that holds certificates; an empty one stands for the system's roots.

    Raises:
        Terminal: `CredentialsInvalid`: it holds none; `place` says where it was, `remedy` what to put there.
    """
    try:
        ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise Terminal("CredentialsInvalid", f"{place} holds no PEM certificate; {remedy}") from None
    return pem
