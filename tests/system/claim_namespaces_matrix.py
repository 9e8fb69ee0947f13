"""More namespaces that are not prepared, or prepared in part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.api import JsonObject
from tests.support.home import claim
from tests.support.kinds import (
    CLAIM,
    DATABASE,
    PROVIDER_CONFIG,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.staff import Staff
from tests.system.test_claim_namespaces import ROOT, do_as_it_says

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


def _stalled(reason: str, word: str) -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        stalled = condition(obj, "Stalled")
        return stalled.get("reason") == reason and word in stalled["message"]

    return holds


async def test_a_claim_in_a_bare_namespace_is_deleted_without_a_trace(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    await system.create(CLAIM, claim(bare_namespace, "never", deletionPolicy="Delete"))
    await system.until(CLAIM, bare_namespace, "never", in_trouble("AccessDenied"))

    await system.delete(CLAIM, bare_namespace, "never")

    assert await system.api.items(DATABASE.path(bare_namespace)) == []


async def test_a_managed_resource_in_a_bare_namespace_makes_no_database(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    # From here on the provider has prepared the server.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    mark = system.sql.mark()
    await system.create(DATABASE, database(bare_namespace, "alone"))

    obj = await system.until(DATABASE, bare_namespace, "alone", in_trouble("AccessDenied"))
    assert system.sql.changes(mark) == []

    await do_as_it_says(system, obj, bare_namespace)
    await system.until(DATABASE, bare_namespace, "alone", is_ready, limit_s=150.0)
    await system.delete(DATABASE, bare_namespace, "alone")


async def test_the_composer_alone_without_its_right_says_so_and_goes_on(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    folder = ROOT / "deploy" / "kustomize" / "clouds" / "onprem" / "claim-namespace" / "provider.yaml"
    await system.kubectl.run("apply", "--namespace", bare_namespace, "--filename", str(folder))
    await system.create(CLAIM, claim(bare_namespace, "half", deletionPolicy="Delete"))

    obj = await system.until(CLAIM, bare_namespace, "half", _stalled("AccessDenied", "the composer"))
    (child,) = await system.children(bare_namespace, "half")
    assert is_ready(child)

    await do_as_it_says(system, obj, bare_namespace)
    await system.until(CLAIM, bare_namespace, "half", is_ready, limit_s=150.0)
    assert await system.logs_in(bare_namespace, "half")
    await system.delete(CLAIM, bare_namespace, "half")
