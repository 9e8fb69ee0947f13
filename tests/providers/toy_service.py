"""A cloud of servers and what lives in them, as its API answers: operations, pages, faults, and a log of all calls.

It knows nothing of the providers: what it holds is what a test believes. An object with a `parent` is a child: it
carries no tags, and its operations take the turn of its server.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from providers.external.observation import Phase
from providers.external.ownership import Owner
from tests.providers.gates import Gate

Body: TypeAlias = dict[str, Any]
Mode: TypeAlias = Literal["refused", "unanswered", "throttled", "forbidden", "absent", "invalid"]

READS = frozenset({"account", "get", "list", "backups", "operation"})
PAGE = 2
_LASTS = timedelta(seconds=20)
_CODES = {"throttled": 429, "forbidden": 403, "absent": 404, "invalid": 400}


class ServiceError(Exception):
    """What the API answers instead: an HTTP status, 0 where no answer came."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Stored:
    """One object: `passwords` by login, `fields` as they are set."""

    name: str
    incarnation: str
    fields: Body
    tags: dict[str, str] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    since: datetime | None = None
    is_inserted: bool = False


@dataclass
class Running:
    """One operation; `failure` is the sentence with which it ends, `polls` how often its end was read."""

    action: str
    name: str
    turn: str
    ends: datetime
    failure: str = ""
    is_lost: bool = False
    polls: int = 0


@dataclass
class Fault:
    """What goes wrong with the next calls of an action; `times` is None for all of them."""

    action: str
    mode: Mode
    times: int | None = 1


