"""The API server's audit log as an oracle: who did what, how often."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS = frozenset({"get", "list", "watch"})
_LEFT_OUT = frozenset({"leases", "selfsubjectaccessreviews"})
_DECISION = "authorization.k8s.io/decision"
_ENDED = frozenset({"ResponseComplete", "Panic"})
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


class _User(msgspec.Struct):
    username: str = ""
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _ObjectRef(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    request_uri: str = msgspec.field(name="requestURI", default="")
    user: _User = msgspec.field(default_factory=_User)
    user_agent: str = ""
    object_ref: _ObjectRef | None = None
    response_status: _Status | None = None
    request_received_timestamp: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One finished request.

    `user` is the full name, `system:serviceaccount:<namespace>:<name>` for a process; `credential` sets tokens of one
    account apart (`JTI=<id>`); `received_at` is RFC 3339 with microseconds, UTC, so that its text sorts. `decision` is
    the authorizer's, `allow` or `forbid`.
    """

    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    uri: str
    credential: str
    received_at: str
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which requests to look at; an empty attribute matches all. `user` and `user_agent` match as a part.

    Leases are left out unless asked for by `resource`: they are written by design while all else is quiet. So are
    questions about one's own rights, which are posted and never stored.
    `subresource` "-" matches requests without one.
    """

    user: str = ""
    user_agent: str = ""
    verbs: frozenset[str] = frozenset()
    group: str | None = None
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    succeeded: bool | None = None

    def __call__(self, request: Request) -> bool:
        if request.resource in _LEFT_OUT and self.resource != request.resource:
            return False
        return (
            self.user in request.user
            and self.user_agent in request.user_agent
            and (not self.verbs or request.verb in self.verbs)
            and (self.group is None or request.group == self.group)
            and self.resource in {"", request.resource}
            and self.subresource in {"", request.subresource or "-"}
            and self.namespace in {"", request.namespace}
            and self.name in {"", request.name}
            and (self.succeeded is None or self.succeeded == (request.code < 400))
        )


@dataclass(slots=True)
class AuditLog:
    """Reads the log from where it stood when this reader was made, or since the last `rewind`."""

    path: Path
    _next: int = field(init=False)
    _is_in_line: bool = field(init=False)
    _read: list[tuple[str, Request]] = field(init=False)

    def __post_init__(self) -> None:
        self.rewind()

    @classmethod
    def from_the_start(cls, path: Path) -> Self:
        """Return a reader of all that was ever written."""
        log = cls(path)
        log._next, log._is_in_line = 0, False
        return log

    def rewind(self) -> None:
        """Forget all that happened until now."""
        # The line that ends with the byte before, or that is being written there, is of before.
        self._next = max(0, self.path.stat().st_size - 1)
        self._is_in_line = self._next > 0
        self._read = []

    def requests(self, match: Match | None = None, *, begun: bool = False) -> list[Request]:
        """Return finished requests since the start, in order; a watch is finished when it ends.

        `begun` adds those of which only the answer began, as watches that are open.
        """
        self._read_on()
        ended = (request for stage, request in self._read if begun or stage in _ENDED)
        return [request for request in ended if match is None or match(request)]

    def _read_on(self) -> None:
        """Read what was written since the last look; a line that is being written has no end yet."""
        with self.path.open("rb") as file:
            file.seek(self._next)
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        self._next += sum(map(len, lines))
        if lines and self._is_in_line:
            self._is_in_line = False
            lines.pop(0)
        decoded = (msgspec.json.decode(line, type=_Line) for line in lines)
        self._read += [(line.stage, _request(line)) for line in decoded]

    def count(self, match: Match) -> int:
        return len(self.requests(match))

    def writes(self, user: str = "", *, namespace: str = "", resource: str = "") -> list[Request]:
        """Return the writes of a user (part of its name), Leases apart."""
        return self.requests(Match(user=user, verbs=WRITES, namespace=namespace, resource=resource))

    def table(self, match: Match) -> Counter[tuple[str, str, str]]:
        """Count by (verb, resource, subresource)."""
        return Counter((request.verb, request.resource, request.subresource) for request in self.requests(match))

    async def until_quiet(self, match: Match, *, for_s: float = 2.0, limit_s: float = 120.0) -> None:
        """Wait until no matching request came for that long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        seen, since = self.count(match), loop.time()
        while loop.time() - since < for_s:
            if loop.time() > deadline:
                raise AssertionError(f"not quiet within {limit_s:g} s: {self.requests(match)[-5:]}")
            await asyncio.sleep(0.1)
            now_seen = self.count(match)
            if now_seen != seen:
                seen, since = now_seen, loop.time()


def _request(line: _Line) -> Request:
    ref = line.object_ref or _ObjectRef()
    return Request(
        user=line.user.username,
        user_agent=line.user_agent,
        verb=line.verb,
        group=ref.api_group,
        resource=ref.resource,
        subresource=ref.subresource,
        namespace=ref.namespace,
        name=ref.name,
        code=line.response_status.code if line.response_status else 0,
        uri=line.request_uri,
        credential=next(iter(line.user.extra.get(_CREDENTIAL, [])), ""),
        received_at=line.request_received_timestamp,
        decision=line.annotations.get(_DECISION, ""),
    )
