"""What becomes of a claim and its children as a whole: creations, refusals, another tenant's troubles."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.audit import Match
from tests.support.grants import allow_composer
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    NAMESPACE,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.shared import USUAL, at_work
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_BROKEN = 150
_WORKERS = 16


def _map(name: str, **fields: Any) -> JsonObject:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": "{{ claim.spec.size }}"}}
    return {"name": name, "template": template, **fields}


def _service(name: str, port: int) -> JsonObject:
    template = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": port}]}}
    return {"name": name, "template": template}


async def _made_of(system: System, namespace: str, name: str) -> dict[str, JsonObject]:
    children = await system.children(namespace, name)
    return {child["metadata"]["annotations"]["fairlead.dev/resource"]: child for child in children}


async def test_a_claim_has_one_object_for_each_resource_and_is_ready_when_all_are(
    composing: System, namespace: str
) -> None:
    late = _map("c", readyWhen="{{ claim.spec.size == 'large' }}")
    async with composing.composition(composition(f"{namespace}-c", _map("a"), _map("b"), late)) as name:
        audit = composing.audit()
        made = await composing.create(CLAIM, claim(namespace, "whole", compositionRef={"name": name}))
        unready = await composing.until(CLAIM, namespace, "whole", lambda obj: bool(condition(obj, "Ready")))
        assert condition(unready, "Ready")["status"] == "False"

        async def all_made() -> bool:
            return set(await _made_of(composing, namespace, "whole")) == {"a", "b", "c"}

        await eventually(all_made, "all three are there")
        await composing.at_rest(for_s=1.0)
        waits = await composing.api.get(CLAIM.path(namespace, "whole"))
        assert condition(waits, "Ready")["status"] == "False"
        await composing.edit(CLAIM, namespace, "whole", {"spec": {"size": "large"}})
        await composing.until(CLAIM, namespace, "whole", is_ready)

        creations = audit.requests(Match(user=COMPOSER, verbs=frozenset({"create"}), namespace=namespace))
        assert sum(request.resource == "configmaps" for request in creations) == 3
        for child in (await _made_of(composing, namespace, "whole")).values():
            (owner,) = child["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
        await composing.delete(CLAIM, namespace, "whole")


async def test_two_children_that_are_refused_keep_no_other_back_and_both_are_reported(
    composing: System, namespace: str
) -> None:
    await allow_composer(composing, "", "services")
    body = composition(f"{namespace}-c", _map("a"), _service("b", 99_999), _service("c", 0), _map("d"))
    async with composing.composition(body) as name:
        await composing.create(CLAIM, claim(namespace, "mixed", compositionRef={"name": name}))
        refused = await composing.until(CLAIM, namespace, "mixed", in_trouble("InvalidValue"))

        async def sentences() -> str:
            obj = await composing.api.get(CLAIM.path(namespace, "mixed"))
            text = str(condition(obj, "Synced").get("message", ""))
            return text if "also:" in text else ""

        text = await eventually(sentences, "both refusals are reported")
        # The API server's own words.
        first, _, second = text.partition("also:")
        assert "Invalid value: 99999: must be between 1 and 65535" in first
        assert "Invalid value: 0: must be between 1 and 65535" in second
        assert condition(refused, "Ready")["status"] == "False"
        assert set(await _made_of(composing, namespace, "mixed")) == {"a", "d"}
        await composing.delete(CLAIM, namespace, "mixed")


async def test_a_name_that_is_taken_names_the_owner_and_keeps_no_other_child_back(
    composing: System, namespace: str
) -> None:
    async with composing.composition(composition(f"{namespace}-c", _map("a"), _map("b"))) as name:
        # The claim's uid is known only after it is made: pause it, so that the stranger comes first.
        body = claim(namespace, "late", compositionRef={"name": name})
        body["metadata"]["annotations"] = {"fairlead.dev/paused": "true"}
        uid = (await composing.create(CLAIM, body))["metadata"]["uid"]
        digest = base64.b32encode(hashlib.sha256(f"{uid}\0a\0".encode()).digest()).decode().lower()[:10]
        taken = CONFIG_MAP.new(namespace, f"late-a-{digest}", data={"mine": "yes"})
        holder = await composing.create(CONFIG_MAP, CONFIG_MAP.new(namespace, "holder"))
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "uid": holder["metadata"]["uid"]}
        taken["metadata"]["ownerReferences"] = [owner]
        stranger = await composing.create(CONFIG_MAP, taken)
        await composing.edit(CLAIM, namespace, "late", {"metadata": {"annotations": {"fairlead.dev/paused": None}}})

        refused = await composing.until(CLAIM, namespace, "late", in_trouble("NotOwned"))

        assert "ConfigMap holder" in condition(refused, "Synced")["message"]
        assert set(await _made_of(composing, namespace, "late")) == {"b"}
        assert await composing.api.get(CONFIG_MAP.path(namespace, taken["metadata"]["name"])) == stranger
        await composing.delete(CLAIM, namespace, "late")


async def test_another_tenants_broken_claims_and_a_restart_keep_a_new_claim_waiting_behind_none_of_them(
    composing: System, namespace: str
) -> None:
    """The new claim is the last of all in every list; what counts is who is answered first."""
    broken = _map("a")
    broken["template"]["data"]["size"] = "{{ 1 // (claim.spec.version | int - 16) }}"
    bad, good = composition(f"{namespace}-bad", broken), composition(f"{namespace}-good", _map("a"))
    await composing.create(COMPOSITION, bad)
    await composing.create(COMPOSITION, good)
    for body in (bad, good):
        await composing.until(COMPOSITION, "", body["metadata"]["name"], is_ready)
    (composer,) = at_work(composing, "composer")
    assert await composer.terminate() == 0
    theirs, ours = f"{namespace}-a", f"{namespace}-z"
    for tenant in (theirs, ours):
        await composing.namespaced(tenant)
    ref = {"name": bad["metadata"]["name"]}
    made = (claim(theirs, f"broken-{number:03}", compositionRef=ref) for number in range(_BROKEN))
    await asyncio.gather(*(composing.create(CLAIM, obj) for obj in made))
    await composing.create(CLAIM, claim(ours, "new", compositionRef={"name": good["metadata"]["name"]}))

    audit = composing.audit()
    await composing.start_composer(*USUAL["composer"])
    await composing.until(CLAIM, ours, "new", is_ready)

    async def all_answered() -> bool:
        claims = await composing.api.items(CLAIM.path(theirs))
        return all(in_trouble("RenderFailed")(obj) for obj in claims)

    await eventually(all_answered, "every broken claim is answered", limit_s=120.0, every_s=0.5)
    answers = audit.requests(Match(user=COMPOSER, resource="postgresqlinstances", subresource="status"))
    before = [request.namespace for request in sorted(answers, key=lambda request: request.received_at)]
    # Those that were under way when its turn came, each time it needed one.
    assert before.index(ours) <= 4 * _WORKERS
    assert before.count(theirs) >= _BROKEN
    for tenant in (theirs, ours):
        await composing.api.request("DELETE", CLAIM.path(tenant))
        await composing.api.delete(NAMESPACE.path("", tenant))