@dataclass
class ToyService:
    """The cloud. `has_operations`: a change is an operation of 20 s, and no other may meet it.

    `server_owner` is whose the one server of all children is, `server_phase` how it is, None for gone.
    `reads` are the calls that `log` leaves out.
    `before` are called when the next call of an action arrives; `failing` are actions whose operations fail.
    """

    now: datetime
    has_operations: bool = True
    account: str = "account-1"
    objects: dict[str, Stored] = field(default_factory=dict)
    backups: dict[str, str] = field(default_factory=dict)
    operations: dict[str, Running] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    server_owner: Owner | None = None
    server_phase: Phase | None = Phase.READY
    overlaps: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    failing: dict[str, str] = field(default_factory=dict)
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    takes_backups: bool = True
    authority: str = "PEM of the first authority\n"
    lag: timedelta = timedelta(0)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def call(self, action: str, name: str = "", **body: Any) -> Body:
        """Answer one call; raises ServiceError."""
        await asyncio.sleep(0)
        if callback := self.before.pop(action, None):
            callback()
        (self.reads if action in READS else self.log).append(f"{action} {name}")
        fault = self._fault(action)
        if fault is not None and fault.mode != "unanswered":
            raise ServiceError(_CODES.get(fault.mode, 500), f"{action} of {name} is refused ({fault.mode})")
        answer: Body = getattr(self, f"_{action}")(name, **deepcopy(body))
        if fault is not None:
            raise ServiceError(0, "no answer")
        return deepcopy(answer)

    def _fault(self, action: str) -> Fault | None:
        for fault in tuple(self.faults):
            if fault.action in {action, "*"}:
                if fault.times is not None:
                    fault.times -= 1
                    if not fault.times:
                        self.faults.remove(fault)
                return fault
        return None

    def put(self, name: str, fields: Body, tags: dict[str, str] | None = None) -> Stored:
        """Create or replace an object as somebody else does; return it."""
        stored = self.objects[name] = Stored(name, f"id-{next(self.numbers)}", dict(fields), dict(tags or {}))
        return stored

    def open_operations(self, turn: str) -> list[str]:
        """List the operations that are under way for a server or an object."""
        return [
            handle for handle, running in self.operations.items() if running.turn == turn and running.ends > self.now
        ]

    def _shown(self, stored: Stored) -> Body:
        open_ones = [self.operations[handle] for handle in self.open_operations(stored.name)]
        versions = {name: hashlib.sha256(word.encode()).hexdigest()[:8] for name, word in stored.passwords.items()}
        return {"name": stored.name, "id": stored.incarnation, "fields": stored.fields, "tags": stored.tags,
                "logins": versions, "busy": bool(open_ones), "ca": self.authority,
                "inserted": stored.is_inserted}  # fmt: skip

    def _existing(self, name: str) -> Stored:
        stored = self.objects.get(name)
        if stored is None:
            raise ServiceError(404, f"there is no {name}")
        return stored

    def _changed(self, action: str, name: str, effect: Callable[[], None], turn: str = "") -> Body:
        """Carry out a change in the turn of its server, else of the object itself."""
        turn = turn or name
        if not self.has_operations:
            effect()
            return {}
        if self.open_operations(turn):
            self.overlaps.append(f"{action} {name}")
            raise ServiceError(409, f"{turn} is busy")
        if action not in self.failing:
            effect()
        handle = f"operation-{next(self.numbers)}"
        self.operations[handle] = Running(action, name, turn, self.now + _LASTS, self.failing.get(action, ""))
        return {"operation": handle}

    def _account(self, _name: str) -> Body:
        return {"id": self.account}

    def _get(self, name: str) -> Body:
        stored = self._existing(name)
        if stored.since is not None and self.now - stored.since < self.lag:
            raise ServiceError(404, f"there is no {name}")
        return self._shown(stored)

    def _list(self, _name: str, start: int = 0) -> Body:
        names = sorted(self.objects)
        page = [self._shown(self.objects[name]) for name in names[start : start + PAGE]]
        return {"items": page, "next": start + PAGE if start + PAGE < len(names) else None}

    def _insert(self, name: str, fields: Body, tags: dict[str, str], login: tuple[str, str], turn: str = "") -> Body:
        if name in self.objects:
            raise ServiceError(412, f"{name} exists")

        def effect() -> None:
            stored = self.put(name, fields, tags)
            stored.since, stored.is_inserted = self.now, True
            stored.passwords |= dict([login]) if login[0] else {}

        return self._changed("insert", name, effect, turn)

    def _put(self, name: str, fields: Body, login: tuple[str, str], turn: str = "") -> Body:
        """Create an object or change it: the answer does not say which."""

        def effect() -> None:
            stored = self.objects.get(name) or self.put(name, fields)
            stored.fields |= fields
            stored.passwords |= dict([login]) if login[0] else {}

        return self._changed("put", name, effect, turn)

    def _patch(self, name: str, fields: Body, tags: dict[str, str | None], turn: str = "") -> Body:
        stored = self._existing(name)

        def effect() -> None:
            stored.fields |= fields
            for key, value in tags.items():
                stored.tags.pop(key, None)
                stored.tags |= {} if value is None else {key: value}

        return self._changed("patch", name, effect, turn)

    def _password(self, name: str, login: str, password: str, turn: str = "") -> Body:
        stored = self._existing(name)
        return self._changed("password", name, lambda: stored.passwords.update({login: password}), turn)

    def _drop(self, name: str, login: str, turn: str = "") -> Body:
        stored = self._existing(name)

        def effect() -> None:
            stored.passwords.pop(login, None)

        return self._changed("drop", name, effect, turn)

    def _delete(self, name: str, backup: str = "", turn: str = "") -> Body:
        self._existing(name)
        if backup and not self.takes_backups:
            raise ServiceError(400, "no backup can be taken")

        def effect() -> None:
            gone = self.objects.pop(name)
            if backup:
                self.backups[backup] = gone.incarnation

        return self._changed("delete", name, effect, turn)

    def _backups(self, name: str) -> Body:
        return {"backups": [backup for backup in self.backups if backup.startswith(f"{name}-")]}

    def _operation(self, handle: str) -> Body:
        running = self.operations.get(handle)
        if running is None or running.is_lost:
            raise ServiceError(404, f"there is no operation {handle}")
        is_over = running.ends <= self.now
        running.polls += is_over
        return {"done": is_over, "failure": running.failure if is_over else ""}


@dataclass
class GatedService(ToyService):
    """A service after each of whose changes the calling process may end; a list breaks off after its first page."""

    gate: Gate = field(default_factory=Gate)
    is_cut: bool = False

    async def call(self, action: str, name: str = "", **body: Any) -> Body:
        if action in READS:
            return await super().call(action, name, **body)
        return await self.gate.passed(super().call(action, name, **body), "cloud")

    def _fault(self, action: str) -> Fault | None:
        # The first page of a list comes.
        if action == "list" and not self.is_cut:
            self.is_cut = True
            return None
        self.is_cut = False
        return super()._fault(action)
