"""Of absence: believed after a typed answer that lasts, never of an error; what is lost is replaced by nothing."""

from __future__ import annotations

from datetime import timedelta

from tests.providers.adapter import Adapter, Property, clause

_GRACE = timedelta(seconds=60)
# Longer than whatever is waited for before a person is called: the grace, a resync, the deadline of a state.
_LONG = timedelta(minutes=15)
# The second where the cloud knows an incarnation under any name.
_OTHER_NAME = frozenset({"ImmutableField", "DatabaseRenamed"})


@clause()
async def error_is_never_absence(cloud: Adapter) -> None:
    name = await cloud.create()
    for mode in cloud.errors:
        cloud.fail("observe", mode, None)
        reasons = await cloud.pass_for(_LONG)
        assert "DatabaseLost" not in reasons
        cloud.heal()
        await cloud.until_ready()
    cloud.fail("observe", "refused", None)
    cloud.world.delete()
    await cloud.pass_for(_LONG)
    assert cloud.world.get() is not None
    assert (cloud.writes(), list(cloud.objects())) == ([], [name])

    cloud.heal()
    await cloud.until_gone()
    assert cloud.objects() == {}


@clause(Property.NOT_FOUND)
async def one_answer_that_it_is_absent_is_not_believed(cloud: Adapter) -> None:
    await cloud.create()
    cloud.fail("observe", "absent")
    reasons = await cloud.pass_for(timedelta(minutes=10))
    assert "DatabaseLost" not in reasons
    assert (cloud.writes(), cloud.is_ready()) == ([], True)


@clause(Property.HALTS)
async def nothing_inside_a_server_that_serves_nobody_is_ready_or_deleted(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.halt_server(halted=True)
    await cloud.until(lambda: cloud.world.condition("Ready")["status"] == "False")
    cloud.world.delete()
    assert await cloud.pass_for(_LONG) <= {"DatabaseFailed", "DatabaseStopped"}
    assert cloud.writes() == []
    cloud.halt_server(halted=False)
    assert list(cloud.objects()) == [name]
    await cloud.until_gone()
    assert cloud.objects() == {}


@clause(Property.HALTS)
async def nothing_inside_is_ready_when_a_server_lost_its_owner_and_serves_nobody(cloud: Adapter) -> None:
    await cloud.create()
    cloud.give_server(None)
    await cloud.until(lambda: cloud.world.reason() == "AdoptionRefused")
    cloud.halt_server(halted=True)
    await cloud.until(lambda: cloud.world.condition("Ready")["status"] == "False")
    assert cloud.world.reason() in {"DatabaseFailed", "DatabaseStopped"}


@clause(Property.HALTS)
async def what_went_with_its_server_is_not_ready_and_not_made_anew(cloud: Adapter) -> None:
    await cloud.create()
    cloud.take_server()
    await cloud.until(lambda: cloud.world.condition("Ready")["status"] == "False")
    await cloud.until(lambda: cloud.world.reason() == "DatabaseLost")
    assert await cloud.pass_for(_LONG) == {"DatabaseLost"}
    assert cloud.writes() == []
    cloud.world.delete()
    await cloud.until_gone()


@clause(Property.DATA)
async def lost_database_is_reported_and_not_replaced(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.vanish(name)
    lost_at = cloud.world.now
    await cloud.until(lambda: cloud.world.reason() == "DatabaseLost")
    assert cloud.world.now - lost_at >= _GRACE

    cloud.ask(parameters=cloud.edit)
    assert await cloud.pass_for(_LONG) == {"DatabaseLost"}
    cloud.restart()
    assert await cloud.pass_for(_LONG) == {"DatabaseLost"}
    assert (cloud.writes(), cloud.objects()) == ([], {})
    assert cloud.world.condition("Ready")["status"] == "False"


@clause(Property.DATA)
async def another_name_written_over_the_external_one_is_no_loss_and_lets_nothing_go(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.world.annotate(**{"external-name": f"{name}-2"})
    await cloud.until(lambda: cloud.world.reason() in _OTHER_NAME)
    cloud.restart()
    assert await cloud.pass_for(_LONG) <= _OTHER_NAME
    cloud.world.delete()
    assert await cloud.pass_for(_LONG) <= _OTHER_NAME
    assert (cloud.writes(), list(cloud.objects())) == ([], [name])

    cloud.world.annotate(**{"external-name": name})
    await cloud.until_gone()
    assert cloud.objects() == {}
