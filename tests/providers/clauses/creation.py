"""Of creates: once, ours from their first moment, and only where it is known that nothing is there."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from providers.external.ownership import owner_of
from runtime.errors import Failure
from tests.providers.adapter import Adapter, Property, clause
from tests.providers.gates import KilledError

_MOST_WRITES = 60


@clause()
async def create_is_sent_once_wherever_the_process_is_killed(cloud: Adapter) -> None:
    for writes in range(1, _MOST_WRITES):
        name = f"db{writes}"
        cloud.forget()
        cloud.ask(name)
        cloud.gate.kill_after(writes)
        killed = False
        try:
            await cloud.until_ready(name)
        except KilledError:
            killed = True
            cloud.restart()
            await cloud.until_ready(name)
        assert (writes, cloud.creates()) == (writes, 1)
        assert (writes, len(cloud.own(name))) == (writes, 1)
        if not killed:
            assert writes > 3, "a create makes several writes"
            return
    raise AssertionError(f"a create makes {_MOST_WRITES} writes and more")


@clause(Property.TAGS)
async def owner_is_in_the_create_itself(cloud: Adapter) -> None:
    cloud.ask()
    uid = (cloud.world.get() or {})["metadata"]["uid"]
    for writes in range(1, _MOST_WRITES):
        cloud.gate.kill_after(writes, only="cloud")
        with suppress(KilledError):
            await cloud.until_ready()
        if cloud.objects():
            break
        cloud.restart()
    assert [thing.owner for thing in cloud.objects().values()] == [("home", uid)]


@clause()
async def create_without_an_answer_leads_to_the_same_object(cloud: Adapter) -> None:
    cloud.ask()
    cloud.fail("create", "unanswered")
    await cloud.until_ready()

    assert (cloud.creates(), len(cloud.objects())) == (1, 1)
    assert len(cloud.own()) == 1


@clause()
async def create_that_met_an_error_is_sent_again(cloud: Adapter) -> None:
    modes = [mode for mode in cloud.errors if mode != "forbidden"]
    for mode in modes:
        cloud.ask(mode)
        cloud.fail("create", mode)
        await cloud.until_ready(mode)
        assert len(cloud.own(mode)) == 1
    assert len(cloud.objects()) == len(modes)


@clause()
async def nothing_is_created_while_observations_fail(cloud: Adapter) -> None:
    await cloud.account()
    cloud.ask()
    for mode in cloud.errors:
        cloud.fail("observe", mode, None)
        await cloud.pass_for(timedelta(minutes=10))
        assert cloud.writes() == []
        cloud.heal()
    await cloud.until_ready()
    assert len(cloud.objects()) == 1


@clause(Property.PAGES)
async def list_in_part_is_never_called_complete(cloud: Adapter) -> None:
    """The resource is made again with its claim: what it had before is on a page that fails."""
    account = await cloud.account()
    for number in range(5):
        cloud.put(f"another-{number}", ("home", f"uid-of-another-{number}"))
    cloud.fail("list", "refused", None)

    complete = False
    with suppress(Failure):
        complete = (await account.list()).complete
    assert not complete
    cloud.ask()
    cloud.forget()
    await cloud.pass_for(timedelta(minutes=10))
    assert cloud.writes() == []


@clause(Property.CREATES_ONLY)
async def object_that_appears_before_the_create_arrives_is_not_ours(cloud: Adapter) -> None:
    """Between our look and our create somebody makes an object of that name: the create is refused, and it stays so."""
    cloud.ask()
    cloud.before_create(lambda: cloud.put(cloud.external_name(), None))
    await cloud.until(lambda: bool(cloud.writes()))
    cloud.forget()
    await cloud.pass_for(timedelta(minutes=15))

    assert (cloud.world.reason(), cloud.world.reason("Ready")) == ("NotOwned", "NotOwned")
    (thing,) = cloud.objects().values()
    assert (thing.owner, cloud.writes()) == (None, [])

    cloud.world.delete()
    await cloud.until_gone()
    assert (len(cloud.objects()), cloud.writes()) == (1, [])


@clause(Property.TAGS, Property.LOGINS, Property.LAG)
async def create_that_finds_its_object_there_publishes_a_password_that_was_set(cloud: Adapter) -> None:
    """An earlier object of the claim made it, with a password that nobody knows any more."""
    cloud.ask()
    owner = owner_of(cloud.world.get() or {}, "home").tags
    cloud.before_create(lambda: cloud.put(cloud.external_name(), owner))
    await cloud.until(lambda: cloud.world.reason("Ready") == "Available")
    assert (len(cloud.objects()), any(write.startswith("password ") for write in cloud.writes())) == (1, True)


@clause(Property.PROOFS)
async def object_of_others_after_a_create_that_met_an_error_is_not_ours(cloud: Adapter) -> None:
    cloud.ask()
    cloud.fail("create", "refused")
    await cloud.until(lambda: bool(cloud.writes()))
    cloud.put(cloud.external_name(), None)
    cloud.forget()
    await cloud.until(lambda: cloud.world.reason() == "NotOwned")
    assert "adopt=" in cloud.world.condition()["message"]

    cloud.world.delete()
    await cloud.until_gone()
    assert (len(cloud.objects()), cloud.writes()) == (1, [])


@clause(Property.OPERATIONS, Property.EDITS)
async def edit_that_is_refused_right_after_the_create_leaves_the_object_ours(cloud: Adapter) -> None:
    cloud.ask()
    await cloud.until(lambda: "operation" in cloud.status())
    cloud.ask(parameters=cloud.edit)
    cloud.fail("update", "invalid")
    await cloud.until(lambda: cloud.world.reason() == "InvalidValue")
    cloud.world.annotate(**{"reconcile-requested-at": "now"})
    await cloud.until_ready()
    assert (cloud.creates(), len(cloud.own())) == (1, 1)


@clause(Property.EDITS, Property.TAGS)
async def edit_that_is_refused_is_sent_rarely_and_made_once_it_is_taken(cloud: Adapter) -> None:
    await cloud.create()
    cloud.fail("update", "invalid", None)
    cloud.ask(parameters=cloud.edit)
    await cloud.pass_for(timedelta(hours=1))
    assert cloud.world.reason() == "InvalidValue"
    assert 1 <= len(cloud.writes()) <= 20

    cloud.heal()
    cloud.world.annotate(**{"reconcile-requested-at": "now"})
    await cloud.until_ready()


@clause(Property.LAG)
async def create_that_is_not_shown_yet_is_not_sent_again(cloud: Adapter) -> None:
    cloud.lag(timedelta(seconds=45))
    cloud.ask()
    await cloud.until_ready()
    assert (cloud.creates(), len(cloud.objects())) == (1, 1)


@clause(Property.LAG, Property.EDITS)
async def edit_that_is_not_shown_yet_is_not_sent_again(cloud: Adapter) -> None:
    await cloud.create()
    cloud.lag(timedelta(seconds=45))
    cloud.ask(parameters=cloud.edit)
    assert await cloud.pass_for(timedelta(minutes=5)) != {"InSync"}
    await cloud.until_ready()
    assert len(cloud.writes()) == 1
