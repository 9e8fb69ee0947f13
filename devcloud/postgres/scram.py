"""SCRAM: the verifiers that PostgreSQL keeps, and the server's side of a login by them.

Computed here, so that a server never sees a password. As in PostgreSQL there is a single verifier for a role.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Self

_SALT_BYTES = 16
_ITERATIONS = 4096  # PostgreSQL's scram_iterations


class ScramError(Exception):
    """The client spoke no SCRAM-SHA-256, or did not prove a password."""


def scram_verifier(password: str) -> str:
    """Return what PostgreSQL stores for an ASCII password, so that the plain one never reaches a statement log.

    The format is that of `pg_authid.rolpassword`, SCRAM-SHA-256 (RFC 5802 section 3, RFC 7677).
    """
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    encoded = (base64.b64encode(part).decode() for part in (salt, stored_key, server_key))
    salt_text, stored_text, server_text = encoded
    return f"SCRAM-SHA-256${_ITERATIONS}:{salt_text}${stored_text}:{server_text}"


@dataclass(frozen=True, slots=True)
class Verifier:
    """What proves one password, without revealing it."""

    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read PostgreSQL's form of a verifier; None when it is of another kind."""
        scheme, _, rest = text.partition("$")
        if scheme != "SCRAM-SHA-256":
            return None
        head, _, keys = rest.partition("$")
        iterations, _, salt = head.partition(":")
        stored, _, server = keys.partition(":")
        return cls(int(iterations), *(base64.b64decode(part) for part in (salt, stored, server)))

    @classmethod
    def of_nobody(cls) -> Self:
        """Return a verifier that no password proves: an unknown user is refused as late as a known one."""
        return cls(_ITERATIONS, secrets.token_bytes(_SALT_BYTES), b"", b"")

    def is_proven(self, proof: bytes, message: bytes) -> bool:
        """Return whether a client's proof of a dialogue comes from this password (RFC 5802 section 3)."""
        signature = hmac.digest(self.stored_key, message, "sha256")
        if len(proof) != len(signature):
            return False
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)


class ServerExchange:
    """The server's side of one login (RFC 5802 section 5), without channel binding."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._nonce = secrets.token_urlsafe(18)
        self._header = ""
        self._so_far = ""

    def challenge(self, client_first: str) -> str:
        """Answer the client's first message.

        Raises:
            ScramError: The message is malformed, or asks for channel binding.
        """
        flag, _, rest = client_first.partition(",")
        identity, _, bare = rest.partition(",")
        nonce = _attribute("r", bare)
        if flag not in {"n", "y"} or not nonce:
            raise ScramError
        self._header = f"{flag},{identity},"
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._so_far = f"{bare},{server_first}"
        return server_first

    def verdict(self, client_final: str) -> str:
        """Answer the client's proof with ours.

        Raises:
            ScramError: The password is not proven, or the message does not follow from the first.
        """
        without_proof, _, _ = client_final.rpartition(",p=")
        binding, nonce = _attribute("c", client_final), _attribute("r", client_final)
        if binding != base64.b64encode(self._header.encode()).decode() or nonce != self._nonce:
            raise ScramError
        message = f"{self._so_far},{without_proof}".encode()
        try:
            proof = base64.b64decode(_attribute("p", client_final), validate=True)
        except binascii.Error as error:
            raise ScramError from error
        if not self._verifier.is_proven(proof, message):
            raise ScramError
        return f"v={base64.b64encode(hmac.digest(self._verifier.server_key, message, 'sha256')).decode()}"


def _attribute(name: str, message: str) -> str:
    values = (part for part in message.split(",") if part.startswith(f"{name}="))
    return next(values, "").removeprefix(f"{name}=")
