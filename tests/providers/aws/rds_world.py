"""The generic reconciler between an API server in memory and a simulated RDS, over RDS's wire, by one clock."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

from devcloud.aws.server import Served
from providers.aws import INSTANCES, PROVIDER
from providers.external.provider import Kind, Provider, Rate
from runtime.objects import SECRETS, Object
from tests.providers.gates import Calls, GatedAccount, GatedKube, gated
from tests.providers.paced import Paced
from tests.providers.toy import ToyCloud
from tests.providers.world import World
from tests.support.memory_kube import MemoryKube
from tests.support.simulator_control import control

SPEC: Object = {"dbInstanceClass": "db.t4g.micro", "allocatedStorage": 20, "masterUsername": "app"}
# Nothing waits for a budget: the clock that is moved on is not that of budgets.
_RATE = Rate(reads_per_second=100_000, writes_per_second=100_000)


def provider(kind: Kind[Any, Any] = INSTANCES) -> Provider[Any]:
    """Return AWS's provider with one kind and without a bound on its calls."""
    return replace(PROVIDER, kinds=(kind,), rate=_RATE, endpoint_of=lambda _config: "")


class RdsWorld(World):
    """One kind of AWS's in namespace `team`, at a simulated RDS."""

    def __init__(
        self,
        served: Served,
        *,
        kind: Kind[Any, Any] = INSTANCES,
        spec: Object | None = None,
        kube: MemoryKube | None = None,
        resync: timedelta = timedelta(minutes=10),
    ) -> None:
        self.served, self.spec = served, SPEC if spec is None else spec
        super().__init__(ToyCloud(), provider=provider(kind), kube=kube, resync=resync)
        self.kube.store(SECRETS, {
            "metadata": {"name": "keys", "namespace": "fairlead-toy"},
            "data": {name: base64.b64encode(value.encode()).decode() for name, value in self.keys.items()},
        })  # fmt: skip

    @property
    def keys(self) -> dict[str, str]:
        """The access key of the account's first user, as a Secret holds it."""
        key, secret = self.served.credentials
        return {"aws_access_key_id": key, "aws_secret_access_key": secret}

    def config(self) -> Object:
        """Return the account, its region and its keys."""
        credentials = {"source": "Secret", "secretRef": {"name": "keys"}}
        return {"region": "eu-west-1", "endpoint": self.served.url, "credentials": credentials}

    def parameters(self, spec: Object) -> Object:
        """Return the fields of `forProvider`: those of the world, changed by what is asked for as `parameters`."""
        return {**self.spec, **spec.pop("parameters", {})}

    def pass_time(self, by: timedelta) -> None:
        super().pass_time(by)
        control(self.served, "POST", "clock", {"advance_s": by.total_seconds()})

    def steer(self, **calls: Any) -> None:
        """Have something happen to the instance behind the API's back."""
        control(self.served, "POST", f"instances/{self.external_name}", calls)

    def shown(self) -> Object:
        """Return the instance as the simulator has it."""
        trees = control(self.served, "GET", "instances")
        return next(tree for tree in trees if tree["DBInstanceIdentifier"] == self.external_name)

    def refuse(self, action: str, code: str, message: str = "It is refused.") -> None:
        """Have every call of an action refused from now on."""
        fault = {"action": action, "code": code, "message": message, "times": None}
        control(self.served, "POST", "faults", fault)

    def heal(self) -> None:
        """Take away all faults."""
        control(self.served, "DELETE", "faults")


_FIELDS: Object = {**SPEC, "backupRetentionPeriod": 7, "deletionProtection": False, "publiclyAccessible": False,
                   "copyTagsToSnapshot": True}  # fmt: skip
_READS = ("describe_", "list_", "get_")


class GatedWorld(RdsWorld):
    """One process; the next one over the same API server keeps what is there."""

    def __init__(self, served: Served, kube: GatedKube, process: str, calls: Calls) -> None:
        self.served, self.spec = served, _FIELDS

        def account(connected: Any) -> GatedAccount:
            return GatedAccount(connected, calls, lambda name: name.startswith(_READS), "create_db_instance".__eq__)

        World.__init__(self, ToyCloud(), kube=kube, process=process, provider=gated(provider(), account))


class RdsPaced(Paced):
    """Passes at the simulated RDS; `calls` are counted from the last `forget` on."""

    def __init__(self, world: RdsWorld, name: str = "db") -> None:
        super().__init__(world, name)
        self.rds = world.served

    def forget(self) -> None:
        """Count from here on."""
        control(self.rds, "DELETE", "audit")

    def changes(self) -> list[tuple[str, Object]]:
        """Return the calls that changed something, each by its action and with its parameters."""
        log = control(self.rds, "GET", "audit?since=0")
        return [(str(call["action"]), call["params"]) for call in log if call["mutating"]]

    def calls(self, action: str = "") -> int:
        """Return how many calls of an action RDS got; of none that change something."""
        log = control(self.rds, "GET", "audit?since=0")
        return sum(call["mutating"] if not action else call["action"] == action for call in log)


async def at_rest(served: Served, parameters: Object | None = None, **spec: Any) -> tuple[RdsWorld, RdsPaced]:
    """Return an instance with these parameters after its first backup, and its passes, counted from here on."""
    world = RdsWorld(served, spec={**SPEC, **(parameters or {})})
    paced = RdsPaced(world)
    world.ask(**spec)
    await paced.settle()
    await paced.until(world.now + timedelta(hours=1))
    await paced.settle()
    paced.forget()
    return world, paced
