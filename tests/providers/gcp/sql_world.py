"""The generic reconciler between an API server in memory and a simulated Cloud SQL, over its wire, by one clock."""

from __future__ import annotations

import base64
import functools
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from devcloud.gcp.server import Served
from providers.external.metering import Meter
from providers.external.provider import Kind, Provider, Rate, RecordedAccount
from providers.gcp import INSTANCES, PROVIDER
from providers.gcp.account import GcpAccount
from providers.gcp.config import ProviderConfigSpec
from runtime.errors import Failure
from runtime.objects import SECRETS, Key, Object
from tests.providers.gates import Calls, GatedAccount, GatedKube, gated
from tests.providers.gcp.wire import account_at
from tests.providers.listed_paced import ListedPaced
from tests.providers.toy import ToyCloud
from tests.providers.world import World
from tests.support.simulator_control import control

SPEC: Object = {
    "region": "europe-west1",
    "databaseVersion": "POSTGRES_16",
    "tier": "db-custom-1-3840",
    "edition": "ENTERPRISE",
    "activationPolicy": "ALWAYS",
    "dataDiskSizeGb": 20,
    "backupEnabled": True,
    "deletionProtectionEnabled": False,
}
# Nothing waits for a budget: the clock that is moved on is not that of budgets.
_RATE = Rate(reads_per_second=100_000, writes_per_second=100_000)


def provider(kind: Kind[Any, Any]) -> Provider[Any]:
    """Return the provider with one kind and without a bound on its calls."""
    return replace(PROVIDER, kinds=(kind,), rate=_RATE, endpoint_of=lambda _config: "")


class SqlWorld(World):
    """One kind of Google Cloud's in namespace `team`, at a simulated Cloud SQL whose clock goes with the world's."""

    limits: ClassVar[Object] = {"publicAccess": True}
    opened: ClassVar[list[SqlWorld]] = []

    def __init__(self, served: Served, *, kind: Kind[Any, Any] = INSTANCES, spec: Object | None = None) -> None:
        self.opened.append(self)
        self.served, self.spec = served, SPEC if spec is None else spec
        super().__init__(ToyCloud(), provider=provider(kind))
        data = {"credentials.json": base64.b64encode(key_of(served).encode()).decode()}
        self.kube.store(SECRETS, {"metadata": {"name": "key", "namespace": "fairlead-toy"}, "data": data})

    def config(self) -> Object:
        """Return the project, the endpoint that stands for Google's, and the key."""
        credentials = {"source": "ServiceAccountKey", "secretRef": {"name": "key"}}
        place = {"project": self.served.project, "endpoint": self.served.url}
        return {**place, "credentials": credentials, "limits": self.limits}

    async def close(self) -> None:
        """Close the connections to Cloud SQL."""
        for entry in self.accounts._entries.values():
            await entry.stack.aclose()

    def lead_to(self, project: str) -> None:
        """Name another project in the ProviderConfig."""
        resource = self.provider.config_resource
        config = deepcopy(self.kube.objects[resource, Key("", "default")])
        config["metadata"]["generation"] += 1
        config["spec"]["project"] = project
        self.kube.store(resource, config)

    def parameters(self, spec: Object) -> Object:
        """Return the fields of `forProvider`: those of the world, changed by what is asked for as `parameters`."""
        return {**self.spec, **spec.pop("parameters", {})}

    def pass_time(self, by: timedelta) -> None:
        super().pass_time(by)
        control(self.served, "POST", "clock", {"advance_s": by.total_seconds()})

    async def rest(self, *, most: int = 200) -> None:
        """Make passes as their results ask for until nothing is left to do, or nothing but what comes rarely."""
        for _ in range(most):
            result = await self.step()
            after = None if isinstance(result, Failure) else result.requeue_after
            if self.get() is None or (not isinstance(result, Failure) and (after is None or after >= _RARE)):
                return
            self.pass_time(after or timedelta(seconds=5))
        raise AssertionError(f"not at rest after {most} passes: {self.reason()}: {self.get()}")

    async def for_hours(self, hours: float) -> None:
        """Make passes as their results ask for, for so long."""
        end = self.now + timedelta(hours=hours)
        while self.now < end:
            result = await self.step()
            if self.get() is None:
                return
            after = None if isinstance(result, Failure) else result.requeue_after
            self.pass_time(min(after or timedelta(minutes=10), timedelta(minutes=10)))

    def steer(self, **change: Any) -> None:
        """Have something happen to the instance behind the API's back."""
        control(self.served, "POST", f"instances/{self.served.project}/{self.external_name}", change)

    def behave(self, **behaviour: Any) -> None:
        """Choose the simulator's conduct."""
        control(self.served, "POST", "behaviour", behaviour)

    def fail(self, action: str, code: str, *, status: int | None = None, times: int | None = None) -> None:
        """Have every call of an action refused from now on, or so many times."""
        control(self.served, "POST", "faults", {"action": action, "code": code, "status": status, "times": times})

    def heal(self) -> None:
        """Take away all faults."""
        control(self.served, "DELETE", "faults")

    def forget(self) -> None:
        """Count from here on."""
        control(self.served, "DELETE", "audit")

    def changes(self) -> list[str]:
        """Return the calls that change something, by their actions, in their order."""
        log = control(self.served, "GET", "audit?since=0")
        return [str(call["action"]) for call in log if call["mutating"] and "." in call["action"]]

    def shown(self) -> Object:
        """Return the instance as the simulator has it; raises StopIteration where there is none."""
        instances = control(self.served, "GET", "instances")
        instance: Object = next(instance for instance in instances if instance["name"] == self.external_name)
        return instance


