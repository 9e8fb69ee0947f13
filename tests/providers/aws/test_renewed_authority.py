"""Another bundle of certificates in a ProviderConfig's Secret reaches all of its instances, without a change at RDS."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from devcloud.aws.server import Served
from devcloud.certificates import new_authority
from providers.accounts.limits import BY_CONFIG, config_of
from runtime.objects import SECRETS, Key, Object
from runtime.secrets import text_of
from tests.providers.aws.rds_world import RdsWorld
from tests.support.simulator_control import control

pytestmark = pytest.mark.rds
INSTANCES = ("one", "two", "three")


class VerifiedWorld(RdsWorld):
    """Instances that are verified by a bundle, out of the provider's reach, and the controller of their config."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.bundle = ""
        self.renew()
        resources = self.cache.informer(self.kind.resource).store
        resources.add_index(BY_CONFIG, config_of)
        self.enqueued: list[Key] = []
        self.reconcile_config = self.config_reconciler(
            lambda name: self.enqueued.extend(resources.by_index(BY_CONFIG, name))
        )

    def config(self) -> Object:
        return {**super().config(), "caBundleRef": {"name": "rds-ca"}, "loginCheck": "Off"}

    def renew(self) -> None:
        """Put another authority's certificate behind those that are in the bundle."""
        self.bundle += new_authority("Amazon RDS eu-west-1 Root CA").pem.decode()
        data = {"ca.crt": base64.b64encode(self.bundle.encode()).decode()}
        self.kube.store(SECRETS, {"metadata": {"name": "rds-ca", "namespace": "fairlead-toy"}, "data": data})

    async def reconcile_bundle(self) -> None:
        """Have the ProviderConfig reconciled, as a change of its Secret does, and all that it enqueues."""
        self.feed()
        await self.reconcile_config(Key("", "default"))
        enqueued, self.enqueued = self.enqueued, []
        for key in enqueued:
            await self.step(key.name)

    def kept(self, name: str) -> tuple[str, str]:
        """Return the certificates and the password of an instance's credentials Secret."""
        stored = self.kube.objects[SECRETS, Key("team", f"{name}-credentials")]
        return text_of(stored, "ca.crt"), text_of(stored, "current")

    def published(self, name: str) -> Object:
        """Return the connection of an instance's status."""
        connection: Object = (self.get(name) or {})["status"]["connection"]
        return connection


async def _ready(world: VerifiedWorld) -> None:
    for name in INSTANCES:
        world.ask(name)
    await world.reconcile_bundle()
    for _ in range(200):
        for name in INSTANCES:
            await world.step(name)
        if all(world.reason("Ready", name) == "Available" for name in INSTANCES):
            break
        world.now += timedelta(minutes=1)
        control(world.served, "POST", "clock", {"advance_s": 60})
    await world.reconcile_bundle()


def _observed_alone(stopped: Served) -> list[str]:
    """Return the names of the instances that were looked at by themselves since the audit log was emptied."""
    calls = list(control(stopped, "GET", "audit?since=0"))
    return [call["identifier"] for call in calls if call["action"] == "DescribeDBInstances" and call["identifier"]]


async def test_renewed_bundle_reaches_instances_whose_account_is_listed_without_a_look_at_any(
    stopped: Served,
) -> None:
    world = VerifiedWorld(stopped)
    world.gatherer.answers.enqueue_list = lambda _config, _after: None
    await _ready(world)
    await world.gatherer.answers.list(await world.accounts.connect("default"))
    first, before = world.bundle, {name: world.kept(name)[1] for name in INSTANCES}
    assert {world.kept(name)[0] for name in INSTANCES} == {first}
    hashes = {world.published(name)["caRef"]["hash"] for name in INSTANCES}
    control(stopped, "DELETE", "audit")

    world.renew()
    await world.reconcile_bundle()

    assert world.bundle.startswith(first)
    assert {world.kept(name)[0] for name in INSTANCES} == {world.bundle}
    assert {name: world.kept(name)[1] for name in INSTANCES} == before
    after = {world.published(name)["caRef"]["hash"] for name in INSTANCES}
    assert (len(after), after & hashes) == (1, set())
    assert {world.published(name)["sslmode"] for name in INSTANCES} == {"verify-full"}
    assert _observed_alone(stopped) == []
    assert [call for call in control(stopped, "GET", "audit?since=0") if call["mutating"]] == []

    written = len(world.kube.writes)
    await world.reconcile_bundle()
    assert len(world.kube.writes) == written


async def test_edit_that_comes_with_a_renewed_bundle_is_decided_on_a_look(stopped: Served) -> None:
    world = VerifiedWorld(stopped)
    world.gatherer.answers.enqueue_list = lambda _config, _after: None
    await _ready(world)
    await world.gatherer.answers.list(await world.accounts.connect("default"))
    control(stopped, "DELETE", "audit")

    world.ask("two", parameters={"backupRetentionPeriod": 3})
    world.renew()
    await world.reconcile_bundle()

    edited: Object = world.get("two") or {}
    assert set(_observed_alone(stopped)) == {edited["metadata"]["annotations"]["fairlead.dev/external-name"]}
    calls = list(control(stopped, "GET", "audit?since=0"))
    assert [call["action"] for call in calls if call["mutating"]] == ["ModifyDBInstance"]
