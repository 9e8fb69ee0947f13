"""SCRAM-SHA-256 as PostgreSQL uses it: the verifier that is stored, and the client's side of a login. Pure.

Sources: RFC 5802 and RFC 7677; the manual's "SASL Authentication" and the form of `pg_authid.rolpassword`. Passwords
are printable ASCII here, for which SASLprep (RFC 4013) changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass

ITERATIONS = 4096
_MOST_ITERATIONS = 1_000_000  # a server that asks for more wants to stop the client, not to check a password


class ScramError(ValueError):
    """The other side's message is not SCRAM-SHA-256 as it must be."""


def _keyed(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)


def verifier(password: str, salt: bytes) -> str:
    """Return what the server stores instead of the password: of no use to log in with."""
    salted = _salted(password, salt, ITERATIONS)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server = _keyed(salted, b"Server Key")
    parts = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{parts[0]}${parts[1]}:{parts[2]}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One login: `nonce` is fresh random text of the client."""

    password: str
    nonce: str

    @property
    def first(self) -> bytes:
        """The client's first message, without channel binding."""
        return b"n,," + self._bare

    @property
    def _bare(self) -> bytes:
        return f"n=,r={self.nonce}".encode()

    def answer(self, server_first: bytes) -> tuple[bytes, bytes]:
        """Return the client's final message and the signature that a server which knows the password shows.

        Raises:
            ScramError: The server's message is malformed, repeats no nonce of ours, or asks for too much work.
        """
        fields = dict(part.split("=", 1) for part in server_first.decode("ascii").split(",") if "=" in part)
        if not fields.get("r", "").startswith(self.nonce) or "s" not in fields or not fields.get("i", "").isdigit():
            raise ScramError("the server's SCRAM message is malformed")
        iterations = int(fields["i"])
        if not 1 <= iterations <= _MOST_ITERATIONS:
            raise ScramError("the server asks for an absurd number of iterations")
        salted = _salted(self.password, base64.b64decode(fields["s"]), iterations)
        client_key = _keyed(salted, b"Client Key")
        final = f"c=biws,r={fields['r']}".encode()
        signed = b",".join((self._bare, server_first, final))
        signature = _keyed(hashlib.sha256(client_key).digest(), signed)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        expected = _keyed(_keyed(salted, b"Server Key"), signed)
        return final + b",p=" + base64.b64encode(proof), b"v=" + base64.b64encode(expected)
