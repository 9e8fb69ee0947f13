"""What an edit would do to a claim's children, in words: the composer's own plan, beside what lives now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from apis import names
from apis.identity import connection_secret_name
from apis.teardown import ENDING, Policy
from composer.causes import Cause
from composer.claim.decide import Adopt, Annotate, Apply, Create, Delete, Orphan, Plan, Step
from composer.inventory import Entry
from composer.render import schema
from composer.render.render import Rendered
from composer.render.schema import project
from composer.validation.trials import breaches
from fairlead.exits import Exit, worst
from fairlead.plan_clouds import CloudChange, Clouds, Effect, cloud_changes, cloud_creation
from runtime.objects import Object, key_of, metadata, status_of

Verb: TypeAlias = Literal["create", "update", "replace", "delete", "release", "hold", "wait", "block"]
_SIGNS: Mapping[Verb, str] = {
    "create": "+",
    "update": "~",
    "replace": "±",
    "delete": "-",
    "release": "-",
    "hold": "!",
    "wait": "…",
    "block": "!",
}
_EXITS: Mapping[Verb, Exit] = {
    "create": Exit.DIFFERENCES,
    "update": Exit.DIFFERENCES,
    "replace": Exit.DESTROYS,
    "delete": Exit.DESTROYS,
    "release": Exit.DIFFERENCES,
    "hold": Exit.REFUSED,
    "wait": Exit.DIFFERENCES,
    "block": Exit.INVALID_INPUT,
}
_EFFECTS: Mapping[Effect, Exit] = {
    "loses data": Exit.DESTROYS,
    "waits for consent": Exit.REFUSED,
    "refused": Exit.INVALID_INPUT,
}
SCHEMA_VERSION = 1
"""Of the JSON that `fairlead plan` prints."""
_SHOWN_CHARACTERS = 120
# What the composer marks an object with, which follows from the rest.
_OURS = frozenset({"finalizers", "name", "namespace", "ownerReferences", "uid"})


class FieldChange(msgspec.Struct, frozen=True):
    """One field: its path, what it is, what it would be; None where it is not there."""

    path: str
    now: Any
    then: Any

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.now)} → {_shown(self.then)}"


class Change(msgspec.Struct, frozen=True):
    """What would become of one child; `why` where there is more to say.

    `name` is empty for a child of a claim that does not live yet: it is made of the uid that the API server gives it.
    `cloud` is what an update of a managed resource does in its cloud.
    """

    verb: Verb
    resource: str
    kind: str = ""
    name: str = ""
    fields: tuple[FieldChange, ...] = ()
    why: str = ""
    cloud: tuple[CloudChange, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """The exit status that this change alone has."""
        return worst((_EXITS[self.verb], *(_EFFECTS.get(change.effect, Exit.DONE) for change in self.cloud)))

    def lines(self) -> Iterator[str]:
        """Say it."""
        named = f"{self.kind}, its name follows at creation" if self.kind and not self.name else self.kind
        subject = " ".join(filter(None, (named, self.name)))
        yield f"  {_SIGNS[self.verb]} {self.verb} {self.resource}" + (f" ({subject})" if subject else "")
        yield from (f"      {field}" for field in self.fields)
        if self.why:
            yield f"      {self.why}"
        yield from (f"      in the cloud: {change}" for change in self.cloud)


class ClaimPlan(msgspec.Struct, frozen=True):
    """All that an edit would do to one claim's children."""

    claim: str
    composition: str
    changes: tuple[Change, ...]

    @property
    def exit_code(self) -> Exit:
        """The exit status of the command."""
        return worst(change.exit_code for change in self.changes)

    def lines(self) -> Iterator[str]:
        """Say the whole plan."""
        yield f"{self.claim} by {self.composition or 'no Composition'}" + ("" if self.changes else ": no change")
        for change in self.changes:
            yield from change.lines()


@dataclass(frozen=True, slots=True)
class Renders:
    """What a claim renders to after the edit, and before it where that is known."""

    after: Rendered
    before: Rendered | None


def changes_of(plan: Plan, renders: Renders, clouds: Clouds, *, is_new: bool = False) -> tuple[Change, ...]:
    """Return a plan of the composer's as changes of children; `is_new`: the claim does not live yet."""
    earlier = {child.name: child.object for child in renders.before.children} if renders.before else {}
    changes = [change for step in plan.steps for change in (*_refused(step), *_of_step(step, earlier, clouds))]
    changes += [_of_cause(cause) for cause in plan.causes]
    if is_new:
        changes = [msgspec.structs.replace(change, name="") for change in changes]
    made = {change.resource for change in changes if change.verb == "create"}
    ended = {change.resource for change in changes if change.verb in ("delete", "release")}
    replaced = made & ended
    return tuple(
        msgspec.structs.replace(change, verb="replace")
        if change.resource in replaced and change.verb == "create"
        else change
        for change in changes
        if change.resource not in replaced or change.verb == "create"
    )


def moved_connection(before: Object | None, after: Object) -> tuple[Change, ...]:
    """Say that the connection Secret would get another name and that of the former name go, from a claim to another."""
    former = str((status_of(before).get("binding") or {}).get("name") or "") if before is not None else ""
    present = connection_secret_name(
        key_of(after).name, str((after.get("spec") or {}).get("connectionSecretName") or "")
    )
    if former in ("", present):
        return ()
    why = (
        f"Secret {former} is deleted as soon as Secret {present} is there: let what names {former} name {present} in"
        " the same change"
    )
    return (Change("replace", "connection", "Secret", present, why=why),)


