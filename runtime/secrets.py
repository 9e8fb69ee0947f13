"""The data of a Secret: text in base64. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping


def encode_data(values: Mapping[str, str]) -> dict[str, str]:
    """Return texts as `data` of a Secret."""
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}


def decode_value(value: str) -> str:
    """Return the text of one value of `data`; raises ValueError for what is no base64 or no UTF-8."""
    return base64.b64decode(value, validate=True).decode()
