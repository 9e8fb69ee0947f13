"""An end whose inputs are gone: Composition, revisions and environment, and schemas that refuse what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.home import claim, move_in
from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, CRD, DATABASE, REVISION, composition
from tests.support.namespaces import take_away
from tests.support.staff import Staff
from tests.support.system import System
from tests.system.test_upgrades import CRDS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_deletion_ends_by_the_inventory_when_composition_inputs_and_schemas_are_gone(
    staff: Staff, namespace: str
) -> None:
    system, name = staff.system, f"{namespace}-doomed"
    await system.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "inputs", data={"suffix": "two"}))
    await system.create(COMPOSITION, _doomed(name))
    home = await move_in(system, claim(namespace, "stray", deletionPolicy="Delete", compositionRef={"name": name}))
    mark = system.sql.mark()

    await staff.stop_composer()
    await take_away(system.api, COMPOSITION, await system.api.get(COMPOSITION.path("", name)))
    for revision in await system.api.items(REVISION.path()):
        if revision["spec"]["compositionName"] == name:
            await take_away(system.api, REVISION, revision)
    await system.delete(CONFIG_MAP, "fairlead-system", "inputs")
    async with _narrowed(system):
        await staff.start_composer()
        await home.delete()

    drops = [statement for statement in system.sql.changes(mark) if "DROP DATABASE" in statement.upper()]
    assert ["two" in drop for drop in drops] == [True, False], drops


def _doomed(name: str) -> JsonObject:
    def resource(label: str, suffix: str, **more: Any) -> JsonObject:
        login = "{{ claim.spec.username | default('stray') }}_" + suffix
        spec = {"forProvider": {"databaseName": login, "username": login}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        return {"name": label, "template": template, **more}

    second = resource("second", "{{ env.inputs.suffix }}", dependsOn=["first"])
    return composition(name, resource("first", "one"), second, connection={"from": "first"}, environments=["inputs"])


@asynccontextmanager
async def _narrowed(system: System) -> AsyncIterator[None]:
    """Have schemas for the length of a block that refuse what is stored and said: texts of one character."""
    for kind in (CLAIM, DATABASE):
        path = CRD.path("", f"{kind.plural}.{kind.group}")
        versions = (await system.api.get(path))["spec"]["versions"]
        fields = versions[0]["schema"]["openAPIV3Schema"]["properties"]
        spec = fields["spec"]["properties"]
        spec.get("forProvider", fields["spec"])["properties"]["username"]["maxLength"] = 1
        fields["status"]["properties"]["conditions"]["items"]["properties"]["message"]["maxLength"] = 1
        await system.api.merge(path, {"spec": {"versions": versions}})
    try:
        yield
    finally:
        await system.kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(CRDS))
