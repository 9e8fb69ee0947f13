"""What happens over time, as functions that the API server in memory and the real one must pass alike.

They speak to both by the runtime's port, so that its errors are the same too.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest

from runtime.errors import ApiError, Forbidden, NamespaceTerminating, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import (
    CONFIG_MAPS,
    CRDS,
    NAMESPACES,
    Key,
    Object,
    Resource,
    deleting,
    key_of,
    loads,
    uid_of,
    version_of,
)
from tests.simulation.differential.worlds import GROUP

_FINALIZER: Final = "x.dev/a"
Probe: TypeAlias = Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class Cluster:
    """A server; `until` waits for a state that its controllers bring about."""

    kube: Kube
    name: str
    until: Callable[[Probe], Awaitable[None]]


Clause: TypeAlias = Callable[[Cluster], Awaitable[None]]


async def _delete(kube: Kube, resource: Resource, key: Key, propagation: str = "Background") -> Object | None:
    obj = await kube.get(resource, key)
    return await kube.delete(resource, key, uid=uid_of(obj), resource_version=version_of(obj), propagation=propagation)


async def _release(kube: Kube, resource: Resource, key: Key) -> None:
    obj = await kube.get(resource, key)
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(obj)}
    remove = {"op": "remove", "path": "/metadata/finalizers"}
    await kube.json_patch(resource, key, [version, remove], manager="m")


async def _is_absent(kube: Kube, resource: Resource, key: Key) -> bool:
    try:
        await kube.get(resource, key)
    except NotFound:
        return True
    return False


def _config_map(namespace: str, name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"k": "v"},
    }


async def a_namespace_ends_when_nothing_holds_what_is_in_it(cluster: Cluster) -> None:
    kube, name = cluster.kube, f"{cluster.name}-ends"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="m")
    await kube.create(CONFIG_MAPS, _config_map(name, "held", finalizers=[_FINALIZER]), manager="m")
    await kube.create(CONFIG_MAPS, _config_map(name, "free"), manager="m")
    ending = await _delete(kube, NAMESPACES, Key("", name))
    await cluster.until(lambda: _is_absent(kube, CONFIG_MAPS, Key(name, "free")))
    with pytest.raises(NamespaceTerminating) as refused:
        await kube.create(CONFIG_MAPS, _config_map(name, "late"), manager="m")
    held = await kube.get(CONFIG_MAPS, Key(name, "held"))
    await _release(kube, CONFIG_MAPS, Key(name, "held"))
    await cluster.until(lambda: _is_absent(kube, NAMESPACES, Key("", name)))
    with pytest.raises(NotFound) as absent:
        await kube.create(CONFIG_MAPS, _config_map(name, "late"), manager="m")

    assert ending is not None
    assert (ending["status"]["phase"], deleting(held)) == ("Terminating", True)
    reason = f"unable to create new content in namespace {name} because it is being terminated"
    assert refused.value.message == f'configmaps "late" is forbidden: {reason}'
    assert absent.value.message == f'namespaces "{name}" not found'


def _crd(plural: str, spec: Object) -> Object:
    kind = plural.removesuffix("s").capitalize()
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def _served(cluster: Cluster, plural: str, spec: Object) -> Resource:
    """Have a kind, and wait until it is served."""
    crd = _crd(plural, spec)
    resource = Resource(GROUP, "v1", crd["spec"]["names"]["kind"], plural)
    await cluster.kube.create(CRDS, crd, manager="m")

    async def served() -> bool:
        try:
            await cluster.kube.list_page(resource, Selection(namespace=cluster.name))
            await cluster.kube.create(resource, _custom(cluster, resource, "probe", {}), manager="m")
        except ApiError:
            return False
        return True

    await cluster.until(served)
    return resource


def _custom(cluster: Cluster, resource: Resource, name: str, spec: Object, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": cluster.name, **metadata}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


async def objects_are_read_by_the_schema_of_now(cluster: Cluster) -> None:
    kube, text = cluster.kube, {"type": "string"}
    resource = await _served(cluster, "changes", {"old": text, "both": text})
    made = await kube.create(resource, _custom(cluster, resource, "a", {"old": "x", "both": "x"}), manager="m")
    crd = copy.deepcopy(await kube.get(CRDS, Key("", f"changes.{GROUP}")))
    now = {"both": {**text, "enum": ["y"]}, "new": {**text, "default": "n"}}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = now
    await kube.replace(CRDS, crd, manager="m")

    async def changed() -> bool:
        return "new" in (await kube.get(resource, key_of(made)))["spec"]

    await cluster.until(changed)
    read = await kube.get(resource, key_of(made))
    labelled = {**read, "metadata": {**read["metadata"], "labels": {"a": "b"}}}
    replaced = await kube.replace(resource, labelled, manager="m")

    assert (read["spec"], version_of(read)) == ({"both": "x", "new": "n"}, version_of(made))
    # What was wrong already may stay so.
    assert (replaced["spec"], replaced["metadata"]["generation"]) == ({"both": "x", "new": "n"}, 1)


async def a_kind_ends_with_its_objects(cluster: Cluster) -> None:
    kube = cluster.kube
    resource = await _served(cluster, "leaves", {"old": {"type": "string"}})
    await kube.create(resource, _custom(cluster, resource, "held", {}, finalizers=[_FINALIZER]), manager="m")
    ending = await _delete(kube, CRDS, Key("", f"leaves.{GROUP}"))
    await cluster.until(lambda: _is_absent(kube, resource, Key(cluster.name, "probe")))
    with pytest.raises(Forbidden) as refused:
        await kube.create(resource, _custom(cluster, resource, "late", {}), manager="m")
    await _release(kube, resource, Key(cluster.name, "held"))
    await cluster.until(lambda: _is_absent(kube, CRDS, Key("", f"leaves.{GROUP}")))

    async def unserved() -> bool:
        try:
            await kube.list_page(resource, Selection(namespace=cluster.name))
        except NotFound:
            return True
        return False

    await cluster.until(unserved)
    assert ending is not None
    assert ending["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert refused.value.message.endswith("create not allowed while custom resource definition is terminating")


async def metadata_alone_is_a_kind_of_its_own(cluster: Cluster) -> None:
    kube = cluster.kube
    made = await kube.create(CONFIG_MAPS, _config_map(cluster.name, "a"), manager="m")
    read = await kube.get(CONFIG_MAPS, key_of(made), metadata_only=True)
    selection = Selection(namespace=cluster.name, fields="metadata.name=a", metadata_only=True)
    page = await kube.list_page(CONFIG_MAPS, selection)

    assert (read["kind"], sorted(read)) == ("PartialObjectMetadata", ["apiVersion", "kind", "metadata"])
    assert read["metadata"] == made["metadata"]
    assert [loads(item)["metadata"] for item in page.items] == [made["metadata"]]


CLAUSES: Final[tuple[Clause, ...]] = (
    a_namespace_ends_when_nothing_holds_what_is_in_it,
    objects_are_read_by_the_schema_of_now,
    a_kind_ends_with_its_objects,
    metadata_alone_is_a_kind_of_its_own,
)
