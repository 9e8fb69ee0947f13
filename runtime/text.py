"""Text of others made fit for a message and for a terminal. Pure.

Sources: ECMA-48 (control functions: C0, C1, escape sequences); Unicode Standard Annex 9, section 2 (bidirectional
formatting characters).
"""

from __future__ import annotations

import re

# C0 with DEL, C1, the marks and controls of writing direction, and halves of UTF-16 pairs, which no UTF-8 holds.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BLANKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")


def readable(text: str, limit: int | None = None, *, lines: bool = False) -> str:
    """Return a text without what a terminal would obey or a reader be misled by; cut to `limit` characters.

    Breaks and tabs become one blank each run; with `lines` line feeds and tabs stay.
    """
    if not text.isprintable():
        if lines:
            text = "".join(part if part in ("\n", "\t") else readable(part) for part in re.split(r"([\n\t])", text))
        else:
            text = _UNFIT.sub("", _BLANKS.sub(" ", text))
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def escaped(document: str) -> str:
    """Return a JSON document in which what `readable` would drop is written as JSON escapes: the same data."""
    return _UNFIT.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", document)
