"""What the runtime relies on in an API server, as functions that any implementation of the port must pass."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any, Final, TypeAlias

import pytest

from runtime.errors import AlreadyExists, NotFound, WriteConflict
from runtime.kube import Kube, Selection, WatchEvent
from runtime.objects import CONFIG_MAPS, Key, Object, key_of, loads, uid_of, version_of

Clause: TypeAlias = Callable[[Kube, str], Awaitable[None]]

NO_UID: Final = "00000000-0000-4000-8000-000000000000"


def thing(namespace: str, name: str, **data: str) -> Object:
    meta = {"name": name, "namespace": namespace, "labels": {"contract": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def a_create_gives_uid_and_version(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAPS, thing(namespace, "a", x="1"), manager="m")
    read = await kube.get(CONFIG_MAPS, Key(namespace, "a"))

    assert uid_of(created)
    assert version_of(created)
    assert (uid_of(read), version_of(read), read["data"]) == (uid_of(created), version_of(created), {"x": "1"})


async def a_name_is_taken_once(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")
    with pytest.raises(AlreadyExists):
        await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")


async def what_is_absent_is_not_found(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, Key(namespace, "never"))
    with pytest.raises(NotFound):
        await kube.delete(CONFIG_MAPS, Key(namespace, "never"), uid=NO_UID, resource_version="1")
    absent = thing(namespace, "never")
    absent["metadata"] |= {"uid": NO_UID, "resourceVersion": "1"}
    with pytest.raises(NotFound):
        await kube.replace(CONFIG_MAPS, absent, manager="m")


async def a_replacement_wants_the_version_that_is_stored(kube: Kube, namespace: str) -> None:
    first = await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")
    second = await kube.replace(CONFIG_MAPS, {**first, "data": {"x": "1"}}, manager="m")
    with pytest.raises(WriteConflict):
        await kube.replace(CONFIG_MAPS, {**first, "data": {"x": "2"}}, manager="m")

    assert int(version_of(second)) > int(version_of(first))
    assert uid_of(second) == uid_of(first)


async def a_deletion_means_one_object(kube: Kube, namespace: str) -> None:
    first = await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")
    with pytest.raises(WriteConflict):
        await kube.delete(CONFIG_MAPS, key_of(first), uid=NO_UID, resource_version=version_of(first))
    left = await kube.delete(CONFIG_MAPS, key_of(first), uid=uid_of(first), resource_version=version_of(first))
    second = await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")

    assert left is None
    assert uid_of(second) != uid_of(first)


async def a_deletion_wants_the_version_that_is_stored(kube: Kube, namespace: str) -> None:
    first = await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")
    second = await kube.replace(CONFIG_MAPS, {**first, "data": {"x": "1"}}, manager="m")
    with pytest.raises(WriteConflict):
        await kube.delete(CONFIG_MAPS, key_of(first), uid=uid_of(first), resource_version=version_of(first))

    assert version_of(await kube.get(CONFIG_MAPS, key_of(first))) == version_of(second)


async def pages_together_are_the_whole_at_one_version(kube: Kube, namespace: str) -> None:
    names = [f"n{number}" for number in range(7)]
    for name in names:
        await kube.create(CONFIG_MAPS, thing(namespace, name), manager="m")
    selection, seen, versions, token = Selection(namespace=namespace, labels="contract=yes"), [], set(), ""
    while True:
        page = await kube.list_page(CONFIG_MAPS, selection, limit=3, next_page=token)
        seen += [loads(item)["metadata"]["name"] for item in page.items]
        versions.add(page.resource_version)
        if not page.next_page:
            break
        token = page.next_page

    assert seen == names
    assert len(versions) == 1


async def a_watch_yields_all_that_came_after_a_list_in_order(kube: Kube, namespace: str) -> None:
    selection = Selection(namespace=namespace, labels="contract=yes")
    listed = await kube.list_page(CONFIG_MAPS, selection)
    first = await kube.create(CONFIG_MAPS, thing(namespace, "a"), manager="m")
    second = await kube.replace(CONFIG_MAPS, {**first, "data": {"x": "1"}}, manager="m")
    await kube.delete(CONFIG_MAPS, key_of(first), uid=uid_of(first), resource_version=version_of(second))
    events: list[WatchEvent] = []
    stream: Any = kube.watch(
        CONFIG_MAPS, selection, resource_version=listed.resource_version, timeout=timedelta(seconds=60)
    )
    async with aclosing(stream):
        while len(events) < 3:
            event = await anext(stream)
            events += [event] if event.kind != "BOOKMARK" else []
    changes = [(event.kind, version_of(loads(event.raw))) for event in events]

    assert changes[:2] == [("ADDED", version_of(first)), ("MODIFIED", version_of(second))]
    assert changes[2][0] == "DELETED"
    # A deletion has a version of its own, newer than the object's last.
    assert int(changes[2][1]) > int(version_of(second))


CONTRACT: Final[tuple[Clause, ...]] = (
    a_create_gives_uid_and_version,
    a_name_is_taken_once,
    what_is_absent_is_not_found,
    a_replacement_wants_the_version_that_is_stored,
    a_deletion_means_one_object,
    a_deletion_wants_the_version_that_is_stored,
    pages_together_are_the_whole_at_one_version,
    a_watch_yields_all_that_came_after_a_list_in_order,
)
