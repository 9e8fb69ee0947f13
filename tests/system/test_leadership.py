"""Of two processes one acts: no write of the one that lost the Lease lands on what its successor has written."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.support.audit import WRITES, AuditLog, Match, Request
from tests.support.home import claim
from tests.support.kinds import CLAIM, is_ready
from tests.support.processes import Program
from tests.support.system import COMPOSER, PROVIDER, System, free_port
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"
# Short, and yet long enough for a machine that is busy with other tests.
LEASE = ("--lease-duration=6", "--lease-renew-deadline=4", "--lease-retry=1")
LOAD_AT_ONCE = 4
PROOF = 6  # writes by which a process has shown that it acts


@dataclass(frozen=True, slots=True)
class Role:
    """One kind of process of ours."""

    module: tuple[str, ...]
    namespace: str
    account: str
    user: str

    @property
    def lease(self) -> str:
        return LEASES.format(self.namespace, self.account)


ROLES = {
    "composer": Role(("composer",), "fairlead-system", "fairlead-composer", COMPOSER),
    "provider": Role(("providers", "onprem"), "fairlead-onprem", "fairlead-provider-onprem", PROVIDER),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A process with a token of its own, by which the audit log knows it from its rival."""

    program: Program
    credential: str

    @staticmethod
    async def start(system: System, role: Role, name: str, *more: str) -> Candidate:
        shared = await system.plane.service_account_kubeconfig(role.namespace, role.account)
        kubeconfig = shared.with_name(f"{shared.name}.{name}")
        kubeconfig.write_bytes(shared.read_bytes())
        port = free_port()
        flags = ("--kubeconfig", str(kubeconfig), "--namespace", role.namespace, "--health-port", str(port))
        program = Program((*role.module, *flags, *more), log=system.folder / f"{role.account}-{name}.log")
        await program.start()
        system.started.append(program)
        await program.until_healthy(port)
        return Candidate(program, credential(kubeconfig))


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nobody_stays(system: System) -> AsyncIterator[None]:
    """End with the test what it started: a rival of the next test must not be one of these."""
    yield
    for program in system.started:
        if program.is_running:
            await program.kill9()


# Both processes have one elector and one client: each of the two ways to come too late is shown of one of them.
async def test_a_frozen_or_killed_leader_never_writes_over_its_successor(system: System, namespace: str) -> None:
    role = ROLES["provider"]
    await start_other(system, role)
    first = await Candidate.start(system, role, "first", *LEASE)
    await until_held(system, role)
    second = await Candidate.start(system, role, "second", *LEASE)
    audit = system.audit()

    async with under_load(system, namespace):
        await until_acts(audit, role, first)
        first.program.freeze()
        await until_acts(audit, role, second)
        first.program.thaw()
        await until_acts(audit, role, second)
        third = first
        if await _has_ended(system, role, first):
            third = await Candidate.start(system, role, "again", *LEASE)
        # The first may lead once more from here on: what it writes then is not late.
        earlier = acts(audit, role, third)
        thawed = over_the_successor(acts(audit, role, first), acts(audit, role, second))
        await second.program.kill9()
        await until_acts(audit, role, third)

    killed = over_the_successor(acts(audit, role, second), acts(audit, role, third)[len(earlier) :])
    assert (thawed, killed) == ([], [])


def over_the_successor(former: list[Request], successor: list[Request]) -> list[Request]:
    """Return the writes of a former leader that were accepted on what its successor had written by then.

    One on an object that the successor has not written yet is as if it had come before: whoever writes next has to
    read it first. So is an Event, which is written once and never read by us.
    """
    written: dict[tuple[str, str, str, str], str] = {}
    for act in filter(is_accepted, successor):
        written.setdefault(written_object(act), act.received_at)
    accepted = [act for act in former if is_accepted(act)]
    return [act for act in accepted if written.get(written_object(act), act.received_at) < act.received_at]


def is_accepted(act: Request) -> bool:
    return 200 <= act.code < 300


def written_object(act: Request) -> tuple[str, str, str, str]:
    return act.group, act.resource, act.namespace, act.name


@asynccontextmanager
async def under_load(system: System, namespace: str) -> AsyncIterator[None]:
    """Have claims made and changed all the while, so that who leads always has something to write."""

    async def create_claim(number: int) -> None:
        for step in itertools.count():
            name = f"load{number}x{step}"
            await system.create(CLAIM, claim(namespace, name, deletionPolicy="Orphan"))
            await system.until(CLAIM, namespace, name, is_ready, limit_s=120.0)

    tasks = [asyncio.create_task(create_claim(number)) for number in range(LOAD_AT_ONCE)]
    try:
        yield
        for task in tasks:
            assert not task.done() or task.exception() is None, task.exception()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def start_other(system: System, role: Role) -> None:
    """Start the process of the other kind, which the whole system needs, without a rival."""
    other = ROLES["provider" if role is ROLES["composer"] else "composer"]
    await Candidate.start(system, other, f"beside-{role.account}", "--no-elect")


def acts(audit: AuditLog, role: Role, candidate: Candidate | None = None) -> list[Request]:
    """Return the writes of a kind of process, or of one process, in the order in which they came."""
    acts = audit.requests(Match(user=role.user, verbs=WRITES))
    chosen = (act for act in acts if candidate is None or act.credential == candidate.credential)
    return sorted(chosen, key=lambda act: act.received_at)


async def until_acts(audit: AuditLog, role: Role, candidate: Candidate) -> None:
    """Wait until a process has written something several times more."""

    def count() -> int:
        return len(acts(audit, role, candidate))

    before = count()

    async def has_acted() -> bool:
        return count() >= before + PROOF

    await eventually(has_acted, f"{candidate.program.log.name} acts", limit_s=60.0)


async def _has_ended(system: System, role: Role, candidate: Candidate) -> bool:
    """Wait until a process that lost the Lease stands by or has ended, as it does when calls in flight outlive it."""
    audit = system.audit()
    lease_requests = Match(user=role.user, resource="leases", namespace=role.namespace)

    async def known() -> bool:
        has_looked = any(request.credential == candidate.credential for request in audit.requests(lease_requests))
        return has_looked or not candidate.program.is_running

    await eventually(known, f"{candidate.program.log.name} stands by or has ended")
    return not candidate.program.is_running


async def until_held(system: System, role: Role) -> None:
    async def held() -> bool:
        lease = await system.api.find(role.lease)
        return lease is not None and bool(lease["spec"].get("holderIdentity"))

    await eventually(held, f"{role.lease} is held")


def credential(kubeconfig: Path) -> str:
    token = msgspec.json.decode(kubeconfig.read_bytes())["users"][0]["user"]["token"]
    payload = token.split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"
