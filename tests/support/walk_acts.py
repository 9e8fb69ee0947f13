"""What may happen to one claim of a random walk, by the hand of its user, of a colleague, or of an accident."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from tests.support.api import ApiError, JsonObject
from tests.support.kinds import CLAIM, SECRET, condition
from tests.support.waiting import eventually
from tests.support.walk_world import World

_SEEN_S = 15.0
_SIZES = ("medium", "large", "xlarge")


@dataclass(slots=True, eq=False)
class Walker:
    """One claim on its walk.

    Attributes:
        seed: Of its acts.
        undo: What the next act takes back before it begins: a pause, or an edit that has to wait.
        way_out: What a person does at the end of the walk, since the claim asks for it: until then it is not usable.
    """

    world: World
    namespace: str
    name: str
    seed: int
    undo: JsonObject | None = None
    way_out: JsonObject | None = None

    @property
    def converges(self) -> bool:
        """Return whether the claim is to converge before its next act."""
        return self.undo is None and self.way_out is None

    async def edit(self, patch: JsonObject) -> None:
        """Merge a patch into the claim as `kubectl edit` does."""
        await self.world.system.edit(CLAIM, self.namespace, self.name, patch)

    async def spec(self, **changes: object) -> None:
        await self.edit({"spec": changes})

    async def until_child_reports(self) -> None:
        """Wait until the child that holds the data is there, stays, and says something of its newest generation."""

        async def reports() -> bool:
            child = await self.world.child(self)
            if child is None or "deletionTimestamp" in child["metadata"]:
                return False
            return bool(condition(child, "Ready").get("observedGeneration") == child["metadata"]["generation"])

        await eventually(reports, f"the child of {self.name} reports", limit_s=_SEEN_S * 4)

    async def binding(self) -> dict[str, str]:
        return await self.world.system.binding(self.namespace, self.name)

    async def sql(self, statement: str) -> str:
        """Have a superuser run a statement; {database} and {login} stand for the claim's. Return what failed."""
        try:
            binding = await self.binding()
            names = {"database": f'"{binding["database"]}"', "login": f'"{binding["username"]}"'}
            await self.world.system.server.server.execute(statement.format(**names))
        except (ApiError, psycopg.Error) as error:
            return f"(in vain: {str(error).strip()[:80]})"
        return ""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happens to a claim.

    Attributes:
        name: For reports.
        do: Does it; returns a word for the report.
        unseen: Why nobody can know of it before the next resync; empty where it shows at once.
    """

    name: str
    do: Callable[[Walker, random.Random], Awaitable[str]]
    unseen: str = ""


async def take_back(walker: Walker) -> None:
    """Take back what the last act left to be taken back."""
    if walker.undo is not None:
        await walker.edit(walker.undo)
        walker.undo = None


# The user


async def _size(walker: Walker, dice: random.Random) -> str:
    size = dice.choice(_SIZES)
    await walker.spec(size=size)
    return size


async def _parameters(walker: Walker, dice: random.Random) -> str:
    parameters = {"work_mem": f"{dice.randrange(64, 9999)}kB"}
    if dice.random() < 0.5:
        parameters["statement_timeout"] = f"{dice.randrange(60_000, 90_000)}"
    await walker.spec(parameters=parameters)
    return str(parameters)


async def _withdraw(walker: Walker, dice: random.Random) -> str:
    """Take back every edit so far."""
    del dice
    await walker.spec(size="small", parameters=None)
    return ""


async def _edit_and_withdraw(walker: Walker, dice: random.Random) -> str:
    """Edit, and take it back at once: whoever is at work has seen the edit or has not."""
    size = dice.choice(_SIZES)
    before = (await walker.world.system.api.get(CLAIM.path(walker.namespace, walker.name)))["spec"]["size"]
    await walker.spec(size=size)
    await walker.spec(size=before)
    return f"{before} {size} {before}"


EDITS: tuple[JsonObject, ...] = (
    {"size": "medium"},
    {"size": "xlarge"},
    {"parameters": {"work_mem": "123kB"}},
    {"parameters": {"no_such_parameter": "1"}},
    {"version": "17"},
    {"version": "18"},
    {"extensions": ["no_such_extension"]},
    {"highAvailability": True},
    {"backup": {"retentionDays": 9}},
    {"network": {"public": True}},
)
"""Edits of a claim on any cloud: some are carried out, some are refused, some wait for a window or a consent."""


def any_edit_withdrawn(edits: tuple[JsonObject, ...]) -> Act:
    """Return an act: any edit, and the former text typed again, half of the time at once, else once it was seen."""

    async def do(walker: Walker, dice: random.Random) -> str:
        path = CLAIM.path(walker.namespace, walker.name)
        edit, before = dice.choice(edits), (await walker.world.system.api.get(path))["spec"]
        await walker.spec(**edit)
        is_patient = dice.random() < 0.5

        async def seen() -> bool:
            claim = await walker.world.system.api.get(path)
            return bool(condition(claim, "Synced").get("observedGeneration") == claim["metadata"]["generation"])

        if is_patient:
            with contextlib.suppress(AssertionError):
                await eventually(seen, f"an edit of {walker.name} is seen", limit_s=_SEEN_S, every_s=0.5)
        await walker.spec(**{field: _former(value, before.get(field)) for field, value in edit.items()})
        return f"{edit} {'once seen' if is_patient else 'at once'}"

    return Act("any edit, withdrawn", do)


def _former(edit: object, before: object) -> object:
    """Return the merge patch (RFC 7386) that makes of an edited value what it was: added keys of a map go by null."""
    if isinstance(edit, dict) and isinstance(before, dict):
        return dict.fromkeys(edit) | before
    return before


async def _rotate(walker: Walker, dice: random.Random) -> str:
    await walker.spec(passwordRotation={"token": f"t{dice.randrange(10**9)}"})
    return ""


async def _pause(walker: Walker, dice: random.Random) -> str:
    """Pause the claim until its next act; half of the time its user goes on editing."""
    await walker.edit({"metadata": {"annotations": {"fairlead.dev/paused": "true"}}})
    walker.undo = {"metadata": {"annotations": {"fairlead.dev/paused": None}}}
    return f"with an edit to {await _size(walker, dice)}" if dice.random() < 0.5 else ""


# A colleague


def child_edited(field: str) -> Callable[[Walker, random.Random], Awaitable[str]]:
    """Return an act: a number of the child's spec is edited by hand."""

    async def do(walker: Walker, dice: random.Random) -> str:
        child = await walker.world.child(walker)
        if child is None:
            return "(no child)"
        patch = {"spec": {"forProvider": {field: dice.randrange(1, 7)}}}
        try:
            await walker.world.system.edit(walker.world.child_kind, walker.namespace, child["metadata"]["name"], patch)
        except ApiError as error:
            return f"(in vain: {error.status})"
        return ""

    return do


