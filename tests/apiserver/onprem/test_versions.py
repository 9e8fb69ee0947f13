"""A version or a storage typed by mistake is withdrawn by typing the former one; what is carried out goes no lower."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.api import Api, ApiError, JsonObject

# A process at work would answer what is stored.
pytestmark = pytest.mark.usefixtures("alone")

CLAIM = "database.fairlead.dev/v1alpha1"
DATABASE = "onprem.fairlead.dev/v1alpha1"


class Edit(msgspec.Struct, frozen=True):
    """An edit of a claim, from one spec to another beside what was carried out; `refused` is said by the API server."""

    before: dict[str, Any]
    after: dict[str, Any]
    done: dict[str, Any]
    refused: str = ""


NEITHER = "storageGiB can neither shrink below status.storageGiB"
EDITS = {
    "an upgrade": Edit({"version": "16"}, {"version": "17"}, {"version": "16"}),
    "an upgrade withdrawn": Edit({"version": "17"}, {"version": "16"}, {"version": "16"}),
    "an upgrade withdrawn before anything was made": Edit({"version": "17"}, {"version": "16"}, {}),
    "a version below what runs": Edit(
        {"version": "16"}, {"version": "15"}, {"version": "16"}, "version cannot go below the one that runs"
    ),
    "an upgrade withdrawn too far": Edit(
        {"version": "17"}, {"version": "15"}, {"version": "16"}, "version cannot go below the one that runs"
    ),
    "another edit beside a server that was upgraded": Edit(
        {"version": "16", "highAvailability": False}, {"version": "16", "highAvailability": True}, {"version": "18"}
    ),
    "storage withdrawn that nobody reserved": Edit({"storageGiB": 2000}, {"storageGiB": 200}, {}),
    "storage removed that nobody reserved": Edit({"storageGiB": 2000}, {}, {}),
    "a growth withdrawn that the cloud refused": Edit({"storageGiB": 2000}, {"storageGiB": 100}, {"storageGiB": 100}),
    "storage grown": Edit({"storageGiB": 100}, {"storageGiB": 200}, {"storageGiB": 100}),
    "storage shrunk": Edit({"storageGiB": 100}, {"storageGiB": 50}, {"storageGiB": 100}, NEITHER),
    "storage removed": Edit({"storageGiB": 100}, {}, {"storageGiB": 100}, NEITHER),
    "another edit beside more storage than asked for": Edit(
        {"storageGiB": 100}, {"storageGiB": 100, "highAvailability": True}, {"storageGiB": 200}
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
async def test_an_edit_of_a_claim_is_held_against_what_was_carried_out(api: Api, namespace: str, edit: Edit) -> None:
    path = api.path(CLAIM, "postgresqlinstances", namespace)
    spec = {"version": "16", "size": "small", "compositionRef": {"name": "no-such-one"}}
    meta = {"name": "orders", "namespace": namespace}
    body: JsonObject = {"apiVersion": CLAIM, "kind": "PostgreSQLInstance", "metadata": meta}
    created = await api.create(path, body | {"spec": spec | edit.before})
    status = {"observedGeneration": 1, **edit.done}
    # What runs is written down whatever the spec says.
    reported = await api.request("PUT", f"{path}/orders/status", created | {"status": status})
    assert {name: reported["status"].get(name) for name in edit.done} == edit.done

    edited = reported | {"spec": spec | edit.after}
    if not edit.refused:
        await api.request("PUT", f"{path}/orders", edited)
        return
    with pytest.raises(ApiError) as refusal:
        await api.request("PUT", f"{path}/orders", edited)
    assert refusal.value.status == 422
    assert edit.refused in str(refusal.value)


async def test_the_version_of_a_database_goes_down_again(api: Api, namespace: str) -> None:
    path = api.path(DATABASE, "postgresdatabases", namespace)
    fields = {"databaseName": "orders", "username": "orders"}
    meta = {"name": "orders", "namespace": namespace}
    body: JsonObject = {"apiVersion": DATABASE, "kind": "PostgresDatabase", "metadata": meta}
    for version in ("16", "17", "16"):
        spec = {"forProvider": fields | {"version": version}}
        body = await (
            api.request("PUT", f"{path}/orders", body | {"spec": spec})
            if "uid" in body["metadata"]
            else api.create(path, body | {"spec": spec})
        )
    assert body["spec"]["forProvider"]["version"] == "16"
