"""What `fairlead demo` shows of a cloud: the story, which the cloud's own folder brings, and the steps of most of them.

Each step ends when its effect was really seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from devcloud.errors import DevcloudError
from runtime.conditions import current, find, is_true
from runtime.objects import Object

_EPHEMERAL = "fairlead.dev/ephemeral"
LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {"app.kubernetes.io/managed-by": "fairlead-demo", _EPHEMERAL: "true"}
)
"""What every namespace of the demo carries: no other one is deleted."""
_CLAIMS = "postgresqlinstance"
Answer = TypeVar("Answer")


class Stage(Protocol):
    """Where a story plays: it types what a person would type, shows it, and believes only what it sees afterwards."""

    namespace: str
    """Where the story plays now."""

    def chapter(self, title: str) -> None:
        """Begin the next part of the story."""

    def say(self, text: str) -> None:
        """Print a sentence of the story."""

    def show(self, text: str, *, prefix: str = ..., style: str = ...) -> None:
        """Print what a program printed."""

    async def kubectl(self, *arguments: str, document: str | None = None) -> str:
        """Type a kubectl command, with a manifest on standard input, and show both and the answer."""

    async def prepare(self) -> None:
        """Type `fairlead prepare` for the namespace."""

    async def quietly(self, *arguments: str) -> str:
        """Run kubectl without showing it."""

    async def find(self, kind: str, name: str) -> Object | None:
        """Read one object of the namespace, None when it is absent."""

    async def psql(self, claim: str, statement: str) -> str:
        """Open a claim's database with its Secret and run a statement; show and return what psql printed."""

    async def try_psql(self, claim: str, statement: str) -> tuple[str, str, int]:
        """Run psql without showing it; return its output, its errors and its exit code."""

    async def trace(self, claim: str) -> None:
        """Type `fairlead trace` and show its tree."""

    async def until(
        self, goal: str, probe: Callable[[], Awaitable[Answer | None]], *, claim: str, limit_s: float = ...
    ) -> Answer:
        """Wait until a probe about a claim finds something and return it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is shown of one cloud.

    Attributes:
        namespace: The namespace that it makes; no other cloud's story has it.
        labels: By what claims in that namespace go to the cloud, beside `LABELS`.
        play: Plays it, with the cloud's folder and the second number of its addresses. Raises DevcloudError when a
            step was not seen to happen.
    """

    namespace: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    play: Callable[[Stage, Path, int], Awaitable[None]]

    def namespace_document(self) -> str:
        """Return the manifest of the namespace."""
        values = {name: f'"{value}"' for name, value in {**LABELS, **self.labels}.items()}
        values[_EPHEMERAL] += "   # its deletion may take its databases along"
        labels = "".join(f"    {name}: {values[name]}\n" for name in sorted(values))
        return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {self.namespace}\n  labels:\n{labels}"


def claim_document(namespace: str, name: str, *, size: str = "small", composition: str = "") -> str:
    """Return the manifest of a claim for PostgreSQL 16 whose deletion deletes its database."""
    reference = f"  compositionRef:\n    name: {composition}\n" if composition else ""
    return f"""\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata:
  name: {name}
  namespace: {namespace}
spec:
  version: "16"
  size: {size}
  deletionPolicy: Delete
{reference}"""


def demand(*, holds: bool, otherwise: str) -> None:
    """Raise DevcloudError with a sentence unless something holds."""
    if not holds:
        raise DevcloudError(otherwise)


async def make_namespace(stage: Stage, story: Story) -> None:
    """Create the story's namespace and prepare it for claims."""
    stage.namespace = story.namespace
    await stage.kubectl("apply", "--filename=-", document=story.namespace_document())
    await stage.prepare()


async def psql_answers(stage: Stage, claim: str) -> None:
    """Show that psql opens a claim's database, and keeps what is written there."""
    stage.chapter("psql opens the database with the Secret, TLS verified")
    await stage.psql(claim, "CREATE TABLE invoice (id int); INSERT INTO invoice VALUES (1), (2), (3)")
    answer = await stage.psql(claim, "SELECT count(*) FROM invoice")
    demand(holds=answer.strip() == "3", otherwise=f"psql should have counted 3 rows, said: {answer.strip()}")


async def one_claim(stage: Stage, story: Story, *, title: str, resources: str) -> None:
    """Show how a claim in the story's namespace becomes a database of the cloud; `resources` is its kind's plural."""
    stage.namespace = story.namespace
    stage.chapter(title)
    await make_namespace(stage, story)
    await stage.kubectl("apply", "--filename=-", document=claim_document(story.namespace, "orders"))
    await until_ready(stage, "orders", limit_s=120.0)
    await stage.trace("orders")
    await stage.kubectl("get", resources, f"--namespace={story.namespace}")
    await psql_answers(stage, "orders")


async def until_ready(stage: Stage, claim: str, *, again: bool = False, limit_s: float = 60.0) -> None:
    """Wait until a claim is Ready for the spec that it has now."""
    goal = f"{claim} is Ready{' again' if again else ''}"
    await stage.until(goal, lambda: _ready(stage, claim), claim=claim, limit_s=limit_s)


async def until_unready(stage: Stage, claim: str, reason: str, *, stalled: bool = False, limit_s: float = 60.0) -> None:
    """Wait until a claim says for a reason that it is not Ready, and, `stalled`, that only a person's act helps."""

    async def unready() -> Object | None:
        claim_now = await _unready(stage, claim, reason)
        return None if claim_now is None or (stalled and not is_true(claim_now, "Stalled")) else claim_now

    await stage.until(f"{claim} says {reason}", unready, claim=claim, limit_s=limit_s)


async def child_of(stage: Stage, claim: str, kind: str) -> Object:
    """Return a claim's child of a kind. Raises DevcloudError when it has none."""
    claim_now = await stage.find(_CLAIMS, claim)
    entries = ((claim_now or {}).get("status") or {}).get("inventory") or ()
    for entry in entries:
        child = await stage.find(kind, entry["name"])
        if child is not None:
            return child
    raise DevcloudError(f"{claim} has no {kind}; `fairlead trace {claim} -n {stage.namespace}` says more")


async def _ready(stage: Stage, claim: str) -> Object | None:
    claim_now = await stage.find(_CLAIMS, claim)
    is_ready = claim_now is not None and is_true(claim_now, "Ready") and current(claim_now, "Ready")
    return claim_now if is_ready else None


async def _unready(stage: Stage, claim: str, reason: str) -> Object | None:
    claim_now = await stage.find(_CLAIMS, claim)
    condition = find(claim_now, "Ready") if claim_now is not None else None
    said = None if condition is None else (condition["status"], condition["reason"])
    return claim_now if said == ("False", reason) else None
