"""What a person sees through kubectl alone."""

import asyncio
import secrets

import pytest

from devcloud.errors import DevcloudError
from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CRD,
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
_DESCRIPTION_MIN_CHARS = 30
_NOT_YET_S = 4


def _fields(schema: JsonObject, path: str) -> list[tuple[str, JsonObject]]:
    fields: list[tuple[str, JsonObject]] = []
    for name, field in schema.get("properties", {}).items():
        fields.append((f"{path}.{name}", field))
        fields.extend(_fields(field, f"{path}.{name}"))
        fields.extend(_fields(field.get("items", {}), f"{path}.{name}"))
    return fields


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


async def test_explain_reads_as_documentation(system: System) -> None:
    crd = await system.api.get(CRD.path("", f"{CLAIM.plural}.{CLAIM.group}"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = _fields(spec, "pgi.spec")
    overview = await system.kubectl.run("explain", "pgi.spec", "--recursive")
    assert len(fields) >= 25
    for path, field in fields:
        assert f"  {path.rpartition('.')[2]}\t" in overview
        assert len(field["description"]) >= _DESCRIPTION_MIN_CHARS, path
    pages = await asyncio.gather(*(system.kubectl.run("explain", path) for path, _ in fields))
    for (path, field), page in zip(fields, pages, strict=True):
        words = page.partition("DESCRIPTION:")[2].split()
        assert " ".join(field["description"].split()) in " ".join(words), path


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


async def test_describe_shows_the_cause_and_no_secret_value(running: System, namespace: str) -> None:
    await running.create(CLAIM, claim(namespace, "shown"))
    await running.until(CLAIM, namespace, "shown", is_ready)
    password = (await running.binding(namespace, "shown"))["password"]
    for kind in ("pgi", "postgresdatabases"):
        page = await running.kubectl.run("describe", kind, f"--namespace={namespace}")
        assert "Available" in page
        assert password not in page
