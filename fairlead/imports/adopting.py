"""What managing something would change, as its provider says, and a person's agreement to exactly that.

A provider writes `status.adoption` of a resource whose thing in the cloud is not its own: the changes, and their hash.
The agreement names incarnation and hash, and is void once either is another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apis import names
from fairlead.annotate import annotate
from fairlead.cluster import existing
from fairlead.exits import CommandError, Exit
from fairlead.imports.following import Followed
from fairlead.imports.observing import obstacle
from runtime.conditions import find, is_true
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource, annotations_of, key_of, status_of

_LIMIT_SECONDS: Final = 60.0
TO_AGREE: Final = "to agree:"


@dataclass(frozen=True, slots=True)
class Preview:
    """What adopting one object would do.

    `agreement` is what a person agrees to, empty where nothing can be adopted: `why` says why then, in the provider's
    words. `changes` are its lines (`path`, `observed`, `desired`, `when`), `total` how many there are; `ownership`
    what says in the cloud whose it is from then on.
    """

    kind: str
    namespace: str
    name: str
    incarnation: str
    agreement: str
    ownership: tuple[Mapping[str, str], ...]
    changes: tuple[Mapping[str, str], ...]
    total: int
    why: str = ""

    @property
    def called(self) -> str:
        """The object as people and kubectl call it."""
        return f"{self.kind.lower()}/{self.name}"

    def lines(self) -> Iterator[str]:
        """Yield what people read."""
        if not self.agreement:
            yield f"{self.called}: nothing to adopt: {self.why}"
            return
        count = "nothing but whose it is" if not self.total else f"{self.total} change{'s' if self.total > 1 else ''}"
        yield f"{self.called}: {count}"
        for change in self.changes:
            yield f"  {change['path']}: {change['observed']} -> {change['desired']} ({change.get('when', 'Now')})"
        if self.total > len(self.changes):
            yield f"  and {self.total - len(self.changes)} more"
        for change in self.ownership:
            yield f"  whose it is: {change['path']}: {change['observed']} -> {change['desired']}"
        yield f"  {TO_AGREE} fairlead import adopt {self.called} -n {self.namespace} --agreed {self.agreement}"


def preview_of(obj: Object) -> Preview:
    """Read an object's preview. Pure."""
    key, adoption = key_of(obj), status_of(obj).get("adoption") or {}
    synced = find(obj, "Synced") or {}
    return Preview(
        kind=str(obj["kind"]),
        namespace=key.namespace,
        name=key.name,
        incarnation=str(adoption.get("incarnation", "")),
        agreement=str(adoption.get("hash", "")),
        ownership=tuple(adoption.get("ownership") or ()),
        changes=tuple(adoption.get("changes") or ()),
        total=int(adoption.get("total", 0)),
        why="" if adoption else str(synced.get("message") or "its provider has not looked at it yet"),
    )


async def preview(kube: Kube, followed: Followed, resource: Resource, key: Key) -> Preview:
    """Wait until a provider has looked at an object, or says why it cannot; return what adopting it would do."""
    if followed.present(resource, key) is None:
        return preview_of(await existing(kube, resource, key))
    return preview_of(await followed.until(resource, key, _is_looked_at, _LIMIT_SECONDS) or {})


def _is_looked_at(obj: Object) -> bool:
    return bool(status_of(obj).get("adoption") or is_ours(obj) or obstacle(obj))


def is_ours(obj: Object) -> bool:
    """Return whether what an object stands for was made or taken over by it, and is managed. Pure."""
    is_observed_only = (obj.get("spec") or {}).get("managementPolicy") == "Observe"
    recorded = annotations_of(obj).get(names.INCARNATION) or status_of(obj).get("incarnation")
    return bool(recorded) and not is_observed_only and not status_of(obj).get("adoption")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a person agreed to: the hash of one object's preview."""

    resource: Resource
    key: Key
    hash: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of one agreement; `exit`: DONE once the object manages its thing."""

    called: str
    text: str
    exit: Exit


async def adopt(kube: Kube, followed: Followed, agreement: Agreement) -> Adopted:
    """Write the agreement onto the object, and wait until its provider took the thing over or said why not.

    An agreement to what is not shown any more is not written. What is taken over already stays as it is.
    """
    resource, key = agreement.resource, agreement.key
    called = f"{resource.kind.lower()}/{key.name}"
    current = followed.present(resource, key) or await existing(kube, resource, key)
    if is_ours(current):
        return Adopted(called, "is managed already", Exit.DONE)
    shown = await preview(kube, followed, resource, key)
    if shown.agreement != agreement.hash:
        other = f"it is {shown.agreement} now: look again" if shown.agreement else shown.why
        return Adopted(called, f"not adopted: {agreement.hash} is not what adopting it would do; {other}", Exit.REFUSED)
    consent = f"{shown.incarnation}/{shown.agreement}"
    await annotate(kube, resource, key, lambda _obj: {names.ADOPT: consent})
    obj = await followed.until(resource, key, is_ours, _LIMIT_SECONDS) or {}
    if is_ours(obj):
        return Adopted(called, "adopted", Exit.DONE)
    stalled = find(obj, "Stalled") or {} if is_true(obj, "Stalled") else {}
    why = str(stalled.get("message") or "its provider has not taken it over yet")
    return Adopted(called, f"not adopted: {why}", Exit.STALLED if stalled else Exit.NOT_READY)


async def adopt_all(kube: Kube, agreements: Sequence[Agreement], wave: int) -> list[Adopted]:
    """Adopt in waves; the first wave in which something is refused is the last one."""
    outcomes: list[Adopted] = []
    places = [(agreement.resource, agreement.key.namespace) for agreement in agreements]
    async with Followed.begin(kube, places) as followed:
        for first in range(0, len(agreements), wave):
            part = agreements[first : first + wave]
            outcomes += await asyncio.gather(*(adopt(kube, followed, agreement) for agreement in part))
            if any(outcome.exit is not Exit.DONE for outcome in outcomes):
                break
    left = len(agreements) - len(outcomes)
    if left:
        text = f"{left} more were left as they are; the same command goes on with them"
        outcomes.append(Adopted("import", text, Exit.NOT_READY))
    return outcomes


def agreements_in(previews: object, kinds: Mapping[str, Resource]) -> list[Agreement]:
    """Read what `fairlead import preview -o json` wrote: all that is in it is agreed to.

    Raises CommandError (invalid input) for anything else.
    """
    items = previews.get("previews") if isinstance(previews, dict) else None
    if not isinstance(items, list):
        raise CommandError("no output of `fairlead import preview -o json`", exit_code=Exit.INVALID_INPUT)
    agreements = []
    for item in items:
        try:
            resource, key = kinds[item["kind"]], Key(item["namespace"], item["name"])
            # What has nothing to adopt was shown as such.
            if item["agreement"]:
                agreements.append(Agreement(resource, key, item["agreement"]))
        except (KeyError, TypeError) as error:
            text = f"an entry of the previews has no {error}, or of no kind that is served here"
            raise CommandError(text, exit_code=Exit.INVALID_INPUT) from error
    return agreements
