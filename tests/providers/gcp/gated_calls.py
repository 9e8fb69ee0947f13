"""The provider's calls of Cloud SQL, after each of which its process may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from devcloud.gcp.server import Served
from providers.external.metering import Meter
from providers.external.provider import Kind, RecordedAccount
from providers.gcp import INSTANCES
from providers.gcp.account import connect
from runtime.objects import Object
from tests.providers.gates import Gate, GatedKube, Wrapped
from tests.providers.gcp.sql_world import SPEC, SqlWorld, provider
from tests.providers.toy import ToyCloud
from tests.providers.world import World

_FIELDS: Object = {**SPEC, "retainedBackups": 7, "pointInTimeRecoveryEnabled": False, "sslMode": "ENCRYPTED_ONLY"}
_READS = ("get", "list", "listServerCas")


@dataclass
class Calls:
    """What happens around a call: `before_create` is called once when the next create leaves."""

    gate: Gate
    before_create: Callable[[], None] | None = None


class GatedAccount:
    """A GcpAccount whose changing calls pass a gate."""

    def __init__(self, account: Any, calls: Calls) -> None:
        self._account, self._calls = account, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._account, name)

    async def call(self, method: str, action: str, /, **fields: Any) -> Any:
        if method.rpartition(".")[2] in _READS:
            return await self._account.call(method, action, **fields)
        act = self._calls.before_create
        if method.endswith(".insert") and act is not None:
            self._calls.before_create = None
            act()
        return await self._calls.gate.passed(self._account.call(method, action, **fields), "cloud")


class GatedWorld(SqlWorld):
    """One process; the next one over the same API server keeps what is there."""

    def __init__(self, served: Served, kube: GatedKube, process: str, calls: Calls, of: Kind[Any, Any]) -> None:
        self.served, self.spec = served, _FIELDS if of is INSTANCES else {}

        async def wrap(account: Any) -> GatedAccount:
            return GatedAccount(account, calls)

        def connected(config: Any, secrets: Any, recorded: RecordedAccount, meter: Meter) -> Wrapped:
            return Wrapped(connect(config, secrets, recorded, meter), wrap)

        gated = replace(provider(of), connect=connected)
        World.__init__(self, ToyCloud(), kube=kube, process=process, provider=gated)
