"""Claims that were made by the former postgres-aws, with a resource for each version: the new one leaves them alone.

`made_before` holds what the former one made of three claims.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from apis import names
from apis.identity import Identity, child_name
from composer.claim.compose import Prepared, Preparer
from composer.claim.decide import Apply, Create, Delete, Keep, Plan, decide
from composer.claim.snapshot import ObservedChild, Snapshot, entry_of, live_hash
from composer.composition.revision import Candidate, Revision
from composer.hashes import sent_hash
from composer.inventory import Entry
from composer.render.render import Rendered, render
from composer.render.request import Request
from composer.render.schema import defaulted
from composer.workers.answer_check import refuse_foreign
from runtime.objects import Object
from tests.composer import test_golden as golden
from tests.composer.factories import CLAIMS, NOW
from tests.support import yaml_texts

_FOLDER: Final = Path(__file__).parent / "made_before"
_SPEC: Final[dict[str, Any]] = golden.COMPOSITIONS["postgres-aws"]["spec"]
_CLAIMS: Final = ("small", "by-cpu", "everything")
_UID: Final = golden.IDENTITY.partition("@")[0]


def _without_order(obj: Object) -> Object:
    """Return an object without the annotation that names what goes after it: resources have other names now."""
    annotations = {name: text for name, text in obj["metadata"]["annotations"].items() if name != names.DEPENDS_ON}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _live(name: str) -> list[Object]:
    objects = yaml_texts.load_all(_FOLDER / f"postgres-aws-{name}.yaml")
    return [
        {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{number}", "resourceVersion": "1", "generation": 1}}
        for number, obj in enumerate(objects)
    ]


def _as_sent(obj: Object) -> Object:
    meta = {
        name: item for name, item in obj["metadata"].items() if name not in ("uid", "resourceVersion", "generation")
    }
    return {**obj, "metadata": meta}


def _entry(obj: Object, *, is_remembered: bool) -> Entry:
    """Return the entry as its status has it, or as the object has it where the status was lost."""
    entry = entry_of(obj, stateful=obj["kind"] == "RDSInstance")
    assert entry is not None
    if not is_remembered:
        return entry
    sent, schema = _as_sent(obj), golden.CATALOG[entry.group_kind].schema
    hashes = {"desired": sent_hash(sent), "live": live_hash(obj, sent, schema)}
    return msgspec.structs.replace(entry, applied=True, **hashes)


def _view(name: str, *, is_remembered: bool = True, version: str = "") -> Snapshot:
    schema = (golden.CATALOG[CLAIMS.group_kind].schema or {})["properties"]["spec"]
    written = {**golden.CLAIMS[name], **({"version": version} if version else {})}
    claim: Object = {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {
            "name": "orders",
            "namespace": "shop",
            "uid": _UID,
            "generation": 1,
            "annotations": {names.COMPOSITION: "postgres-aws", names.IDENTITY: golden.IDENTITY},
        },
        "spec": defaulted(written, schema),
        "status": {"observedGeneration": 1, "identity": golden.IDENTITY},
    }
    known = tuple(
        ObservedChild(entry := _entry(obj, is_remembered=is_remembered), obj, golden.CATALOG[entry.group_kind])
        for obj in _live(name)
    )
    return Snapshot(
        claim, CLAIMS, {"metadata": {"name": "shop"}}, kind_deleting=False, catalog=golden.CATALOG, children=known
    )


class _World:
    """The composition, in one revision, and the settings of the goldens."""

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        del api_version, kind
        return (Candidate("postgres-aws", {}, None),)

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return (Revision("postgres-aws-2", 2, composition, _SPEC),)

    def environment(self, name: str) -> dict[str, str] | None:
        return golden.ENVIRONMENTS[name]

    async def render(self, request: Request) -> Rendered:
        rendered = render(request)
        refuse_foreign(request, rendered)
        return rendered


async def _plan(snapshot: Snapshot) -> tuple[Prepared, Plan]:
    prepared = await Preparer(_World(), _World()).prepare(snapshot)
    assert isinstance(prepared, Prepared), prepared
    return prepared, decide(prepared.snapshot, prepared.rendered, now=NOW)


@pytest.mark.parametrize("is_remembered", [True, False], ids=["by its status", "by its children alone"])
@pytest.mark.parametrize("name", _CLAIMS)
async def test_objects_of_a_claim_from_before_are_all_kept(name: str, *, is_remembered: bool) -> None:
    snapshot = _view(name, is_remembered=is_remembered)
    before = {observed.entry.name: observed for observed in snapshot.children}

    prepared, plan = await _plan(snapshot)

    assert plan.causes == ()
    assert {type(step) for step in plan.steps} <= {Keep, Apply}
    assert {step.entry.name for step in plan.steps} == before.keys()
    for step in plan.steps:
        assert step.entry.uid == before[step.entry.name].entry.uid
        if isinstance(step, Apply):
            # A provider looks at the spec: nothing of it is another, so nothing is written to the cloud.
            live = before[step.entry.name].live
            assert live is not None
            assert _without_order(step.object) == _without_order(_as_sent(live))
    assert [child.slot for child in prepared.rendered.children if child.key] == [
        ("parameters", golden.CLAIMS[name]["version"])
    ]


@pytest.mark.parametrize("name", _CLAIMS)
async def test_the_instance_alone_is_written_for_the_names_of_its_dependents(name: str) -> None:
    _, plan = await _plan(_view(name))
    version = golden.CLAIMS[name]["version"]

    (written,) = (step for step in plan.steps if isinstance(step, Apply))

    assert written.entry.resource == "instance"
    assert written.object["metadata"]["annotations"][names.DEPENDS_ON] == f"network,parameters,parameters{version}"


def _carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return a snapshot of after a plan: what it wrote is stored, and the instance's provider reports it as done."""
    before = {observed.entry.name: observed for observed in snapshot.children}
    children = []
    for step in plan.steps:
        known = before.get(step.entry.name)
        if not isinstance(step, Create | Apply):
            assert known is not None
            children.append(ObservedChild(step.entry, known.live, known.facts))
            continue
        uid = known.entry.uid if known is not None else "uid-made"
        meta = {**step.object["metadata"], "uid": uid, "resourceVersion": "2", "generation": 2}
        synced = {"type": "Synced", "status": "True", "reason": "InSync"}
        live = {**step.object, "metadata": meta, "status": {"observedGeneration": 2, "conditions": [synced]}}
        hashes = {"desired": sent_hash(step.object), "live": live_hash(live, step.object, step.facts.schema)}
        entry = msgspec.structs.replace(step.entry, uid=uid, applied=True, **hashes)
        children.append(ObservedChild(entry, live, step.facts))
    return replace(snapshot, children=tuple(children))


@pytest.mark.parametrize("is_remembered", [True, False], ids=["by its status", "by its children alone"])
async def test_an_upgrade_makes_one_group_and_then_takes_the_former_one_away(*, is_remembered: bool) -> None:
    snapshot = _view("small", is_remembered=is_remembered, version="17")
    former = next(observed.entry for observed in snapshot.children if observed.entry.kind == "DBParameterGroup")

    prepared, plan = await _plan(snapshot)

    (made,) = (step for step in plan.steps if isinstance(step, Create))
    assert (made.entry.slot, made.entry.origin) == (("parameters", "17"), "")
    (kept,) = (step for step in plan.steps if step.entry.name == former.name)
    assert isinstance(kept, Keep)
    _, later = await _plan(_carried_out(snapshot, plan))
    (gone,) = (step for step in later.steps if isinstance(step, Delete))
    assert (gone.entry.name, gone.entry.slot) == (former.name, ("parameters", "16"))
    instance = next(child for child in prepared.rendered.children if child.resource == "instance")
    reference = instance.object["spec"]["forProvider"]["dbParameterGroupNameRef"]
    assert reference == {"name": child_name(Identity(_UID, "shop", "orders"), "parameters", "17")}
