"""Of two processes one acts: no mutating request of the one that lost the Lease falls among those of its successor."""

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

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"
# Short, and yet long enough for a machine that is busy with other tests.
_LEASE = ("--lease-duration=6", "--lease-renew-deadline=4", "--lease-retry=1")
_LOAD_AT_ONCE = 8
_PROOF = 6  # writes by which a process has shown that it acts


@dataclass(frozen=True, slots=True)
class Role:
    """One kind of process of ours."""

    module: tuple[str, ...]
    namespace: str
    account: str
    user: str

    @property
    def lease(self) -> str:
        return _LEASES.format(self.namespace, self.account)


_ROLES = {
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
        return Candidate(program, _credential(kubeconfig))


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _nobody_stays(system: System) -> AsyncIterator[None]:
    """What a test started ends with it: its rival of the next test must not be one of these."""
    yield
    for program in system.started:
        if program.is_running:
            await program.kill9()


@pytest.mark.parametrize("role", _ROLES.values(), ids=_ROLES.keys())
async def test_a_frozen_or_killed_leader_never_acts_beside_its_successor(
    system: System, namespace: str, role: Role
) -> None:
    other = _ROLES["provider" if role is _ROLES["composer"] else "composer"]
    await Candidate.start(system, other, f"beside-{role.account}", "--no-elect")
    first = await Candidate.start(system, role, "first", *_LEASE)
    await _until_held(system, role)
    second = await Candidate.start(system, role, "second", *_LEASE)
    names = {first.credential: "first", second.credential: "second"}
    audit = system.audit()

    async with _load(system, namespace):
        await _until_acts(audit, role, first)
        first.program.freeze()
        await _until_acts(audit, role, second)
        first.program.thaw()
        await _until_acts(audit, role, second)
        if await _has_ended(system, role, first):
            first = await Candidate.start(system, role, "again", *_LEASE)
            names[first.credential] = "first"
        await second.program.kill9()
        await _until_acts(audit, role, first)

    terms = _terms(_acts(audit, role), names)
    assert [name for name, _requests in terms] == ["first", "second", "first"], _told(terms)


@asynccontextmanager
async def _load(system: System, namespace: str) -> AsyncIterator[None]:
    """Have claims made and changed all the while, so that who leads always has something to write."""

    async def one(number: int) -> None:
        for step in itertools.count():
            name = f"load{number}x{step}"
            await system.create(CLAIM, claim(namespace, name, deletionPolicy="Orphan"))
            await system.until(CLAIM, namespace, name, is_ready, limit_s=120.0)

    tasks = [asyncio.create_task(one(number)) for number in range(_LOAD_AT_ONCE)]
    try:
        yield
        for task in tasks:
            assert not task.done() or task.exception() is None, task.exception()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def _acts(audit: AuditLog, role: Role) -> list[Request]:
    return sorted(audit.requests(Match(user=role.user, verbs=WRITES)), key=lambda one: one.received_at)


async def _until_acts(audit: AuditLog, role: Role, candidate: Candidate) -> None:
    """Wait until a process has written something several times more."""

    def count() -> int:
        return sum(one.credential == candidate.credential for one in _acts(audit, role))

    before = count()

    async def has_acted() -> bool:
        return count() >= before + _PROOF

    await eventually(has_acted, f"{candidate.program.log.name} acts", limit_s=60.0)


async def _has_ended(system: System, role: Role, candidate: Candidate) -> bool:
    """Wait until a process that lost the Lease stands by or has ended, as it does when calls in flight outlive it."""
    audit = system.audit()
    looks = Match(user=role.user, resource="leases", namespace=role.namespace)

    async def known() -> bool:
        has_looked = any(one.credential == candidate.credential for one in audit.requests(looks))
        return has_looked or not candidate.program.is_running

    await eventually(known, f"{candidate.program.log.name} stands by or has ended")
    return not candidate.program.is_running


async def _until_held(system: System, role: Role) -> None:
    async def held() -> bool:
        lease = await system.api.find(role.lease)
        return lease is not None and bool(lease["spec"].get("holderIdentity"))

    await eventually(held, f"{role.lease} is held")


def _terms(acts: list[Request], names: dict[str, str]) -> list[tuple[str, list[Request]]]:
    """Group consecutive requests by who sent them."""
    grouped = itertools.groupby(acts, key=lambda one: str(names.get(one.credential, one.credential)))
    return [(name, list(requests)) for name, requests in grouped]


def _told(terms: list[tuple[str, list[Request]]]) -> str:
    return "\n".join(
        f"{name}: {len(requests)} from {requests[0].received_at} ({requests[0].verb} {requests[0].resource}) "
        f"to {requests[-1].received_at}"
        for name, requests in terms
    )


def _credential(kubeconfig: Path) -> str:
    token = msgspec.json.decode(kubeconfig.read_bytes())["users"][0]["user"]["token"]
    payload = token.split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"
