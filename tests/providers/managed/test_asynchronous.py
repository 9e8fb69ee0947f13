"""A cloud that answers first and acts later, with one login for all; how long each of its states may last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from apis.teardown import Policy
from providers.external.client import Fence, Operation, Target
from providers.external.credential import NO_ANSWER, Credential, LoginAnswer
from providers.external.endpoint import Endpoint
from providers.external.observation import Observed, Phase
from providers.external.provider import Provider
from runtime.errors import Transient
from tests.providers.toy import Seen, ToyCloud, ToyParameters, logins_of, provider_of
from tests.providers.world import World

MINUTE = timedelta(minutes=1)


@dataclass
class LateCloud(ToyCloud):
    """A toy cloud without operations: the state of a database shows its progress. `deaf` drops all that it accepts."""

    deaf: bool = False
    reachable: bool = False
    backups: tuple[str, ...] = ()

    def _changed(self, kind: str, name: str) -> Operation | None:
        del kind, name
        return None

    def shown(self, _target: Target[ToyParameters], observed: Seen) -> Seen:
        return replace(observed, state="at work" if observed.phase is Phase.BUSY else "fine")

    def _takes_effect(self, kind: str) -> bool:
        return not self.deaf or kind not in {"Update", "SetPassword"}

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        return await super().try_login(endpoint, credential) if self.reachable else NO_ANSWER

    async def delete(
        self, target: Target[ToyParameters], observed: Observed[ToyParameters, Any] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        await super().delete(target, observed, policy, fence)
        self.backups = ()
        return None

    async def latest(self, target: Target[ToyParameters]) -> str:
        assert target.name
        return self.backups[-1] if self.backups else ""


def late(cloud: LateCloud, **rules: Any) -> Provider[Any]:
    logins = replace(logins_of(cloud), names=lambda _target: ("boss", "boss"), **rules)
    return provider_of(cloud, asynchronous=True, logins=logins)


def world_of(cloud: LateCloud) -> World:
    return World(cloud, provider=late(cloud))


async def ready(cloud: LateCloud, **spec: Any) -> World:
    world = world_of(cloud)
    world.ask(**spec)
    await world.settle(most=40)
    assert world.reason("Ready") == "Available"
    return world


async def test_create_whose_answer_was_lost_is_made_once() -> None:
    cloud = LateCloud(slow=2)
    cloud.faults.append(("create", Transient("no answer"), True))
    await ready(cloud)
    # Whether the password came with it is not known: where no login can tell, it is sent once more.
    assert cloud.calls == ["create", "set_password boss"]


async def test_password_counts_only_after_a_login_where_one_is_required() -> None:
    cloud = LateCloud(slow=1)
    world = world_of(cloud)
    world.configure(loginCheck="Required")
    world.ask()
    await world.passes(20, timedelta(seconds=30))
    assert (world.reason(), world.reason("Ready")) == ("Creating", "Creating")
    assert "toy.example.org:5432 was not reached" in str(world.get())
    assert "passwordRef" not in str(world.get())
    cloud.reachable = True
    await world.settle()
    assert (world.reason("Ready"), cloud.calls) == ("Available", ["create"])

    cloud.reachable = False
    world.ask(passwordRotation={"token": "2"})
    await world.passes(20, timedelta(seconds=30))
    assert (world.reason(), world.reason("Ready")) == ("Rotating", "Available")
    cloud.reachable = True
    await world.settle(most=40)
    assert (world.reason(), cloud.calls) == ("InSync", ["create", "set_password boss"])


async def test_change_that_the_cloud_accepts_and_never_shows_is_given_up_and_named() -> None:
    world = await ready(cloud := LateCloud(slow=1))
    cloud.deaf = True
    world.ask(size=99)
    for _ in range(100):
        await world.step()
        world.now += timedelta(seconds=5)
        if world.reason() == "InvalidValue":
            break
    obj = world.get() or {}
    assert "size is 10, wanted 99" in str(obj["status"]["conditions"])
    await world.passes(300, MINUTE)
    assert cloud.calls == ["create", *["update ['size']"] * 3]
    assert world.reason() == "InvalidValue"


async def test_password_that_no_login_accepts_is_sent_three_times_and_its_login_named() -> None:
    world = await ready(cloud := LateCloud(slow=1, reachable=True))
    cloud.deaf = True
    world.ask(passwordRotation={"token": "2"})
    await world.passes(120, MINUTE)
    # The published one still works.
    assert (world.reason(), world.reason("Ready")) == ("PasswordUnknown", "Available")
    assert "the password of login boss" in str(world.status["conditions"])
    assert cloud.calls == ["create", *["set_password boss"] * 3]
    written = len(world.kube.writes)
    await world.passes(120, MINUTE)
    assert len(world.kube.writes) == written

    # A new token is a new password, and has tries of its own.
    cloud.deaf = False
    world.ask(passwordRotation={"token": "3"})
    await world.passes(5, MINUTE)
    assert (world.reason(), cloud.calls.count("set_password boss")) == ("InSync", 4)