@functools.cache
def key_of(served: Served) -> str:
    """Return a key of the provider's service account, as Google gives it out, for this simulator's tokens."""
    key = control(served, "POST", "keys", {"email": served.account, "project": served.project})
    return json.dumps({**key, "token_uri": f"{served.url}/token"})


@functools.cache
def token_of(served: Served) -> str:
    """Return a token of the provider's service account, as many connections of one simulator may use."""
    return str(control(served, "POST", "tokens", {"principal": served.account})["token"])


_FIELDS: Object = {**SPEC, "retainedBackups": 7, "pointInTimeRecoveryEnabled": False, "sslMode": "ENCRYPTED_ONLY"}
_READS = ("get", "list", "listServerCas")


class GatedWorld(SqlWorld):
    """One process; the next one over the same API server keeps what is there."""

    def __init__(self, served: Served, kube: GatedKube, process: str, calls: Calls, of: Kind[Any, Any]) -> None:
        self.served, self.spec = served, _FIELDS if of is INSTANCES else {}

        def account(connected: Any) -> GatedAccount:
            return GatedAccount(
                connected, calls, lambda name: name.rpartition(".")[2] in _READS, lambda name: name.endswith(".insert")
            )

        @asynccontextmanager
        async def connect(
            config: ProviderConfigSpec, _secrets: object, _recorded: RecordedAccount, meter: Meter
        ) -> AsyncIterator[GcpAccount]:
            async with account_at(config.endpoint or "", token_of(served), config, meter) as connected:
                await connected.whoami()
                yield connected

        of_kind = replace(provider(of), connect=connect, secrets=lambda _config: ())
        World.__init__(self, ToyCloud(), kube=kube, process=process, provider=gated(of_kind, account))
        # Operations have the simulator's time.
        self.now = datetime.fromisoformat(control(served, "GET", "clock")["now"])


async def ready(served: Served, **parameters: Any) -> SqlWorld:
    """Return a world with an instance that is Ready, its calls forgotten."""
    world = SqlWorld(served)
    world.ask(parameters=parameters)
    await world.rest()
    assert world.reason("Ready") == "Available", world.get()
    world.forget()
    return world


def inside_of(server: SqlWorld, kind: Kind[Any, Any], **spec: Any) -> SqlWorld:
    """Return a world of what is in an instance, by the same clock, asked for."""
    world = SqlWorld(server.served, kind=kind, spec={"instance": server.external_name, "name": "app", **spec})
    world.now = server.now
    world.ask()
    return world


class ListedSql(ListedPaced):
    """Passes of resources with the lists that their provider makes, at a simulated Cloud SQL."""

    def __init__(self, world: SqlWorld) -> None:
        super().__init__(world)
        self.sql = world.served

    def calls(self) -> Counter[tuple[str, str]]:
        """Return how often the provider called each method, and of which instance; none of the tokens'."""
        log = control(self.sql, "GET", "audit?since=0")
        named = (
            (str(call["action"]), str(call["identifier"])) for call in log if call["principal"] == self.sql.account
        )
        return Counter((action, "" if action == "instances.list" else name) for action, name in named if "." in action)


_RARE = timedelta(seconds=90)