def homeless(claim: Object) -> Change:
    """Say that a claim's namespace neither exists nor is among the files."""
    name = key_of(claim).namespace
    return Change("wait", "claim", why=f"namespace {name} does not exist: make it, and prepare it for claims, before")


def blocked(causes: Iterable[Cause]) -> tuple[Change, ...]:
    """Return why a claim cannot be composed at all."""
    return tuple(_of_cause(cause) for cause in causes)


def _refused(step: Step) -> Iterator[Change]:
    """Yield what the API server would refuse of a child, as far as the schema of its kind says so."""
    match step:
        case Create(entry=entry, facts=facts, object=desired) | Apply(entry=entry, facts=facts, object=desired):
            below = schema.step(facts.schema_of(entry.api_version) or {}, "spec") or {}
            for problem in breaches(desired.get("spec") or {}, below, "spec"):
                why = f"the API server refuses it: {problem.path}: {problem.message} [{problem.reason}]"
                yield _change("block", entry, why=why)
        case _:
            return


def _of_step(step: Step, earlier: Mapping[str, Object], clouds: Clouds) -> Iterator[Change]:
    match step:
        case Adopt(entry=entry):
            yield _change("update", entry, why="it is taken over of an earlier claim")
        case Create(entry=entry, facts=facts, object=desired):
            yield _change("create", entry, cloud=cloud_creation(facts.resource, desired, clouds))
        case Apply(entry=entry, object=desired, live=live, facts=facts):
            fields = tuple(_fields(project(live, desired, facts.schema), desired, ""))
            fields += tuple(_left(earlier.get(entry.name), desired))
            if fields:
                yield _change(
                    "update", entry, fields=fields, cloud=_in_the_cloud(step, earlier.get(entry.name), clouds)
                )
        case Delete(entry=entry, why=why, instruction=instruction):
            yield _change(*_ending(instruction, entry, why))
        case Annotate(entry=entry, annotations=annotations) if annotations.get(names.TEARDOWN):
            yield _change(*_ending(str(annotations[names.TEARDOWN]), entry, "somebody deleted it"))
        case Orphan(entry=entry):
            yield _change("release", entry, why="it lives on without its claim")
        case _:
            return


def _ending(instruction: str, entry: Entry, why: str) -> tuple[Verb, Entry, str]:
    """Return how a deleted object ends by its teardown instruction, which kinds of others have none of."""
    policy = instruction.rpartition("/")[2]
    if not policy or policy in ENDING:
        return "delete", entry, f"{why}; after a final backup" if policy == Policy.SNAPSHOT else why
    return "release", entry, f"{why}; what it stands for in the cloud stays ({policy})"


def _in_the_cloud(step: Apply, earlier: Object | None, clouds: Clouds) -> tuple[CloudChange, ...]:
    spec = _merged(step.live.get("spec"), step.object.get("spec"), (earlier or {}).get("spec"))
    return cloud_changes(step.facts.resource, step.live, {**step.live, "spec": spec}, clouds)


def _merged(live: Any, desired: Any, earlier: Any) -> Any:
    """Return a value as it is once the composer applied its part: what it set before and leaves out goes."""
    if not isinstance(live, Mapping) or not isinstance(desired, Mapping):
        return desired
    before = earlier if isinstance(earlier, Mapping) else {}
    kept = {name: value for name, value in live.items() if name not in desired and name not in before}
    return kept | {name: _merged(live.get(name), value, before.get(name)) for name, value in desired.items()}


def _change(
    verb: Verb,
    entry: Entry,
    why: str = "",
    *,
    fields: tuple[FieldChange, ...] = (),
    cloud: tuple[CloudChange, ...] = (),
) -> Change:
    place = f"{entry.resource}[{entry.key}]" if entry.key else entry.resource
    return Change(verb, place, entry.kind, entry.name, fields, why, cloud)


def _of_cause(cause: Cause) -> Change:
    verbs: Mapping[str, Verb] = {"HeldDeletion": "hold", "ResourcePending": "wait"}
    return Change(verbs.get(cause.reason, "block"), cause.resource or "claim", why=f"{cause.message} [{cause.reason}]")


def _fields(now: Any, then: Any, path: str) -> Iterator[FieldChange]:
    """Yield the leaves at which two objects differ."""
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        for name in sorted({*now, *then}):
            if path != ".metadata" or name not in _OURS:
                yield from _fields(now.get(name), then.get(name), f"{path}.{name}")
    elif now != then:
        yield FieldChange(path.removeprefix("."), now, then)


def _left(before: Object | None, after: Object) -> Iterator[FieldChange]:
    """Yield what an earlier render set and this one leaves out: it goes, where nobody else sets it."""
    if before is None:
        return
    for field in _fields({**before, "metadata": _visible(before)}, {**after, "metadata": _visible(after)}, ""):
        if field.then is None:
            yield field


def _visible(obj: Object) -> Object:
    return {name: item for name, item in metadata(obj).items() if name not in _OURS}


def _shown(value: Any) -> str:
    if value is None:
        return "(not set)"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def summary(plans: Sequence[ClaimPlan]) -> str:
    """Count the changes of all plans by verb."""
    counts = {verb: sum(change.verb == verb for plan in plans for change in plan.changes) for verb in _SIGNS}
    summary = ", ".join(f"{count} to {verb}" for verb, count in counts.items() if count)
    return f"{len(plans)} claims: {summary or 'no change'}" if len(plans) != 1 else f"1 claim: {summary or 'no change'}"
