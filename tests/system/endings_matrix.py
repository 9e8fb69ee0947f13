"""More ends with something in their way: inputs that are gone, a server out of reach, a pause, an uninstall."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.home import claim, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    DATABASE,
    EVENT,
    REVISION,
    SECRET,
    Kind,
    composition,
    condition,
    in_trouble,
)
from tests.support.staff import Staff
from tests.support.system import ADMIN_SECRET, System
from tests.support.waiting import eventually
from tests.system.test_endings import LIMIT_S

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


_ROOT = Path(__file__).resolve().parents[2]


_CRDS, _BASE = _ROOT / "crds", _ROOT / "deploy" / "kustomize" / "base"


async def test_a_deletion_ends_by_the_inventory_when_composition_inputs_and_schemas_are_gone(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    await system.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "inputs", data={"suffix": "two"}))
    await system.create(COMPOSITION, _doomed("doomed"))
    body = claim(namespace, "stray", deletionPolicy="Delete", compositionRef={"name": "doomed"})
    home = await move_in(system, body)
    made = {child["metadata"]["annotations"]["fairlead.dev/resource"]: child for child in await home.children()}
    assert made.keys() == {"first", "second"}
    await _reported_in_one_event(system, namespace)
    mark = system.sql.mark()

    await staff.stop_composer()
    await _vanish(system, COMPOSITION, "doomed")
    for revision in await system.api.items(REVISION.path()):
        if revision["spec"]["compositionName"] == "doomed":
            await _vanish(system, REVISION, revision["metadata"]["name"])
    await system.delete(CONFIG_MAP, "fairlead-system", "inputs")
    async with _narrowed(system, (CLAIM, "username"), (DATABASE, "username")):
        await staff.start_composer()
        await home.delete()

    drops = [statement for statement in system.sql.changes(mark) if "DROP DATABASE" in statement.upper()]
    assert ["two" in drop for drop in drops] == [True, False], drops


async def test_a_paused_claim_is_left_alone_and_says_who_why_and_until_when(staff: Staff, namespace: str) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "paused", deletionPolicy="Delete"))
    name, end = (await home.child())["metadata"]["name"], "2999-01-01T00:00:00Z"
    limit = await system.connection_limit(home.database)
    pause = {"fairlead.dev/paused": end, "fairlead.dev/paused-reason": "a look at the disk"}
    await system.edit(CLAIM, namespace, home.name, {"metadata": {"annotations": pause}})
    copied = await system.until(DATABASE, namespace, name, in_trouble("Paused"))
    assert copied["metadata"]["annotations"]["fairlead.dev/paused"] == end
    await system.at_rest()
    mark = system.sql.mark()

    await system.server.server.execute(f"ALTER DATABASE {home.database} CONNECTION LIMIT 3")
    drifted = {"spec": {"forProvider": {"connectionLimit": 9}}}
    await system.edit(DATABASE, namespace, name, drifted)
    await system.api.delete(home.path)

    def waits(obj: JsonObject) -> bool:
        return "its deletion waits" in condition(obj, "Synced").get("message", "")

    paused = condition(await system.until(CLAIM, namespace, home.name, waits), "Synced")
    assert paused["reason"] == "Paused"
    for part in ("paused by kubectl-edit at 20", f"until {end}", "a look at the disk"):
        assert part in paused["message"]
    await system.ask_for_a_pass(DATABASE, namespace, name)
    await system.at_rest()
    child = await home.child()
    assert child["spec"]["forProvider"]["connectionLimit"] == 9
    assert "deletionTimestamp" not in child["metadata"]
    assert [statement for statement in system.sql.changes(mark) if "CONNECTION LIMIT 3" not in statement] == []
    assert limit != 3
    assert await system.connection_limit(home.database) == 3

    ended = {"fairlead.dev/paused": None, "fairlead.dev/paused-reason": None}
    await system.edit(CLAIM, namespace, home.name, {"metadata": {"annotations": ended}})
    await until_gone(system, home.path)
    assert home.drops_carried_out() == 1


async def test_an_uninstall_destroys_nothing_and_a_new_install_goes_on(staff: Staff, namespace: str) -> None:
    system = staff.system
    kept, doomed = await asyncio.gather(
        *(move_in(system, claim(namespace, name, deletionPolicy="Delete")) for name in ("kept", "doomed"))
    )
    installation = await system.api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation"))
    await system.kubectl.run("delete", "--kustomize", str(_BASE), limit_s=LIMIT_S)
    # Rights of the clouds that modules before this one installed went with the namespace.
    system.installed[:] = ["onprem"]
    await system.api.delete(doomed.path)
    for program in (staff.composer, staff.provider):
        await program.kill9()
    for home in (kept, doomed):
        await home.untouched()
        assert (await system.api.get(home.path))["metadata"]["finalizers"] == ["fairlead.dev/teardown"]

    await system.kubectl.run("apply", "--server-side", "--kustomize", str(_BASE))
    await system.create(
        CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "fairlead-installation", data=installation["data"])
    )
    await system.create(SECRET, SECRET.new("fairlead-onprem", ADMIN_SECRET, stringData=system.admin_login()))
    await staff.complete()

    await until_gone(system, doomed.path)
    assert doomed.drops_carried_out() == 1
    await kept.until_home()
    await kept.untouched()


def _doomed(name: str) -> JsonObject:
    def resource(label: str, suffix: str, **more: Any) -> JsonObject:
        login = "{{ claim.spec.username | default('stray') }}_" + suffix
        spec = {"forProvider": {"databaseName": login, "username": login}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        return {"name": label, "template": template, **more}

    second = resource("second", "{{ env.inputs.suffix }}", dependsOn=["first"])
    more: dict[str, Any] = {"connection": {"from": "first"}, "environments": ["inputs"]}
    return composition(name, resource("first", "one"), second, **more)


async def _vanish(system: System, kind: Kind, name: str) -> None:
    """Take an object away whatever holds it."""
    await system.api.merge(kind.path("", name), {"metadata": {"finalizers": []}})
    await system.delete(kind, "", name)


@asynccontextmanager
async def _narrowed(system: System, *fields: tuple[Kind, str]) -> AsyncIterator[None]:
    """Have schemas for the length of a block that refuse what is stored and said: texts of one character."""
    paths = [CRD.path("", f"{kind.plural}.{kind.group}") for kind, _ in fields]
    for path, (_, field) in zip(paths, fields, strict=True):
        definition = await system.api.get(path)
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        spec = schema["spec"]
        holder = spec["properties"].get("forProvider", spec)
        holder["properties"][field]["maxLength"] = 1
        schema["status"]["properties"]["conditions"]["items"]["properties"]["message"]["maxLength"] = 1
        await system.api.merge(path, {"spec": {"versions": definition["spec"]["versions"]}})
    try:
        yield
    finally:
        await system.kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(_CRDS))


async def _reported_in_one_event(system: System, namespace: str) -> None:
    """Prove that the composer reported the creation of a claim with two waves in one event."""

    async def reasons_reported() -> list[str]:
        events = await system.api.items(EVENT.path(namespace))
        return sorted(event["reason"] for event in events if event["reportingController"] == "fairlead-composer")

    assert await eventually(reasons_reported, "the creation is reported") == ["ChildCreated"]
