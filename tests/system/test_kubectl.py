"""What a person sees through kubectl alone."""

import secrets

import pytest

from devcloud.errors import DevcloudError
from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    PROVIDER_CONFIG,
    Kind,
    claim,
    composition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.processes import running_program
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_COLUMNS = 100
_NOT_YET_S = 4


async def test_kstatus_says_in_progress_until_a_controller_has_looked(system: System, namespace: str) -> None:
    """The generic rule of kstatus: an observedGeneration that is not the generation means InProgress."""
    template = {"apiVersion": "v1", "kind": "ConfigMap"}
    new: dict[Kind, JsonObject] = {
        CLAIM: claim(namespace, "untouched"),
        DATABASE: database(namespace, "untouched"),
        PROVIDER_CONFIG: system.provider_config(namespace),
        COMPOSITION: composition(namespace, {"name": "settings", "template": template}),
    }
    for kind, obj in new.items():
        created = await system.api.create(kind.path(obj["metadata"].get("namespace", "")), obj, dryRun="All")
        assert created["status"] == {"observedGeneration": -1}, kind.kind
        assert created["metadata"]["generation"] == 1


async def test_a_list_of_claims_fits_100_columns_at_names_of_20_characters(running: System) -> None:
    name = f"a-{secrets.token_hex(9)}"
    assert len(name) == 20
    await running.namespaced(name)
    await running.create(CLAIM, claim(name, name))
    await running.create(CLAIM, claim(name, "b" * 20, compositionRef={"name": "no-such-composition"}))
    await running.until(CLAIM, name, name, is_ready)
    await running.until(CLAIM, name, "b" * 20, in_trouble("CompositionNotFound"))
    table = (await running.kubectl.run("get", "pgi", "-A")).splitlines()
    assert table[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]
    assert max(len(line.rstrip()) for line in table) <= _COLUMNS
    assert any("CompositionNotFound" in line for line in table)
    assert any(line.split()[:3] == [name, name, "True"] for line in table)


async def test_wait_for_ready_right_after_an_edit_does_not_return_early(running: System, namespace: str) -> None:
    await running.create(CLAIM, claim(namespace, "edited"))
    await running.until(CLAIM, namespace, "edited", is_ready)
    (child,) = await running.children(namespace, "edited")
    wait = ("wait", "--for=condition=Ready", "pgi/edited", f"--namespace={namespace}")
    provider = running_program(running.started, "provider")
    provider.freeze()
    try:
        await running.edit(CLAIM, namespace, "edited", {"spec": {"size": "xlarge"}})
        with pytest.raises(DevcloudError, match="timed out"):
            await running.kubectl.run(*wait, f"--timeout={_NOT_YET_S}s")
    finally:
        provider.thaw()
    await running.kubectl.run(*wait, "--timeout=60s")
    (wanted,) = await running.children(namespace, "edited")
    limit = wanted["spec"]["forProvider"]["connectionLimit"]
    assert limit != child["spec"]["forProvider"]["connectionLimit"]
    assert await running.connection_limit(child["status"]["externalName"]) == limit
