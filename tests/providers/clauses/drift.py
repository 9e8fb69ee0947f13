"""Of what others change: put back, or held and reported by its class; an account at rest is left alone."""

from __future__ import annotations

from datetime import timedelta

from providers.managed.decisions.foresee import foresee
from providers.managed.decisions.plan import Refuse, Settled
from tests.providers.adapter import Adapter, Property, clause

_SWEEPS = 40


@clause()
async def foreign_change_is_put_back_or_held_by_its_class(cloud: Adapter) -> None:
    for drift in cloud.drifts():
        resource = f"db-{drift.field.lower()}"
        name = await cloud.create(resource)
        drift.change(name)
        assert (drift.field, drift.is_there(name)) == (drift.field, True)
        if not drift.held:
            await cloud.until(lambda: not drift.is_there(name), resource)  # noqa: B023 - called within the round
            await cloud.until_ready(resource)
            continue
        await cloud.until(lambda: cloud.world.reason("Synced", resource) == drift.held, resource)  # noqa: B023 - as above
        await cloud.pass_for(timedelta(minutes=10), resource)
        paths = {
            entry["path"].partition(".")[0] for entry in cloud.status(resource)["drift"] if entry["action"] == "Held"
        }
        assert (drift.field in paths, drift.is_there(name), cloud.writes()) == (True, True, [])


@clause(Property.TAGS)
async def foreign_change_of_a_field_that_is_ignored_is_left(cloud: Adapter) -> None:
    drift = cloud.drifts()[0]
    name = await cloud.create(ignoreFields=[drift.field])
    drift.change(name)
    assert await cloud.pass_for(timedelta(minutes=15)) == {"InSync"}
    held = [entry for entry in cloud.status().get("drift", []) if entry["action"] == "Held"]
    assert (drift.is_there(name), cloud.writes(), held) == (True, [], [])


@clause(Property.LOSS)
async def edit_that_loses_data_is_held_until_a_person_agrees(cloud: Adapter) -> None:
    await cloud.create()
    cloud.ask(parameters=cloud.loss, maintenance={"apply": "Immediate"})
    await cloud.until(lambda: cloud.world.reason() == "HeldChange")
    assert await cloud.pass_for(timedelta(minutes=15)) == {"HeldChange"}
    assert cloud.writes() == []

    ((field, value),) = cloud.loss.items()
    cloud.world.annotate(consent=f"{field}={value}")
    await cloud.until_ready()
    assert len(cloud.writes()) == 1


@clause()
async def nothing_is_written_at_rest(cloud: Adapter) -> None:
    await cloud.create()
    account = await cloud.account()
    await cloud.pass_for(timedelta(minutes=5))
    before, writes = len(cloud.kube.writes), cloud.writes()
    for _ in range(_SWEEPS):
        await account.list()
        await cloud.world.step()
        cloud.move_on(timedelta(seconds=40))
    assert (cloud.writes(), len(cloud.kube.writes)) == (writes, before)
    assert writes == []


@clause(Property.STARTS)
async def stopped_object_is_started_where_its_spec_wants_it_running(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.stop(name)
    assert not cloud.is_running(name)
    await cloud.until(lambda: cloud.is_running(name))
    await cloud.until_ready()


@clause()
async def status_says_what_was_observed_as_a_look_does(cloud: Adapter) -> None:
    await cloud.create()
    await cloud.pass_for(timedelta(minutes=15))
    entry = cloud.status()["observed"]
    foresight = foresee(cloud.world.kind, cloud.world.get() or {}, cloud.world.now)
    assert (entry["incarnation"], foresight and foresight.plan) == (cloud.status()["incarnation"], Settled())


@clause(Property.LOSS)
async def what_is_foreseen_of_an_edit_is_what_the_pass_decides(cloud: Adapter) -> None:
    await cloud.create()
    await cloud.pass_for(timedelta(minutes=15))
    edited = cloud.ask(parameters=cloud.loss, maintenance={"apply": "Immediate"})
    foresight = foresee(cloud.world.kind, edited, cloud.world.now)
    await cloud.until(lambda: cloud.world.reason() == "HeldChange")
    assert foresight is not None
    assert isinstance(foresight.plan, Refuse)
    assert foresight.plan.message == cloud.world.condition()["message"]