async def _child_deleted(walker: Walker, dice: random.Random) -> str:
    del dice
    child = await walker.world.child(walker)
    if child is None:
        return "(no child)"
    return await _delete(walker, walker.world.child_kind.path(walker.namespace, child["metadata"]["name"]))


async def _connection_deleted(walker: Walker, dice: random.Random) -> str:
    del dice
    return await _delete(walker, SECRET.path(walker.namespace, f"{walker.name}-connection"))


async def _credentials_deleted(walker: Walker, dice: random.Random) -> str:
    del dice
    child = await walker.world.child(walker)
    if child is None:
        return "(no child)"
    return await _delete(walker, SECRET.path(walker.namespace, f"{child['metadata']['name']}-credentials"))


async def _delete(walker: Walker, path: str) -> str:
    try:
        await walker.world.system.api.delete(path)
    except ApiError as error:
        return f"(in vain: {error.status})"
    return ""


def _sql(statement: str) -> Callable[[Walker, random.Random], Awaitable[str]]:
    async def do(walker: Walker, dice: random.Random) -> str:
        del dice
        return await walker.sql(statement)

    return do


async def _password(walker: Walker, dice: random.Random) -> str:
    del dice
    return await walker.sql(f"ALTER ROLE {{login}} PASSWORD '{secrets.token_hex(12)}'")


SIZE = Act("size edited", _size)
PARAMETERS = Act("parameters edited", _parameters)
WITHDRAW = Act("edits withdrawn", _withdraw)
ANY_EDIT_WITHDRAWN = any_edit_withdrawn((*EDITS, {"storageGiB": 50}))
EDIT_AND_WITHDRAW = Act("edited and withdrawn at once", _edit_and_withdraw)
ROTATE = Act("rotation", _rotate)
PAUSE = Act("pause", _pause)
CHILD_EDITED = Act("child edited", child_edited("connectionLimit"))
CHILD_DELETED = Act("child deleted", _child_deleted)
CONNECTION_DELETED = Act("connection Secret deleted", _connection_deleted)
CREDENTIALS_DELETED = Act("credentials Secret deleted", _credentials_deleted)
SQL_DATABASE_LIMIT = Act("database limit by SQL", _sql("ALTER DATABASE {database} CONNECTION LIMIT 3"))
SQL_SETTING = Act("database setting by SQL", _sql("ALTER DATABASE {database} SET work_mem = '77kB'"))
SQL_ROLE_LIMIT = Act("role limit by SQL", _sql("ALTER ROLE {login} CONNECTION LIMIT 0"))
SQL_NOLOGIN = Act("NOLOGIN by SQL", _sql("ALTER ROLE {login} NOLOGIN"))
SQL_PASSWORD = Act("password by SQL", _password)

ACTS = (
    SIZE,
    PARAMETERS,
    WITHDRAW,
    EDIT_AND_WITHDRAW,
    ANY_EDIT_WITHDRAWN,
    ROTATE,
    PAUSE,
    CHILD_EDITED,
    CHILD_DELETED,
    CONNECTION_DELETED,
    CREDENTIALS_DELETED,
    SQL_DATABASE_LIMIT,
    SQL_SETTING,
    SQL_ROLE_LIMIT,
    SQL_NOLOGIN,
    SQL_PASSWORD,
)
