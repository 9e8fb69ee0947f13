"""Quiet when done: at rest nothing is written, no event emitted, no SQL changes; a restart writes nothing either."""

import asyncio
from collections import Counter

import pytest
import pytest_asyncio

from tests.support.audit import WRITES, Match, Request
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    SECRET,
    claim,
    composition,
    condition,
    is_ready,
)
from tests.support.processes import Program, running_program
from tests.support.system import COMPOSER, PROVIDER, System, passes
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CLAIMS = 6
_RESYNCS = 3
_RESYNC_S = 2


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def resting(system: System) -> System:
    """Return Ready claims and some in every kind of trouble; both processes at a short resync; all at rest."""
    await asyncio.gather(_start_composer(system), _start_provider(system))
    await system.namespaced("rest")
    troubled = await _troubled(system)
    names = [f"claim-{number:03}" for number in range(_CLAIMS)]
    await asyncio.gather(*(system.create(CLAIM, claim("rest", name)) for name in names))

    async def all_ready() -> bool:
        claims = await system.api.items(CLAIM.path("rest"))
        return len(claims) == _CLAIMS and all(is_ready(obj) for obj in claims)

    await eventually(all_ready, f"{_CLAIMS} claims are Ready", limit_s=240.0, every_s=1.0)
    for name in troubled:
        await system.until(CLAIM, "trouble", name, lambda obj: condition(obj, "Stalled").get("status") == "True")
    await system.at_rest(for_s=3.0)
    return system


async def _troubled(system: System) -> list[str]:
    """Make claims that cannot be made true, each for another reason; return those that end Stalled.

    What is missing is waited for, a minute, before a person is called: that is shown on virtual time.
    """
    await system.namespaced("trouble")
    await system.create(SECRET, SECRET.new("trouble", "taken", stringData={"a": "b"}))
    template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"forProvider": "{{ 1 + }}"}}
    await system.create(COMPOSITION, composition("unreadable", {"name": "database", "template": template}))
    claims = (
        claim("trouble", "unreadable", compositionRef={"name": "unreadable"}),
        claim("trouble", "unsupported", version="18"),
        claim("trouble", "refused", parameters={"work_mem": "nonsense"}),
        claim("trouble", "taken", connectionSecretName="taken"),
        claim("trouble", "lost"),
    )
    for obj in claims:
        await system.create(CLAIM, obj)
    await system.until(CLAIM, "trouble", "lost", is_ready)
    (child,) = await system.children("trouble", "lost")
    await system.server.server.execute(f"DROP DATABASE {child['status']['externalName']} WITH (FORCE)")
    paused = claim("trouble", "paused")
    paused["metadata"]["annotations"] = {"fairlead.dev/paused": "true"}
    await system.create(CLAIM, paused)
    return [obj["metadata"]["name"] for obj in claims]


async def _start_composer(system: System) -> Program:
    return await system.start_composer("--resync", str(_RESYNC_S))


async def _start_provider(system: System) -> Program:
    return await system.start_provider("--resync", str(_RESYNC_S), "--grace", "2")


async def _until_passes(system: System, name: str, number: int) -> None:
    """Wait until a process's busiest controller has ended so many passes more: the state that is waited for."""
    start = await passes(system.ports[name])

    async def done() -> bool:
        return await passes(system.ports[name]) >= start + number

    await eventually(done, f"{name}: {number} passes", limit_s=240.0, every_s=0.5)


def _summary(writes: list[Request]) -> Counter[tuple[str, ...]]:
    return Counter(
        (request.user.rpartition(":")[2], request.verb, request.resource, request.subresource) for request in writes
    )


async def test_claims_at_rest_through_resyncs_cost_no_write_no_event_no_change(resting: System) -> None:
    audit, mark = resting.audit(), resting.sql.mark()
    await asyncio.gather(*(_until_passes(resting, name, _RESYNCS * _CLAIMS) for name in ("composer", "provider")))
    writes = audit.requests(Match(verbs=WRITES))
    assert _summary([request for request in writes if request.user in {COMPOSER, PROVIDER}]) == {}
    assert _summary([request for request in writes if request.resource == "events"]) == {}
    assert resting.sql.changes(mark) == []


async def test_a_restart_of_both_writes_nothing(resting: System) -> None:
    audit, mark = resting.audit(), resting.sql.mark()
    stopped = [running_program(resting.started, name).terminate() for name in ("composer", "provider")]
    assert await asyncio.gather(*stopped) == [0, 0]
    await asyncio.gather(_start_composer(resting), _start_provider(resting))
    await asyncio.gather(*(_until_passes(resting, name, 2 * _CLAIMS) for name in ("composer", "provider")))
    writes = [request for request in audit.requests(Match(verbs=WRITES)) if request.user in {COMPOSER, PROVIDER}]
    # A process that begins tries once more what the server refused: an intent and a report, in words as before.
    again = [request for request in writes if request.user == PROVIDER and request.name.startswith("refused-")]
    assert len(again) <= 2
    assert _summary([request for request in writes if request not in again]) == {}
    assert [statement for statement in resting.sql.changes(mark) if "nonsense" not in statement] == []
