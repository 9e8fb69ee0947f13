"""The texts in a Secret. Pure."""

from __future__ import annotations

import base64
import binascii

from runtime.objects import Object


def text_of(secret: Object, key: str) -> str:
    """Decode one key of a Secret, empty when it is missing or no text."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def decoded(secret: Object) -> dict[str, str]:
    """Decode all keys of a Secret."""
    return {key: text_of(secret, key) for key in secret.get("data") or {}}
