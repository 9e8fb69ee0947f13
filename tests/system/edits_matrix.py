"""More edits: fields that are fought over, normalised, removed, refused, or never become smaller."""

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    composition,
    is_ready,
)
from tests.support.processes import running_program
from tests.support.system import COMPOSER, System
from tests.system.test_edits import ready

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_field_that_is_taken_by_force_again_and_again_rests_while_others_go_on(
    running: System, namespace: str
) -> None:
    child = await ready(running, namespace, "fought")
    name = child["metadata"]["name"]
    theirs = DATABASE.new(namespace, name, spec={"forProvider": {**child["spec"]["forProvider"], "connectionLimit": 3}})
    audit = running.audit()

    def rests(obj: JsonObject) -> bool:
        return any(entry.get("resting") for entry in obj["status"]["inventory"])

    for _ in range(4):
        await running.api.apply(DATABASE.path(namespace, name), theirs, manager="rival")
        await running.at_rest(for_s=1.0)
    obj = await running.until(CLAIM, namespace, "fought", rests)
    synced = next(entry for entry in obj["status"]["conditions"] if entry["type"] == "Synced")
    assert synced["reason"] == "FieldConflict"
    assert "rival" in synced["message"]
    assert "connectionLimit" in synced["message"]
    applies = audit.requests(Match(user=COMPOSER, verbs=WRITES, resource="postgresdatabases", namespace=namespace))
    assert len(applies) <= 10
    # A new generation of the claim ends the rest: all of it is carried out at once.
    await running.edit(CLAIM, namespace, "fought", {"spec": {"size": "large"}})

    def follows(obj: JsonObject) -> bool:
        wanted = obj["spec"]["forProvider"]
        return wanted["parameters"] == {"work_mem": "16MB"} and wanted["connectionLimit"] not in (3, limit)

    limit = child["spec"]["forProvider"]["connectionLimit"]
    await running.until(DATABASE, namespace, name, follows)
    await running.until(CLAIM, namespace, "fought", is_ready)


def _with_parameters(name: str, **parameters: str) -> JsonObject:
    spec: JsonObject = {"forProvider": {"databaseName": "app", "username": "app", "connectionLimit": 7}}
    if parameters:
        spec["forProvider"]["parameters"] = parameters
    template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
    return composition(name, {"name": "database", "template": template}, connection={"from": "database"})


@pytest.mark.parametrize("restart", [False, True], ids=["while the composer runs", "while the composer is away"])
async def test_a_field_removed_from_the_template_leaves_the_child(
    running: System, namespace: str, *, restart: bool
) -> None:
    async with running.composition(_with_parameters(f"{namespace}-c", work_mem="9MB")) as name:
        child = await ready(running, namespace, "trimmed", compositionRef={"name": name})
        at = namespace, child["metadata"]["name"]

        def is_whole(obj: JsonObject) -> bool:
            return bool(obj["spec"]["forProvider"]["parameters"] == {"work_mem": "9MB"})

        assert is_whole(child)
        # What a hand had taken is ours to remove again.
        await running.edit(DATABASE, *at, {"spec": {"forProvider": {"parameters": {"work_mem": "1MB"}}}})
        await running.until(DATABASE, *at, is_whole)
        if restart:
            await running_program(running.started, "composer").terminate()
        await running.apply(COMPOSITION, _with_parameters(name))
        if restart:
            await running.start_composer()

        def trimmed(obj: JsonObject) -> bool:
            return "parameters" not in obj["spec"]["forProvider"]

        after = await running.until(DATABASE, *at, trimmed)
        assert after["spec"]["forProvider"]["connectionLimit"] == 7
        assert after["metadata"]["uid"] == child["metadata"]["uid"]
        await running.until(CLAIM, namespace, "trimmed", is_ready)
