"""A server that takes no login takes Ready away from its databases at once, and gives it back when it takes one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from providers.accounts.limits import BY_CONFIG
from providers.accounts.probe import EVERY, Prober
from providers.external.observation import ServerUnreachable
from runtime.conditions import find
from runtime.errors import Failure, Transient
from runtime.objects import Key
from tests.providers.toy import CONFIGS, TOYS, ToyCloud, provider_of
from tests.providers.world import World

CONFIG = Key("", "default")
AWAY = ServerUnreachable("no answer within 5 s")


class Server:
    """A cloud whose probes end as `answer` says; counts them."""

    def __init__(self) -> None:
        self.answer: Failure | None = None
        self.probes = 0
        self.enqueued: list[str] = []
        self.resources: list[tuple[str, Key]] = []

    async def probe(self, _connected: object) -> None:
        """Answer one probe."""
        self.probes += 1
        if self.answer is not None:
            raise self.answer

    def world(self) -> World:
        """Make a world whose cloud is this server's."""
        cloud = ToyCloud()
        return World(cloud, provider=replace(provider_of(cloud), probe=self.probe))

    def prober(self, world: World) -> Prober:
        """Make a prober that writes down whose users it wakes."""
        store = world.cache.informer(TOYS).store
        return Prober(
            world.accounts,
            lambda name: bool(store.by_index(BY_CONFIG, name)),
            self.enqueued.append,
            lambda plural, key: self.resources.append((plural, key)),
        )


def ready_of(world: World) -> tuple[str, str]:
    condition = find(world.get() or {}, "Ready") or {}
    return str(condition.get("status")), str(condition.get("reason"))


async def test_users_are_enqueued_once_when_the_server_is_lost_and_once_when_it_is_back() -> None:
    server = Server()
    world = server.world()
    for number in range(100):
        world.ask(f"db{number}")
    world.feed()
    prober = server.prober(world)
    counts = []
    for answer in (None, AWAY, AWAY, AWAY, None, None):
        server.answer = answer
        assert (await prober(CONFIG)).requeue_after == EVERY
        counts.append(len(server.enqueued))
    assert counts == [0, 1, 1, 1, 2, 2]
    assert server.probes == 6


async def test_resource_is_enqueued_when_its_server_answered_between_two_probes_that_failed() -> None:
    server = Server()
    world = server.world()
    for name in ("answered", "unreached"):
        world.ask(name)
        await world.settle(name)
    prober = server.prober(world)
    server.answer = AWAY
    await prober(CONFIG)
    # The server is back for a moment, and away again before the next probe.
    await world.step("answered")
    world.cloud.faults += [("observe", AWAY, False)]
    await world.step("unreached")

    await prober(CONFIG)
    await prober(CONFIG)
    assert (server.enqueued, server.resources) == (["default"], [(TOYS.plural, Key("team", "answered"))])


async def test_server_of_a_config_without_users_is_not_probed() -> None:
    server = Server()
    world = server.world()
    world.feed()

    assert (await server.prober(world)(CONFIG)).requeue_after == EVERY
    assert (await server.prober(world)(Key("", "gone"))).requeue_after is None
    assert server.probes == 0


async def _ready_and_then_away(world: World, **spec: Any) -> None:
    world.ask()
    await world.settle()
    assert ready_of(world) == ("True", "Available")
    if spec:
        world.ask(**spec)
        await world.step()
    world.cloud.faults += [("observe", AWAY, False)] * 2
    await world.step()


async def test_database_with_a_refused_edit_is_ready_again_after_an_outage() -> None:
    world = World(ToyCloud())
    await _ready_and_then_away(world, size=500)
    assert ready_of(world) == ("False", "ServerUnreachable")

    world.cloud.faults = [("observe", Transient("in recovery"), False)] * 4
    await world.passes(4)
    assert ready_of(world)[0] == "False"

    await world.step()
    assert (ready_of(world), world.reason()) == (("True", "Available"), "InvalidValue")


async def test_provider_config_reports_that_its_server_takes_no_login() -> None:
    server = Server()
    world = server.world()
    reconcile = world.config_reconciler(server.enqueued.append)
    readiness = []
    for answer in (None, AWAY, None):
        server.answer = answer
        world.feed()
        await reconcile(CONFIG)
        ready = find(world.kube.objects[CONFIGS, CONFIG], "Ready") or {}
        readiness.append((ready["status"], ready["reason"]))
    assert readiness == [("True", "Connected"), ("False", "ServerUnreachable"), ("True", "Connected")]
    assert server.enqueued == ["default", "default"]
