"""How plans are shown, alike ones together: as text, as Markdown; and on what a pipeline fails. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from fairlead.exits import Exit, worst
from fairlead.plan_diff import Change, ClaimPlan, summary

Failure: TypeAlias = Literal["restart", "replace", "consent"]
_OF_EACH: Final = "of each"
_NAME: Final = "NAME"
_MOST_NAMED: Final = 3
_FENCE: Final = re.compile("`{3,}")


def grouped(plans: Iterable[ClaimPlan]) -> list[tuple[tuple[str, ...], ClaimPlan]]:
    """Return plans that differ in names alone together: the claims, and the plan of one of them or of each."""
    groups: dict[bytes, list[ClaimPlan]] = {}
    for plan in plans:
        groups.setdefault(msgspec.json.encode(_of_each(plan)), []).append(plan)
    return [
        (tuple(plan.claim for plan in group), group[0] if len(group) == 1 else _of_each(group[0]))
        for group in groups.values()
    ]


def _of_each(plan: ClaimPlan) -> ClaimPlan:
    """Return a plan without the names of its claim and of its children."""
    changes = tuple(_unnamed(change, plan.claim.rpartition("/")[2]) for change in plan.changes)
    return msgspec.structs.replace(plan, claim="", changes=changes)


def _unnamed(change: Change, claim: str) -> Change:
    def without(text: str) -> str:
        for name in filter(None, (change.name, claim)):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _NAME, text)
        return text

    cloud = tuple(msgspec.structs.replace(field, why=without(field.why)) for field in change.cloud)
    name = _OF_EACH if change.name else ""
    return msgspec.structs.replace(change, name=name, why=without(change.why), cloud=cloud)


def text_of(plans: Sequence[ClaimPlan]) -> Iterator[str]:
    """Yield the lines of all plans, alike ones once, and the counts."""
    for claims, plan in grouped(plans):
        if len(claims) == 1:
            yield from plan.lines()
            continue
        named = ", ".join(claims[:_MOST_NAMED])
        more = f" and {len(claims) - _MOST_NAMED} more" if len(claims) > _MOST_NAMED else ""
        end = "" if plan.changes else ": no change"
        yield f"{len(claims)} claims by {plan.composition or 'no Composition'}{end}: {named}{more}"
        for change in plan.changes:
            yield from change.lines()
    yield summary(plans)


def markdown_of(plans: Sequence[ClaimPlan], remarks: Iterable[str]) -> Iterator[str]:
    """Yield the plans as Markdown: the counts as its title, all else as one block of text that nothing in it ends."""
    lines = [*list(text_of(plans))[:-1], *remarks]
    longest = max((len(fence) for line in lines for fence in _FENCE.findall(line)), default=2)
    yield f"### fairlead plan: {summary(plans)}"
    if lines:
        yield from ("", "`" * (longest + 1) + "text", *lines, "`" * (longest + 1))


def exit_of(plans: Iterable[ClaimPlan], fail_on: Iterable[Failure] = ()) -> Exit:
    """Return the exit status: of the worst change; with `fail_on`, 4 where one is of that, 0 for other differences."""
    changes = [change for plan in plans for change in plan.changes]
    status = worst(change.exit_code for change in changes)
    failing = frozenset(fail_on)
    if not failing or status not in (Exit.DIFFERENCES, Exit.DESTROYS, Exit.REFUSED):
        return status
    return Exit.DESTROYS if any(failing & _failures(change) for change in changes) else Exit.DONE


def _failures(change: Change) -> frozenset[Failure]:
    failures: set[Failure] = set()
    effects = {field.effect for field in change.cloud}
    if any(field.interrupts for field in change.cloud):
        failures.add("restart")
    if change.verb in ("replace", "delete") or "loses data" in effects:
        failures.add("replace")
    if change.verb == "hold" or "waits for consent" in effects:
        failures.add("consent")
    return frozenset(failures)
