"""What the port promises, on the real API server."""

from datetime import timedelta
from typing import Any

import pytest

from runtime.errors import (
    ApiError,
    ApplyConflict,
    Gone,
    Invalid,
    NamespaceTerminating,
    NotFound,
    WriteConflict,
)
from runtime.finalizers import removal
from runtime.kube import Selection
from runtime.kube_client import KubeClient
from runtime.kube_errors import from_event
from runtime.objects import (
    CONFIG_MAPS,
    NAMESPACES,
    SECRETS,
    Key,
    Object,
    Resource,
    deleting,
    finalizers_of,
    key_of,
    loads,
    uid_of,
    version_of,
)
from runtime.preconditions import apply_metadata
from runtime.status import write_status
from tests.support.memory_kube import WIDGETS

NOWHERE = Resource("nobody.example.dev", "v1", "Nothing", "nothings")
NO_UID = "00000000-0000-4000-8000-000000000000"


def config_map(namespace: str, name: str, **more: Any) -> Object:
    meta = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **more}


def widget(namespace: str, name: str, **more: Any) -> Object:
    meta = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
    return {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, "metadata": meta, **more}


async def test_an_unknown_field_is_refused_by_create_and_by_apply(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(Invalid):
        await kube.create(CONFIG_MAPS, config_map(namespace, "a", nonsense=1), manager="one")
    with pytest.raises(Invalid):
        await kube.apply(CONFIG_MAPS, config_map(namespace, "a", nonsense=1), manager="one")


async def test_apply_without_force_names_managers_and_fields(kube: KubeClient, namespace: str) -> None:
    await kube.create(CONFIG_MAPS, config_map(namespace, "a", data={"x": "1"}), manager="one")
    with pytest.raises(ApplyConflict) as refusal:
        await kube.apply(CONFIG_MAPS, config_map(namespace, "a", data={"x": "2"}), manager="two")
    forced = await kube.apply(CONFIG_MAPS, config_map(namespace, "a", data={"x": "2"}), manager="two", force=True)

    assert [(cause.field, '"one"' in cause.message) for cause in refusal.value.causes] == [(".data.x", True)]
    assert forced["data"] == {"x": "2"}


async def test_apply_with_a_uid_raises_no_dead(kube: KubeClient, namespace: str) -> None:
    body = config_map(namespace, "never", metadata={"uid": NO_UID})
    with pytest.raises(WriteConflict):
        await kube.apply(CONFIG_MAPS, body, manager="one")
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, Key(namespace, "never"))


async def test_a_finalizer_goes_only_from_the_object_that_was_read(kube: KubeClient, namespace: str) -> None:
    body = config_map(namespace, "a", metadata={"finalizers": ["example.dev/a", "example.dev/b"]})
    first = await kube.create(CONFIG_MAPS, body, manager="one")
    second = await kube.apply(CONFIG_MAPS, config_map(namespace, "a", data={"x": "1"}), manager="two")
    with pytest.raises(WriteConflict):
        await kube.json_patch(CONFIG_MAPS, key_of(first), removal(first, "example.dev/b"), manager="one")
    third = await kube.json_patch(CONFIG_MAPS, key_of(second), removal(second, "example.dev/b"), manager="one")
    fourth = await kube.json_patch(CONFIG_MAPS, key_of(third), removal(third, "example.dev/a"), manager="one")

    assert finalizers_of(third) == ("example.dev/a",)
    assert finalizers_of(fourth) == ()


async def test_a_patch_that_makes_nonsense_is_invalid_and_no_conflict(kube: KubeClient, namespace: str) -> None:
    obj = await kube.create(CONFIG_MAPS, config_map(namespace, "a"), manager="one")
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(obj)},
        {"op": "add", "path": "/data", "value": 7},
    ]
    with pytest.raises(Invalid):
        await kube.json_patch(CONFIG_MAPS, key_of(obj), patch, manager="one")


async def test_a_deletion_that_finalizers_hold_gives_the_object_at_its_new_version(
    kube: KubeClient, namespace: str
) -> None:
    body = config_map(namespace, "a", metadata={"finalizers": ["example.dev/hold"]})
    obj = await kube.create(CONFIG_MAPS, body, manager="one")
    left = await kube.delete(CONFIG_MAPS, key_of(obj), uid=uid_of(obj), resource_version=version_of(obj))

    assert left is not None
    assert deleting(left)
    assert version_of(left) == version_of(await kube.get(CONFIG_MAPS, key_of(obj))) != version_of(obj)
    await kube.json_patch(CONFIG_MAPS, key_of(obj), removal(left, "example.dev/hold"), manager="one")


async def test_a_create_in_a_dying_namespace_ends_quietly(kube: KubeClient, namespace: str) -> None:
    held = config_map(namespace, "held", metadata={"finalizers": ["example.dev/hold"]})
    held = await kube.create(CONFIG_MAPS, held, manager="one")
    alive = await kube.get(NAMESPACES, Key("", namespace))
    await kube.delete(NAMESPACES, Key("", namespace), uid=uid_of(alive), resource_version=version_of(alive))
    try:
        with pytest.raises(NamespaceTerminating):
            await kube.create(CONFIG_MAPS, config_map(namespace, "late"), manager="one")
    finally:
        held = await kube.get(CONFIG_MAPS, key_of(held))
        await kube.json_patch(CONFIG_MAPS, key_of(held), removal(held, "example.dev/hold"), manager="one")


async def test_a_token_that_is_nonsense_is_refused(kube: KubeClient, namespace: str) -> None:
    with pytest.raises((Gone, Invalid)):
        await kube.list_page(CONFIG_MAPS, Selection(namespace=namespace), next_page="nonsense")


