"""Of operations: each is followed to its end, none meets another, a failed one is sent again by the rule."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from runtime.objects import Key, Object
from tests.providers.adapter import Adapter, Property, clause
from tests.providers.paced import Paced

_CHILDREN = tuple(f"child{number}" for number in range(5))
_SENTENCE = "the quota of this project is used up"


class CloudPaced(Paced):
    """A controller's passes at their own times; the cloud's clock is moved on with the world's."""

    def __init__(self, cloud: Adapter) -> None:
        super().__init__(cloud.world)
        self.cloud = cloud

    def move_on(self, by: timedelta) -> None:
        self.cloud.move_on(max(by, timedelta()))


@clause(Property.OPERATIONS)
async def every_operation_is_followed_to_its_end(cloud: Adapter) -> None:
    await cloud.create()
    rotation: Object = {"passwordRotation": {"token": "1"}} if cloud.has_logins else {}
    cloud.ask(parameters=cloud.edit, **rotation)
    await cloud.until(lambda: "operation" in cloud.status() or not (cloud.edit or rotation))
    await cloud.until_ready()
    await cloud.until(lambda: not rotation or cloud.status().get("rotation", {}).get("token") == "1")
    # Where there are two, the former login is disabled after its grace.
    await cloud.until(lambda: "retiring" not in cloud.status().get("rotation", {}))
    await cloud.until_ready()
    cloud.world.delete()
    await cloud.until_gone()

    verbs = {write.partition(" ")[0] for write in cloud.writes()}
    updates = {"update"} if cloud.edit else set()
    assert {"delete", *updates, *(["password"] if rotation else [])} <= verbs
    assert [handle for handle, is_read in cloud.operations().items() if not is_read] == []
    assert cloud.overlaps() == []


@clause(Property.OPERATIONS, Property.EDITS)
async def operation_that_fails_for_ever_is_sent_three_times_in_six_hours(cloud: Adapter) -> None:
    await cloud.create()
    cloud.fail_operations("update", _SENTENCE)
    cloud.ask(parameters=cloud.edit)
    paced = CloudPaced(cloud)
    await paced.until(cloud.world.now + timedelta(minutes=5))
    paced.conditions.clear()
    await paced.until(cloud.world.now + timedelta(hours=6))

    assert 1 <= len(cloud.writes()) <= 3
    steady = {conditions for conditions in paced.conditions if "CloudBusy" not in str(conditions)}
    assert len(steady) == 1
    assert _SENTENCE in cloud.world.condition()["message"]
    assert cloud.overlaps() == []


@clause(Property.OPERATIONS)
async def operation_whose_handle_is_lost_has_ended(cloud: Adapter) -> None:
    cloud.ask()
    await cloud.until(lambda: "operation" in cloud.status())
    cloud.lose_operations()
    await cloud.until_ready()
    assert (cloud.creates(), len(cloud.objects())) == (1, 1)


@clause(Property.OPERATIONS)
async def operation_is_followed_by_the_next_process(cloud: Adapter) -> None:
    cloud.ask()
    await cloud.until(lambda: "operation" in cloud.status())
    cloud.restart()
    await cloud.until_ready()
    assert cloud.creates() == 1
    assert list(cloud.operations().values()) == [True]
    assert cloud.overlaps() == []


@clause(Property.CHILDREN, Property.OPERATIONS)
async def children_of_one_server_take_turns(cloud: Adapter) -> None:
    for name in _CHILDREN:
        cloud.ask(name)
    await _all_ready(cloud)
    assert cloud.creates() == len(_CHILDREN)

    for name in _CHILDREN:
        rotation: Object = {"passwordRotation": {"token": "1"}} if cloud.has_logins else {}
        cloud.ask(name, parameters=cloud.edit, **rotation)
    for _ in range(3):
        await _pass_of_all(cloud)
    cloud.restart()
    await _all_ready(cloud)
    assert cloud.overlaps() == []
    verbs = [write.partition(" ")[0] for write in cloud.writes()]
    updates, passwords = (len(_CHILDREN) if made else 0 for made in (cloud.edit, cloud.has_logins))
    assert (verbs.count("update"), verbs.count("password")) == (updates, passwords)


async def _pass_of_all(cloud: Adapter) -> None:
    """Make one pass of each child side by side, and let five seconds pass."""
    cloud.world.feed()
    await asyncio.gather(*(cloud.world.reconcile(Key("team", name)) for name in _CHILDREN))
    cloud.move_on(timedelta(seconds=5))


async def _all_ready(cloud: Adapter) -> None:
    def rotated(name: str) -> bool:
        wanted = ((cloud.world.get(name) or {})["spec"].get("passwordRotation") or {}).get("token", "")
        return bool(cloud.status(name).get("rotation", {}).get("token", "") == wanted)

    for _ in range(200):
        await _pass_of_all(cloud)
        if all(cloud.is_ready(name) and rotated(name) for name in _CHILDREN):
            return
    raise AssertionError({name: cloud.world.reason(name=name) for name in _CHILDREN})
