"""What each condition reason means and what to do about it, out of the page for people. Pure.

The page is `docs/troubleshooting.md`; each row of its tables is a reason, what it means, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from apis.reasons import next_actor
from composer.render.errors import near
from fairlead.exits import CommandError, Exit
from fairlead.layout import fitted

_ROW = re.compile(r"^\| `(?P<reason>[A-Za-z]+)` \| (?P<means>.+?) \| (?P<cure>.+?) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason for people: what it means, what to do, and whose move it is (empty when nobody need act)."""

    reason: str
    means: str
    cure: str
    move: str

    def text(self, columns: int = 100) -> str:
        """Say it in lines that fit into columns."""
        said = {"means": self.means, "to do": self.cure, "next move": self.move}
        labelled = (f"{name}: {text}" for name, text in said.items() if text)
        lines = (part for line in labelled for part in fitted(line, columns, begin="  ", then="    "))
        return "\n".join((self.reason, *lines))


def explanations(page: str) -> Mapping[str, Explanation]:
    """Read all explanations off the page, by reason."""
    rows = (_of(match) for match in _ROW.finditer(page))
    return {row.reason: row for row in rows}


def _of(row: re.Match[str]) -> Explanation:
    means, cure = (_LINK.sub(r"docs/\1", row[column]).replace("`", "") for column in ("means", "cure"))
    return Explanation(row["reason"], means, cure, next_actor(row["reason"]))


def explain(page: str, reason: str) -> Explanation:
    """Return the explanation of a reason, in whatever letter case it was typed.

    Raises CommandError that names near reasons.
    """
    known = {name.lower(): explanation for name, explanation in explanations(page).items()}
    if reason.lower() not in known:
        close = near(reason, [explanation.reason for explanation in known.values()])
        more = close or "; `fairlead explain` lists them all"
        raise CommandError(f"{reason!r} is no reason of a condition{more}", exit_code=Exit.USAGE)
    return known[reason.lower()]
