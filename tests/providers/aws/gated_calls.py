"""The provider's calls of RDS, after each of which its process may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from devcloud.aws.server import Served
from providers.aws.account import connect
from providers.external.metering import Meter
from providers.external.provider import RecordedAccount
from runtime.objects import Object
from tests.providers.aws.rds_world import SPEC, RdsWorld, provider
from tests.providers.gates import Gate, GatedKube, Wrapped
from tests.providers.toy import ToyCloud
from tests.providers.world import World

_FIELDS: Object = {**SPEC, "backupRetentionPeriod": 7, "deletionProtection": False, "publiclyAccessible": False,
                   "copyTagsToSnapshot": True}  # fmt: skip
_READS = ("describe_", "list_", "get_")


@dataclass
class Calls:
    """What happens around a call: `before_create` is called once when the next create leaves."""

    gate: Gate
    before_create: Callable[[], None] | None = None


class GatedAccount:
    """An AwsAccount whose changing calls pass a gate."""

    def __init__(self, account: Any, calls: Calls) -> None:
        self._account, self._calls = account, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._account, name)

    async def call(self, operation: str, action: str, /, **parameters: Any) -> Any:
        if operation.startswith(_READS):
            return await self._account.call(operation, action, **parameters)
        act = self._calls.before_create
        if operation == "create_db_instance" and act is not None:
            self._calls.before_create = None
            act()
        return await self._calls.gate.passed(self._account.call(operation, action, **parameters), "cloud")


class GatedWorld(RdsWorld):
    """One process; the next one over the same API server keeps what is there."""

    def __init__(self, served: Served, kube: GatedKube, process: str, calls: Calls) -> None:
        self.served, self.spec = served, _FIELDS

        async def wrap(account: Any) -> GatedAccount:
            return GatedAccount(account, calls)

        def connected(config: Any, secrets: Any, recorded: RecordedAccount, meter: Meter) -> Wrapped:
            return Wrapped(connect(config, secrets, recorded, meter), wrap)

        of = replace(provider(), connect=connected)
        World.__init__(self, ToyCloud(), kube=kube, process=process, provider=of)
