"""The fewest acts of a life that still bring about the same finding."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.lives import Outcome, Seed, live

Say = Callable[..., None]


def read(text: str) -> tuple[int, int, frozenset[int] | None]:
    """Return seed, life and the numbers of the acts that are kept, from `SEED:LIFE` or `SEED:LIFE:1,2,5-9`."""
    seed, life, *rest = text.split(":")
    return int(seed), int(life), frozenset(_numbers(rest[0])) if rest else None


def written(numbers: frozenset[int]) -> str:
    """Return numbers as `read` takes them."""
    return ",".join(map(str, sorted(numbers)))


def shrink(seed: Seed, rule: str, say: Say) -> int:
    """Say which acts are needed for a finding, and the command that repeats it; return the exit status."""
    whole = live(seed)
    rule = rule or next((finding.rule for finding in whole.findings), "")
    if not _has(whole, rule):
        say(f"{seed} has no finding {rule!r}")
        return 1
    kept = fewest(frozenset(range(whole.acts)), lambda acts: _has(live(seed, acts=acts), rule))
    outcome = live(seed, acts=kept)
    say(*outcome.done, *(str(finding) for finding in outcome.findings if finding.rule == rule))
    say(f"{len(kept)} of {whole.acts} acts: {whole.seed.command(written(kept))}")
    return 0


def fewest(numbers: frozenset[int], shows: Callable[[frozenset[int]], bool]) -> frozenset[int]:
    """Return a part of the numbers that still shows it and of which none can go (Zeller's ddmin, without complements).

    What is tried first is to leave out much at once: half of them, then a quarter, at last each alone.
    """
    kept = sorted(numbers)
    size = max(1, len(kept) // 2)
    while size:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if shows(frozenset(fewer)):
                kept = fewer
            else:
                at += size
        size //= 2
    return frozenset(kept)


def _has(outcome: Outcome, rule: str) -> bool:
    return any(finding.rule == rule for finding in outcome.findings)


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
