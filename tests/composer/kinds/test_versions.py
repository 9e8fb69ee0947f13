"""By which versions of its API a kind may be named: the stored one, and those that hold the same fields."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from composer.claim.decide import Apply, Keep, decide
from composer.claim.snapshot import ObservedChild, live_hash, stored_hash
from composer.hashes import sent_hash
from composer.kinds.catalog import KindFacts, catalog, facts_of
from composer.validation.validate import CheckRequest, check
from runtime.objects import Object
from tests.composer.factories import DATABASE, NOW, child, desired, entry, live, rendered, snapshot
from tests.support.second_api import SecondApi

API = SecondApi("cache.example.org")


def _crd(stored: str, *others: str, strategy: str = "None", unserved: str = "") -> Object:
    crd: Object = API.node_crd(composable="true")
    (version,) = crd["spec"]["versions"]
    more = [{**deepcopy(version), "name": name, "storage": False, "served": name != unserved} for name in others]
    crd["spec"]["versions"] = [{**version, "name": stored}, *more]
    crd["spec"]["conversion"] = {"strategy": strategy}
    return crd


def _facts(crd: Object) -> KindFacts:
    facts = facts_of(crd)
    assert facts is not None
    return facts


def test_a_kind_of_claim_is_not_named_by_a_version_that_a_webhook_makes() -> None:
    crd = API.cache_crd()
    (version,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**deepcopy(version), "name": "v2"}, {**version, "storage": False}]
    crd["spec"]["conversion"] = {"strategy": "Webhook"}

    (problem,) = check(CheckRequest(API.composition("c")["spec"], catalog([crd, API.node_crd(composable="true")])))

    assert (problem.reason, problem.path) == ("KindNotInstalled", "spec.compositeTypeRef.apiVersion")
    assert problem.message.endswith(f"claims are read as they are stored; write apiVersion: {API.group}/v2")


def _converting() -> Object:
    """Return a CRD whose stored version calls the field `memory` of the older one `memoryText`."""
    crd = _crd("v2", "v1", strategy="Webhook")
    stored, _ = crd["spec"]["versions"]
    spec = stored["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {"memoryText": spec["properties"]["memory"]}
    return crd


CONVERTED: dict[str, tuple[dict[str, Any], type]] = {
    "nothing changed since it was sent": ({}, Keep),
    "somebody changed its content": ({"generation": 2}, Apply),
    "somebody changed a label of ours": ({"labels": {}}, Apply),
    "somebody added a label": ({"labels": {**desired()["metadata"]["labels"], "team": "shop"}}, Keep),
}


@pytest.mark.parametrize(("changed", "expected"), CONVERTED.values(), ids=CONVERTED)
def test_an_object_in_a_version_that_a_webhook_makes_is_compared_by_its_generation_and_metadata(
    changed: dict[str, Any], expected: type
) -> None:
    facts = _facts(_converting())
    wanted = {**desired(facts=facts, spec={"memory": "64Mi"}), "apiVersion": f"{API.group}/v1"}
    answered = live(wanted)
    recorded = entry(
        facts=facts,
        api_version=wanted["apiVersion"],
        desired=sent_hash(wanted),
        live=stored_hash(answered, facts.comparable(wanted), facts.schema),
    )
    stored = {**answered, "apiVersion": f"{API.group}/v2", "spec": {"memoryText": "64Mi"}}
    # Its label still says whose it is, by the uid.
    stored["metadata"] = {**stored["metadata"], **changed}
    known = ObservedChild(recorded, stored, facts)
    seen = replace(snapshot(known), catalog={facts.resource.group_kind: facts})

    plan = decide(seen, rendered(child(wanted)), now=NOW)

    assert [type(step) for step in plan.steps] == [expected]


def test_an_object_is_written_in_the_version_of_its_template_and_compared_in_any() -> None:
    facts = _facts(_crd("v2", "v1"))
    wanted = {**desired(), "apiVersion": f"{API.group}/v1"}
    stored = live(wanted)

    assert facts.written_as(wanted["apiVersion"]).api_version == f"{API.group}/v1"
    assert facts.resource.api_version == f"{API.group}/v2"
    assert live_hash({**stored, "apiVersion": f"{API.group}/v2"}, wanted, None) == live_hash(stored, wanted, None)
    assert sent_hash(wanted) != sent_hash({**wanted, "apiVersion": f"{API.group}/v2"})


def test_a_version_that_is_removed_leaves_its_objects_as_they_are() -> None:
    """A revision in use was accepted while the version was served."""
    wanted = {**desired(), "apiVersion": "onprem.fairlead.dev/v1old"}
    known = ObservedChild(entry(), live(wanted), DATABASE)

    plan = decide(snapshot(known), rendered(child(wanted)), now=NOW)

    assert [type(step) for step in plan.steps] == [Keep]
    assert [cause.reason for cause in plan.causes] == ["KindNotInstalled"]
    assert "write apiVersion: onprem.fairlead.dev/v1alpha1" in plan.causes[0].message
