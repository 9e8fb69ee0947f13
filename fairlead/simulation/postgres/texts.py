"""Names and texts as SQL has them, back to what they mean. Pure."""

from __future__ import annotations


def name_in(text: str) -> str:
    """Return the name that an identifier means, cut to what a name may have; words without quotes are lower case."""
    quoted = text.startswith('"')
    name = text[1:-1].replace('""', '"') if quoted else text
    if not quoted and name not in {"CURRENT_USER", "PUBLIC"}:
        name = name.lower()
    return name.encode()[:63].decode(errors="ignore")


def plain(text: str) -> str:
    """Return what a string constant means."""
    body = text.removeprefix("E")[1:-1].replace("''", "'")
    return body.replace("\\\\", "\\") if text.startswith("E") else body
