"""SCRAM verifiers: what PostgreSQL keeps of a password, computed here so that it never sees the password."""

import base64
import hashlib
import hmac
import secrets


def scram_verifier(password: str, *, salt: bytes | None = None, iterations: int = 4096) -> str:
    """Return what PostgreSQL stores for an ASCII password, so that the plain one never reaches a statement log.

    The format is that of `pg_authid.rolpassword`, SCRAM-SHA-256 (RFC 5802 section 3, RFC 7677).
    """
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    encoded = (base64.b64encode(part).decode() for part in (salt, stored_key, server_key))
    salt_text, stored_text, server_text = encoded
    return f"SCRAM-SHA-256${iterations}:{salt_text}${stored_text}:{server_text}"
