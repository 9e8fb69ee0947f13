"""Names and texts as SQL takes them. Pure."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote an identifier (manual, "Lexical Structure"): safe whatever it holds but a zero byte."""
    if "\0" in name:
        raise ValueError("a name of PostgreSQL holds no zero byte")
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string constant; backslashes go as an E'' string, whatever standard_conforming_strings says."""
    if "\0" in text:
        raise ValueError("a text of PostgreSQL holds no zero byte")
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"