@pytest.mark.usefixtures("widgets")
async def test_a_watch_from_before_the_server_s_memory_is_gone(kube: KubeClient, namespace: str) -> None:
    # The server's memory of this kind begins with its definition, long after the cluster's first version.
    stream = kube.watch(WIDGETS, Selection(namespace=namespace), resource_version="1", timeout=timedelta(seconds=20))
    try:
        outcome = from_event((await anext(aiter(stream))).raw)
    except Gone as refusal:
        outcome = refusal

    assert isinstance(outcome, Gone)


@pytest.mark.usefixtures("widgets")
async def test_a_status_that_means_another_object_is_a_conflict(kube: KubeClient, namespace: str) -> None:
    stored = await kube.create(WIDGETS, widget(namespace, "w", spec={"size": 1}), manager="one")
    answer = await write_status(kube, WIDGETS, stored, {"phase": "Ready"}, manager="one/status")
    again = await write_status(kube, WIDGETS, answer or {}, {"phase": "Ready"}, manager="one/status")
    stranger = {**stored, "metadata": {**stored["metadata"], "uid": NO_UID}}
    with pytest.raises(WriteConflict):
        await write_status(kube, WIDGETS, stranger, {"phase": "Lost"}, manager="one/status")
    other = widget(namespace, "w", spec={"size": 2}, metadata={"uid": NO_UID})
    with pytest.raises(WriteConflict):
        await kube.apply(WIDGETS, other, manager="one", force=True)
    with pytest.raises((NotFound, WriteConflict)):
        await write_status(kube, WIDGETS, widget(namespace, "gone", metadata={"uid": NO_UID}), {"a": 1}, manager="one")

    assert (answer or {})["status"] == {"phase": "Ready"}
    assert (answer or {})["metadata"]["generation"] == stored["metadata"]["generation"]
    assert again is None


@pytest.mark.usefixtures("widgets")
async def test_a_status_is_written_over_an_edit_of_the_spec_and_never_over_another_status(
    kube: KubeClient, namespace: str
) -> None:
    read = await kube.create(WIDGETS, widget(namespace, "w", spec={"size": 1}), manager="one")
    await kube.apply(WIDGETS, widget(namespace, "w", spec={"size": 2}), manager="person", force=True)
    answer = await write_status(kube, WIDGETS, read, {"phase": "Ready"}, manager="one/status")
    with pytest.raises(WriteConflict):
        await write_status(kube, WIDGETS, read, {"phase": "Old"}, manager="one/status")
    stored = await kube.get(WIDGETS, key_of(read))

    assert (answer or {})["spec"] == stored["spec"] == {"size": 2}
    assert stored["status"] == {"phase": "Ready"}


@pytest.mark.usefixtures("widgets")
async def test_an_apply_at_another_version_is_a_conflict_of_writes(kube: KubeClient, namespace: str) -> None:
    read = await kube.create(WIDGETS, widget(namespace, "w", spec={"size": 1}), manager="one")
    await kube.apply(WIDGETS, widget(namespace, "w", spec={"size": 2}), manager="person", force=True)
    for force in (False, True):
        late = widget(namespace, "w", spec={"size": 2}, metadata=apply_metadata(read))
        with pytest.raises(WriteConflict):
            await kube.apply(WIDGETS, late, manager="one", force=force)
    now = await kube.get(WIDGETS, key_of(read))
    rival = widget(namespace, "w", spec={"size": 3}, metadata=apply_metadata(now))
    with pytest.raises(ApplyConflict):
        await kube.apply(WIDGETS, rival, manager="one")


@pytest.mark.usefixtures("widgets")
async def test_an_apply_that_does_not_fit_the_schema_is_invalid(kube: KubeClient, namespace: str) -> None:
    await kube.create(WIDGETS, widget(namespace, "w", spec={"size": 1}), manager="one")
    for spec in ({"size": "large"}, {"size": 1, "colour": "red"}):
        with pytest.raises(Invalid):
            await kube.apply(WIDGETS, widget(namespace, "w", spec=spec), manager="two", force=True)


async def test_metadata_alone_has_no_data(kube: KubeClient, namespace: str) -> None:
    await kube.create(CONFIG_MAPS, config_map(namespace, "a", data={"x": "1"}), manager="one")
    partial = await kube.get(CONFIG_MAPS, Key(namespace, "a"), metadata_only=True)
    page = await kube.list_page(
        CONFIG_MAPS, Selection(namespace=namespace, fields="metadata.name=a", metadata_only=True)
    )

    assert "data" not in partial
    assert [loads(item).get("data") for item in page.items] == [None]


async def test_a_refused_secret_shows_no_value(kube: KubeClient, namespace: str) -> None:
    meta = {"name": "s", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": "canary"}}
    stored = await kube.create(SECRETS, body, manager="one")
    # The API server answers this one by quoting the whole object.
    patch: list[dict[str, Any]] = [{"op": "add", "path": "/immutable", "value": 7}]
    with pytest.raises(ApiError) as refusal:
        await kube.json_patch(SECRETS, key_of(stored), patch, manager="one")

    assert stored["data"]["password"] not in f"{refusal.value!r}{refusal.value.causes}"


async def test_a_kind_that_is_not_served_is_not_found(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(NotFound):
        await kube.list_page(NOWHERE, Selection(namespace=namespace))


async def test_a_request_of_any_other_kind_goes_raw(kube: KubeClient) -> None:
    version = loads(await kube.raw("GET", "/version"))

    assert version["major"] == "1"
