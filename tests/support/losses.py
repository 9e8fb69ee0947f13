"""Ten ways to lose what ties a claim to its data, each followed by an act that could cost the data.

A cell of the matrix is a way, a side (ours or another operator's) and a deletion policy; in it one claim suffers each
act. All claims of a wave live side by side on one platform: one wave of losses and acts, then one wave of looks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import CLAIM, COMPOSITION, SECRET, condition, is_ready
from tests.support.kinds import claim as new_claim
from tests.support.loss_sides import Claim, Place, Side
from tests.support.system import System, decoded
from tests.support.waiting import eventually

_QUIET_LOOKS = 4
POLICIES = ("Orphan", "Snapshot", "Delete")
SIDES = ("onprem", "foreign")
NONE, LEFT_OUT, CLAIM_DELETED, CHILD_DELETED = "none", "left-out", "claim-deleted", "child-deleted"


class Way(NamedTuple):
    """One way to lose what ties a claim to its data.

    Attributes:
        name: For names of objects.
        title: For the table.
        acts: What may follow.
    """

    name: str
    title: str
    acts: tuple[str, ...] = (LEFT_OUT, CLAIM_DELETED, CHILD_DELETED)


STATUS = Way("status", "the claim's status is wiped")
CRD_LABEL = Way("crdlabel", "the stateful label of the child's CRD is gone")
ANNOTATIONS = Way("annotations", "the annotations of claim and child are gone")
REVISION = Way("revision", "the CompositionRevision is deleted")
CHILD_LABEL = Way("childlabel", "the child's label is gone")
CRD_BACK = Way("crd", "the child's CRD is deleted and made again", (NONE, LEFT_OUT, CLAIM_DELETED))
RESTORED = Way("restored", "namespace and objects come out of a backup", (NONE, LEFT_OUT, CLAIM_DELETED))
FINALIZERS = Way("finalizers", "the finalizers of claim and child are forced off")
AGAIN = Way("again", "the claim is forced away and made again", (NONE, CLAIM_DELETED))
NOT_SERVED = Way("notserved", "the child's kind is not served meanwhile", (LEFT_OUT, CLAIM_DELETED))
WAYS = (
    STATUS,
    CRD_LABEL,
    ANNOTATIONS,
    REVISION,
    CHILD_LABEL,
    CRD_BACK,
    RESTORED,
    FINALIZERS,
    AGAIN,
    NOT_SERVED,
)
_FORCED = (FINALIZERS, AGAIN)
"""The claim went without its teardown: no policy was carried out."""


@dataclass(frozen=True, slots=True)
class Case:
    """One claim of a cell, and what will happen to it."""

    way: Way
    side: Side
    policy: str
    act: str

    @property
    def namespace(self) -> str:
        return f"{self.way.name}-{self.side.name}"

    @property
    def name(self) -> str:
        return f"{self.act}-{self.policy.lower()}"

    @property
    def key(self) -> Claim:
        return self.namespace, self.name

    @property
    def composition(self) -> str:
        """Who is left out has a Composition of its own, so that no other claim notices."""
        kind = "snapshot" if self.policy == "Snapshot" else "plain"
        return f"{self.namespace}-{kind}-{'left' if self.act == LEFT_OUT else 'kept'}"

    @property
    def path(self) -> str:
        return CLAIM.path(*self.key)

    def __str__(self) -> str:
        return f"{self.way.name}/{self.side.name}/{self.policy}/{self.act}"


class Outcome(NamedTuple):
    """What became of one case; `wrong` is empty where all is as the policy says."""

    case: Case
    place: Place
    state: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.case}: {self.wrong or 'safe'} (the data are {self.place}; {self.state})"


def cases(ways: Iterable[Way], sides: Callable[[Way, str], Iterable[Side]]) -> list[Case]:
    """Return every case of some ways; `sides` gives the sides of a way and a policy."""
    return [
        Case(way, side, policy, act)
        for way in ways
        for policy in POLICIES
        for side in sides(way, policy)
        for act in way.acts
    ]


def wrongs(outcomes: Iterable[Outcome], way: str, side: str, policy: str = "") -> list[str]:
    """Return what went wrong in one cell, or on one side of a way; there must be something to judge."""
    mine = [
        outcome
        for outcome in outcomes
        if (outcome.case.way.name, outcome.case.side.name) == (way, side) and policy in {"", outcome.case.policy}
    ]
    assert mine, f"nothing was tried of {way} {side} {policy}"

    return [str(outcome) for outcome in mine if outcome.wrong]


# The start: everybody has a database with a row in it


async def move_in(system: System, some: list[Case]) -> None:
    """Make namespaces, Compositions and claims; wait for all of them; plant a row in each database."""
    for namespace in sorted({case.namespace for case in some}):
        await system.namespaced(namespace)
    compositions = {case.composition: case.side.composition(case.composition) for case in some}
    await asyncio.gather(*(system.create(COMPOSITION, obj) for obj in compositions.values()))
    await asyncio.gather(*(make_claim(system, case) for case in some))
    await until_ready(system, some)
    for (namespace, _id), side in {(case.namespace, id(case.side)): case.side for case in some}.items():
        await side.know_children(namespace)
    await asyncio.gather(*(case.side.plant(case.key) for case in some))
    for side in {id(case.side): case.side for case in some}.values():
        await side.moved_in()
    await settle(system, some)


async def make_claim(system: System, case: Case) -> None:
    reference = {"name": case.composition}
    body = new_claim(case.namespace, case.name, deletionPolicy=case.policy, compositionRef=reference)
    await system.create(CLAIM, body)


async def until_ready(system: System, some: list[Case]) -> None:
    waiting = {case.key for case in some}

    async def ready() -> bool:
        for namespace in {namespace for namespace, _name in waiting}:
            for obj in await system.api.items(CLAIM.path(namespace)):
                if is_ready(obj):
                    waiting.discard((namespace, obj["metadata"]["name"]))
        return not waiting

    try:
        await eventually(ready, "every claim is Ready", limit_s=240.0, every_s=1.0)
    except AssertionError:
        key = min(waiting)
        raise AssertionError(
            f"not Ready: {sorted(waiting)}; one is {await system.api.find(CLAIM.path(*key))}"
        ) from None


# The acts


async def act(system: System, some: list[Case]) -> None:
    """Do to each claim what its case says."""
    left = {case.composition: case.side for case in some if case.act == LEFT_OUT}
    for name, side in left.items():
        bare = side.composition(name, with_data=False)
        spec = {"resources": bare["spec"]["resources"], "connection": None}
        await system.api.merge(COMPOSITION.path("", name), {"spec": spec})
    for case in some:
        if case.act == CLAIM_DELETED:
            await system.api.delete(case.path)
        elif case.act == CHILD_DELETED:
            await system.api.delete(case.side.child_path(case.key))


async def settle(system: System, some: list[Case]) -> None:
    """Wait until nobody writes any more; ask for a pass over each claim; wait again."""
    await _rest(system)
    for namespace in {case.namespace for case in some}:
        for obj in await system.api.items(CLAIM.path(namespace)):
            await system.ask_for_a_pass(CLAIM, namespace, obj["metadata"]["name"])
    await _rest(system)


async def _rest(system: System) -> None:
    """Wait until no process of ours wrote for a while; writes without end are no loss and have tests of their own."""
    audit = system.audit()
    seen = [-1]

    async def quiet() -> bool:
        # Seldom: the log is read from this wait's start each time.
        seen.append(audit.count(Match(user="system:serviceaccount:fairlead-", verbs=WRITES)))
        return len(set(seen[-_QUIET_LOOKS:])) == 1

    with contextlib.suppress(AssertionError):
        await eventually(quiet, "nobody writes", limit_s=45.0, every_s=1.0)


# The looks


async def look(system: System, some: list[Case]) -> list[Outcome]:
    """Look at each case's data, claim and Secret, and compare with what its policy allows."""
    places: dict[Claim, Place] = {}
    for side in {id(case.side): case.side for case in some}.values():
        places |= await side.places([case.key for case in some if case.side is side])
    return [await _outcome(system, case, places[case.key]) for case in some]


