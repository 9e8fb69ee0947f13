"""How many databases may be destroyed or interrupted within an hour, of one namespace and of all. Pure.

A tenant's deletions are bounded by its own share, so that others keep theirs; a mistake that reaches many
namespaces at once (a Composition, a script, a tool that prunes) is bounded by the ProviderConfig's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

_FEWEST = 3
_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Share:
    """How many within an hour: `namespace` of one namespace, `all` of all that use the ProviderConfig."""

    namespace: int
    all: int


def share_of(limit: int | None, present: Counter[str], namespace: str) -> Share:
    """Return how many may go; `limit` is the ProviderConfig's own, `present` counts databases by namespace.

    Without a limit one namespace may lose 3, or 2% of its databases where that is more, and all namespaces together
    twice what that rule gives for all databases. Of a limit that is set one namespace may use half, or all of it where
    no other namespace has a database.
    """
    if limit is None:
        return Share(_rule(present[namespace]), 2 * _rule(present.total()))
    others = any(name != namespace for name in present)
    return Share(limit - limit // 2 if others else limit, limit)


def _rule(present: int) -> int:
    return max(_FEWEST, int(present * _SHARE))


def fewest_of(limit: int | None) -> int:
    """Return below how many within the hour no share can be used up, however many databases there are."""
    return _FEWEST if limit is None else limit - limit // 2


def refusal(done: Counter[str], share: Share, namespace: str, lift: str) -> str:
    """Return why no more may go, empty when one may; `done` counts what went within the hour, by namespace.

    `lift` is the command that lifts the limit until the end of the hour in which it is typed.
    """
    way = f"to go on sooner: {lift}, which lifts the limit until the end of this hour"
    if done.total() >= share.all:
        return f"{done.total()} databases were taken away or interrupted within an hour, at most {share.all} may; {way}"
    if done[namespace] >= share.namespace:
        return (
            f"{done[namespace]} databases of namespace {namespace} were taken away or interrupted within an hour, at"
            f" most {share.namespace} may, so that others have a part of their own; {way}"
        )
    return ""
