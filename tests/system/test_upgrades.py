"""Upgrades and recoveries: nothing is lost, nothing is doubled. docs/upgrades.md has the commands of each."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from fairlead.cli import run
from tests.support import yaml_texts
from tests.support.api import ApiError, JsonObject
from tests.support.home import Home, claim, move_in, poke
from tests.support.kinds import (
    CLAIM,
    CONFIG_MAP,
    DATABASE,
    PROVIDER_CONFIG,
    SECRET,
    is_ready,
)
from tests.support.snapshots import etcd_goes_back
from tests.support.staff import Staff
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

ROOT = Path(__file__).resolve().parents[2]
CRDS, BASE, COMPOSITIONS = ROOT / "crds", ROOT / "deploy" / "kustomize" / "base", ROOT / "compositions"
INSTALLATION = CONFIG_MAP.path("fairlead-system", "fairlead-installation")
LIMIT_S = 180.0
_NEXT: dict[str, dict[str, str]] = {
    f"{CLAIM.group}_{CLAIM.plural}.yaml": {},
    f"{DATABASE.group}_{DATABASE.plural}.yaml": {"default": "standard"},
}
"""The CRDs that the next version changes, and what it says more of the new field."""


# CRDs


async def test_crds_with_more_fields_and_the_former_ones_again_leave_living_objects_as_they_are(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "upgraded"))
    child = await home.child()
    since = system.sql.mark()

    await _apply_crds(system, await asyncio.to_thread(_next_crds, system.folder / "next-crds"))
    await system.edit(CLAIM, namespace, "upgraded", {"spec": {"tier": "gold"}})
    upgraded = await home.until_home()
    await poke(system, home.path)
    await system.at_rest()
    assert upgraded["spec"]["tier"] == "gold"
    assert (await home.child())["spec"]["tier"] == "standard"

    # What a rollback of the release does: the former schemas, to which the new fields are unknown.
    await _apply_crds(system, CRDS)
    await staff.stop()
    await staff.complete()
    await system.edit(CLAIM, namespace, "upgraded", {"spec": {"passwordRotation": {"token": "after"}}})
    await home.until_home()
    assert "tier" not in (await system.api.get(home.path))["spec"]
    assert (await home.child())["metadata"]["uid"] == child["metadata"]["uid"]
    assert [statement for statement in system.sql.changes(since) if "DATABASE" in statement] == []
    await home.untouched()


def _next_crds(folder: Path) -> Path:
    """Write the CRDs of a next version: one more field of a claim's spec, one with a default of a child's."""
    folder.mkdir()
    for name, more in _NEXT.items():
        crd = yaml_texts.load(CRDS / name)
        for version in crd["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            spec["tier"] = {"type": "string", "description": "A field of the next version.", **more}
        (folder / name).write_bytes(msgspec.json.encode(crd))
    return folder


async def _apply_crds(system: System, folder: Path) -> None:
    """Apply the CRDs that the next version changes, and wait until the API server prunes by their schemas."""
    files = (f"--filename={folder / name}" for name in _NEXT)
    await system.kubectl.run("apply", "--server-side", "--force-conflicts", *files)
    has_field = folder != CRDS

    async def is_in_use() -> bool:
        probe = CLAIM.new("default", "probe", spec={"version": "16", "size": "small", "tier": "gold"})
        try:
            query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "probe"}
            await system.api.create(CLAIM.path("default"), probe, **query)
        except ApiError as error:
            if error.status != 400:
                raise
            return not has_field
        return has_field

    await eventually(is_in_use, f"the CRDs of {folder.name} are in use", limit_s=LIMIT_S)


# A restored etcd


async def test_an_etcd_out_of_a_snapshot_loses_and_doubles_no_database(staff: Staff) -> None:
    system = staff.system
    async with system.namespace() as namespace:
        rotated, deleted = [
            await move_in(system, claim(namespace, name, deletionPolicy="Delete")) for name in ("rotated", "deleted")
        ]
        async with etcd_goes_back(staff):
            before = await system.binding(namespace, "rotated")
            await system.edit(CLAIM, namespace, "rotated", {"spec": {"passwordRotation": {"token": "later"}}})
            await _until_another_password(system, rotated, before["password"])
            newcomer = await move_in(system, claim(namespace, "newcomer"))
            await deleted.delete()
            assert deleted.drops_carried_out() == 1

        # Older than the cloud: the password of then is set again, and opens the database.
        await rotated.until_home()
        await rotated.untouched()
        # It was deleted after the snapshot: no empty one stands in its place.
        await deleted.until_stalled("DatabaseLost")
        assert (deleted.creates(), deleted.drops_carried_out()) == (1, 1)
        # It came after the snapshot: nobody claims it, and it is there.
        assert await system.api.find(newcomer.path) is None
        await newcomer.untouched()
        await adopt(system, newcomer)
        await newcomer.untouched()


async def _until_another_password(system: System, home: Home, password: str) -> None:
    async def is_published() -> bool:
        return (await system.binding(home.namespace, home.name))["password"] != password

    await eventually(is_published, "another password is published", limit_s=LIMIT_S)
    await home.until_home()


async def adopt(system: System, home: Home) -> None:
    """Apply a claim again, and let it have its database by the command; the password went with the Secrets."""
    await system.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": True}})
    await system.create(CLAIM, claim(home.namespace, home.name))
    await home.until_stalled("PredecessorFound")
    installation = (await system.api.get(INSTALLATION))["data"]["id"]
    assert await run_command(system, "adopt", "--installation", installation) == 0

    # What a person does as the claim's conditions say it.
    while waits_for(claimed := await until_settled(system, home)):
        if "SecretNotOwned" in reasons(claimed):
            await system.api.delete(SECRET.path(home.namespace, f"{home.name}-connection"))
            await poke(system, home.path)
            await until_reasons_lack(system, home, "SecretNotOwned")
        else:
            await system.api.merge(home.path, {"spec": {"passwordRotation": {"token": "adopted"}}})
            await until_reasons_lack(system, home, "PasswordUnknown")
    await home.until_home()


def reasons(claimed: JsonObject) -> set[str]:
    return {entry["reason"] for entry in claimed.get("status", {}).get("conditions", [])}


def waits_for(claimed: JsonObject) -> set[str]:
    """Return the reasons for which a claim with an adopted database waits for a person."""
    return reasons(claimed) & {"SecretNotOwned", "PasswordUnknown"}


async def until_settled(system: System, home: Home) -> JsonObject:
    def is_settled(obj: JsonObject) -> bool:
        return is_ready(obj) or bool(waits_for(obj))

    return await system.until(CLAIM, home.namespace, home.name, is_settled, limit_s=LIMIT_S)


async def until_reasons_lack(system: System, home: Home, reason: str) -> None:
    await system.until(CLAIM, home.namespace, home.name, lambda obj: reason not in reasons(obj), limit_s=LIMIT_S)


async def run_command(system: System, *arguments: str) -> int:
    return await asyncio.to_thread(run, [*arguments, "--kubeconfig", str(system.plane.kubeconfig)])