async def _outcome(system: System, case: Case, place: Place) -> Outcome:
    claim = await system.api.find(case.path)
    state = _state(claim)
    wrong = _lost(case, place)
    if not wrong and claim is None and place == "here":
        wrong = await _left_over(case)
    if not wrong and claim is not None and condition(claim, "Ready").get("status") == "True":
        wrong = await _served(system, case, claim)
    return Outcome(case, place, state, wrong)


def _lost(case: Case, place: Place) -> str:
    """Return what is wrong about where the data are, whatever the claim says."""
    if place != "gone":
        return ""
    if case.act == CLAIM_DELETED and case.policy == "Delete":
        return ""
    is_by_hand = case.side.name == "foreign" and case.way is FINALIZERS and case.act == CHILD_DELETED
    # Somebody took the finalizer and the object: nobody but its operator could have kept the data.
    return "" if is_by_hand else "lost"


async def _left_over(case: Case) -> str:
    """Return what is wrong about data that are there while their claim is gone."""
    if not await case.side.is_named(case.key):
        return "left over without a word"
    if case.policy == "Orphan" or case.way in _FORCED:
        return ""
    if (case.policy, case.way) == ("Delete", STATUS):
        # Of what nobody remembers nothing is destroyed without a backup; it is named, and that is all.
        return ""
    return "left over under Delete" if case.policy == "Delete" else "released without its backup"


async def _served(system: System, case: Case, claim: JsonObject) -> str:
    """Return what is wrong about a claim that says Ready."""
    # Where the status was lost, applications still hold the name that it had.
    name = claim.get("status", {}).get("binding", {}).get("name", f"{case.name}-connection")
    secret = await system.api.find(SECRET.path(case.namespace, name))
    if secret is not None and await case.side.leads_home(case.key, decoded(secret)):
        return ""
    return "replaced under a Ready claim"


def _state(claim: JsonObject | None) -> str:
    """Return in short what a claim says of itself."""
    if claim is None:
        return "claim gone"
    parts = ["deleting"] if "deletionTimestamp" in claim["metadata"] else []
    for name in ("Ready", "Synced", "Stalled", "Reconciling"):
        entry = condition(claim, name)
        if entry:
            parts.append(f"{name}={entry['status']} {entry['reason']}")
    return ", ".join(parts)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the matrix: a line a way, a column a side and policy; a cell counts its cases and names what is wrong."""
    all_of = list(outcomes)
    lines = []
    for way in WAYS:
        mine = [outcome for outcome in all_of if outcome.case.way is way]
        for side in sorted({outcome.case.side.name for outcome in mine}):
            cells = []
            for policy in POLICIES:
                cell = [outcome for outcome in mine if outcome.case.side.name == side and outcome.case.policy == policy]
                bad = [f"{outcome.case.act}: {outcome.wrong}" for outcome in cell if outcome.wrong]
                cells.append(f"{policy} {'; '.join(bad) if bad else f'{len(cell)} safe'}")
            lines.append(f"{way.title:<52} {side:<8} {' | '.join(cells)}")
    bad = [str(outcome) for outcome in all_of if outcome.wrong]
    return "\n".join([*lines, f"{len(all_of)} claims, {len(bad)} of them wrong", *bad])
