"""The API server in memory keeps the contract of the real one, and what composer and providers rely on beyond it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devcloud.apiserver.api_server import ApiServer
from devcloud.apiserver.housekeeping import collect
from fairlead.simulation import virtual_time
from runtime.errors import ApplyConflict, Gone, Invalid, NamespaceTerminating
from runtime.kube import Selection
from runtime.objects import CONFIG_MAPS, CRDS, NAMESPACES, Key, Object, Resource, loads
from tests.runtime.contract import CONTRACT, Clause

THINGS = Resource("example.dev", "v1", "Thing", "things")
_SPEC: Object = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 3},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "names": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_STATUS: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA: Object = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
CRD: Object = {
    "apiVersion": CRDS.api_version,
    "kind": CRDS.kind,
    "metadata": {"name": "things.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}, "subresources": {"status": {}}}
        ],
    },
}


def made() -> ApiServer:
    server = ApiServer(now=lambda: datetime(2026, 11, 21, tzinfo=UTC), uid=virtual_time.uids("test"))
    server.put(NAMESPACES, {"metadata": {"name": "ns"}})
    server.put(CRDS, CRD)
    server.resources["", "configmaps"] = CONFIG_MAPS
    return server


def thing(spec: Object, **meta: Any) -> Object:
    return {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns", **meta},
            "spec": spec}  # fmt: skip


async def applied(server: ApiServer, manager: str, spec: Object, *, force: bool = False) -> Object:
    return await server.apply(THINGS, thing(spec), manager=manager, force=force)


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_the_server_keeps_the_contract(clause: Clause) -> None:
    await clause(made(), "ns")


async def test_defaults_are_set_and_an_unknown_field_is_refused() -> None:
    server = made()
    with pytest.raises(Invalid, match=r'unknown field "spec\.unknown"'):
        await server.create(THINGS, thing({"unknown": 1}), manager="m")
    created = await server.create(THINGS, thing({}), manager="m")
    with pytest.raises(Invalid, match=r'unknown field "spec\.unknown"'):
        await server.replace(THINGS, {**created, "spec": {"unknown": 1}}, manager="m")
    with pytest.raises(Invalid, match=r'unknown field "spec\.unknown"'):
        await server.json_patch(
            THINGS, Key("ns", "a"), [{"op": "add", "path": "/spec/unknown", "value": 1}], manager="m"
        )

    assert created["spec"] == {"size": 3}
    assert created["metadata"]["generation"] == 1


async def test_an_apply_meets_who_owns_the_field() -> None:
    server = made()
    await server.create(THINGS, thing({"size": 1}), manager="a")
    with pytest.raises(ApplyConflict, match=r'1 conflict: conflict with "a" using example\.dev/v1: \.spec\.size'):
        await applied(server, "b", {"size": 2})

    assert (await applied(server, "b", {"size": 2}, force=True))["spec"]["size"] == 2


async def test_what_is_applied_no_more_goes_unless_another_owns_it() -> None:
    server = made()
    await server.create(THINGS, thing({}), manager="a")
    await applied(server, "b", {"ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}], "tags": ["s", "t"]})
    await applied(server, "c", {"ports": [{"name": "y", "port": 2}], "names": {"k": "v"}})
    left = await applied(server, "b", {"ports": [{"name": "x", "port": 1}], "tags": ["t"]})

    assert left["spec"]["ports"] == [{"name": "x", "port": 1}, {"name": "y", "port": 2}]
    assert left["spec"]["tags"] == ["t"]
    assert (await applied(server, "c", {}))["spec"]["ports"] == [{"name": "x", "port": 1}]


async def test_the_same_apply_changes_no_version() -> None:
    server = made()
    await server.create(THINGS, thing({}), manager="a")
    first = await applied(server, "b", {"names": {"k": "v"}})

    assert await applied(server, "b", {"names": {"k": "v"}}) == first


async def test_a_status_is_written_beside_the_generation() -> None:
    server = made()
    await server.create(THINGS, thing({}), manager="a")
    body = {**thing({"size": 9}), "status": {"is": "there"}}
    written = await server.apply(THINGS, body, manager="b", force=True, subresource="status")

    assert (written["status"], written["spec"]["size"], written["metadata"]["generation"]) == ({"is": "there"}, 3, 1)
    assert (await applied(server, "c", {"size": 4}, force=True))["metadata"]["generation"] == 2


async def test_finalizers_hold_what_is_deleted() -> None:
    server = made()
    created = await server.create(THINGS, thing({}, finalizers=["x/y"]), manager="a")
    meta = created["metadata"]
    held = await server.delete(THINGS, Key("ns", "a"), uid=meta["uid"], resource_version=meta["resourceVersion"])
    assert held is not None
    remove = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    await server.json_patch(THINGS, Key("ns", "a"), remove, manager="a")

    assert server.find(THINGS, Key("ns", "a")) is None


async def test_what_has_no_owner_left_is_collected() -> None:
    server = made()
    owner = await server.create(THINGS, thing({}), manager="a")
    reference = {"apiVersion": "example.dev/v1", "kind": "Thing", "name": "a", "uid": owner["metadata"]["uid"]}
    meta = {"name": "of-a", "namespace": "ns", "ownerReferences": [reference]}
    await server.create(CONFIG_MAPS, {"metadata": meta}, manager="a")
    collect(server)
    assert server.find(CONFIG_MAPS, Key("ns", "of-a"))
    server.remove(THINGS, Key("ns", "a"))
    collect(server)

    assert server.find(CONFIG_MAPS, Key("ns", "of-a")) is None


async def test_a_namespace_ends_with_all_that_is_in_it() -> None:
    server = made()
    await server.create(THINGS, thing({}), manager="a")
    namespace = server.find(NAMESPACES, Key("", "ns"))
    assert namespace is not None
    server.end(NAMESPACES, namespace)
    with pytest.raises(NamespaceTerminating):
        await server.create(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "ns"}}, manager="a")
    collect(server)
    collect(server)

    assert server.find(NAMESPACES, Key("", "ns")) is None


async def test_a_watch_and_a_page_from_before_a_compaction_are_gone() -> None:
    server, selection = made(), Selection(namespace="ns")
    for name in ("a", "b"):
        await server.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "ns"}}, manager="a")
    page = await server.list_page(CONFIG_MAPS, selection, limit=1)
    server.compact()
    with pytest.raises(Gone, match="continue parameter is too old"):
        await server.list_page(CONFIG_MAPS, selection, limit=1, next_page=page.next_page)
    with pytest.raises(Gone, match="too old resource version: 1 "):
        await anext(server.watch(CONFIG_MAPS, selection, resource_version="1", timeout=timedelta(seconds=1)))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("color=red", ["a"]),
        ("color==red", ["a"]),
        ("color!=red", ["b", "c"]),
        ("color", ["a", "b"]),
        ("!color", ["c"]),
        ("color in (red, blue)", ["a", "b"]),
        ("color notin (red)", ["b", "c"]),
        ("color in (red,blue),size=s", ["b"]),
    ],
)
async def test_a_list_has_what_its_labels_select(selector: str, names: list[str]) -> None:
    server = made()
    for name, labels in (("a", {"color": "red"}), ("b", {"color": "blue", "size": "s"}), ("c", {})):
        await server.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "ns", "labels": labels}}, manager="a")
    page = await server.list_page(CONFIG_MAPS, Selection(namespace="ns", labels=selector))

    assert [loads(item)["metadata"]["name"] for item in page.items] == names


async def test_more_than_ten_updaters_are_merged_into_one() -> None:
    server = made()
    data = {"k": "v"}
    obj = await server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "ns"}, "data": data}, manager="m")
    for number in range(12):
        data[f"k{number}"] = "v"
        obj = await server.replace(CONFIG_MAPS, {**obj, "data": {**data}}, manager=f"m{number:02}")
    owned = {entry["manager"]: entry["fieldsV1"]["f:data"] for entry in obj["metadata"]["managedFields"]}

    assert len(owned) == 10
    assert {"f:k", "f:k0", "f:k1"} <= owned["ancient-changes"].keys()
    assert owned["m11"] == {"f:k11": {}}
