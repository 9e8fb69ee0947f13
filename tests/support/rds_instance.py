"""One RDSInstance of a test, and what RDS knows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import psycopg

from tests.support.api import JsonObject
from tests.support.aws import RDS_INSTANCE, Aws, instance
from tests.support.kinds import SECRET, condition, is_ready
from tests.support.system import decoded

_LIMIT_S = 120.0


def reason_is(reason: str, type_: str = "Synced") -> Callable[[JsonObject], bool]:
    """Return what holds of an object that gives this reason for its newest generation."""

    def holds(obj: JsonObject) -> bool:
        entry = condition(obj, type_)
        return entry.get("reason") == reason and entry.get("observedGeneration") == obj["metadata"]["generation"]

    return holds


def actions(calls: Iterable[JsonObject]) -> list[str]:
    return [str(call["action"]) for call in calls]


class Instance:
    """The object by its name, the instance in RDS by the name that the provider gave it."""

    def __init__(self, aws: Aws, namespace: str, name: str = "orders") -> None:
        self.aws, self.system, self.namespace, self.name = aws, aws.system, namespace, name
        self._external = ""

    @property
    def path(self) -> str:
        return RDS_INSTANCE.path(self.namespace, self.name)

    # The object

    async def create(self, **spec: Any) -> JsonObject:
        await self.system.create(RDS_INSTANCE, instance(self.namespace, self.name, **spec))
        return await self.until()

    async def edit(self, **changes: object) -> None:
        await self.patch({"spec": {"forProvider": changes}})

    async def patch(self, patch: JsonObject) -> None:
        await self.system.edit(RDS_INSTANCE, self.namespace, self.name, patch)

    async def annotate(self, **annotations: str) -> None:
        await self.patch(
            {"metadata": {"annotations": {f"fairlead.dev/{key}": value for key, value in annotations.items()}}}
        )

    async def until(self, reason: str = "InSync") -> JsonObject:
        """Wait until it is Ready and as asked for, or says this reason for why it is not."""
        return await self.until_seen(is_ready if reason == "InSync" else reason_is(reason))

    async def until_seen(self, holds: Callable[[JsonObject], bool]) -> JsonObject:
        return await self.system.until(RDS_INSTANCE, self.namespace, self.name, holds, limit_s=_LIMIT_S)

    # The instance in RDS

    async def external(self) -> str:
        if not self._external:
            obj = await self.system.api.get(self.path)
            self._external = str(obj["metadata"]["annotations"]["fairlead.dev/external-name"])
        return self._external

    async def wire(self) -> JsonObject:
        """Return the instance as the simulator has it; it must be there."""
        instance = await self.aws.instance(await self.external())
        assert instance is not None
        return instance

    async def strike(self, **change: Any) -> None:
        await self.aws.strike(await self.external(), **change)

    async def changes(self, since: int) -> list[JsonObject]:
        """Return the mutating calls after a mark that name this instance, whatever became of them."""
        # RDS is given an instance's name, or its ARN, which ends so.
        name = await self.external()
        return [call for call in await self.aws.changes(since) if str(call["identifier"]).endswith(name)]

    async def look(self) -> None:
        """Ask for a pass, which would else come in its own time."""
        await self.system.ask_for_a_pass(RDS_INSTANCE, self.namespace, self.name)

    # Its users

    async def credentials(self) -> dict[str, str]:
        return decoded(await self.system.api.get(SECRET.path(self.namespace, f"{self.name}-credentials")))

    async def login(self) -> psycopg.AsyncConnection:
        """Log in with what status and Secret say, as whoever binds them does."""
        obj = await self.system.api.get(self.path)
        kept, connection = await self.credentials(), obj["status"]["connection"]
        binding = {key: str(connection[key]) for key in ("host", "port", "database", "username", "sslmode")}
        return await self.system.login_by({**binding, "password": kept["current"], "certificates": kept["ca.crt"]})
