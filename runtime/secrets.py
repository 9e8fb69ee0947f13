"""The data of a Secret: text in base64. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from runtime.objects import SECRETS, Object


def encode_data(values: Mapping[str, str]) -> dict[str, str]:
    """Return texts as `data` of a Secret."""
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}


def secret_object(metadata: Object, type_: str, values: Mapping[str, str]) -> Object:
    """Return a Secret of texts."""
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "type": type_,
        "metadata": metadata,
        "data": encode_data(values),
    }


def decode_value(value: str) -> str:
    """Return the text of one value of `data`; raises ValueError for what is no base64 or no UTF-8."""
    return base64.b64decode(value, validate=True).decode()


def text_of(secret: Object, key: str) -> str:
    """Return one key of a Secret as text, empty when it is missing or no text."""
    try:
        return decode_value((secret.get("data") or {}).get(key) or "")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def decoded(secret: Object) -> dict[str, str]:
    """Return all keys of a Secret as texts."""
    return {key: text_of(secret, key) for key in secret.get("data") or {}}
