"""Fixtures for every test: a real control plane, PostgreSQL servers, programs of ours.

Each pytest worker has a plane of its own, since what is cluster-scoped would meet between workers.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from devcloud import addresses, onprem
from devcloud.controlplane import Programs, ensure
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from devcloud.install import Assets
from devcloud.onprem import OnPremServer
from devcloud.postgres import server
from devcloud.postgres.tls_proxy import Endpoint, TLSProxy, serving
from tests.support.api import Api, connect
from tests.support.audit import AuditLog
from tests.support.namespaces import end_namespace
from tests.support.processes import Program
from tests.support.system import System

_ROOT = Path(__file__).resolve().parents[2]
ASSETS = Assets(crds=_ROOT / "crds", compositions=_ROOT / "compositions", deploy=_ROOT / "deploy")
_APISERVER_FIXTURES = frozenset({"plane", "api", "namespace", "audit", "system", "shared_system"})
_POSTGRES_FIXTURES = frozenset({"postgres_server", "onprem_server", "onprem_proxy"})
_RDS_FIXTURES = frozenset({"served", "simulator", "moto_port"})
_WITH_SERVERS = tuple(f"tests/{name}/" for name in ("apiserver", "postgres", "security", "system"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark a test by what it uses, so that nobody can forget to."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if used & _APISERVER_FIXTURES:
            item.add_marker(pytest.mark.apiserver)
        if used & _POSTGRES_FIXTURES:
            item.add_marker(pytest.mark.postgres)
        if used & _RDS_FIXTURES:
            item.add_marker(pytest.mark.rds)
        if item.nodeid.startswith(_WITH_SERVERS):
            # The quick ones among them go along: `make check` does not even read these folders.
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def control_plane_programs() -> Programs:
    return asyncio.run(ensure(print))


@pytest.fixture(scope="session")
def plane(shared_system: System) -> Plane:
    """Return the shared platform's control plane, for tests that ask the API server alone."""
    return shared_system.plane


@pytest.fixture
async def api(plane: Plane) -> AsyncIterator[Api]:
    """Yield the administrator's raw client."""
    async with connect(plane.kubeconfig) as client:
        yield client


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """Yield a fresh namespace with a default ServiceAccount's worth of nothing, which is gone afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    await api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await end_namespace(api, name)


@pytest.fixture
def audit(plane: Plane) -> AuditLog:
    """Return the audit log from this test's start on."""
    return AuditLog(plane.audit_log)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    """Yield a bare PostgreSQL 16 on a unix socket, for the whole session."""
    folder = tmp_path_factory.mktemp("pg")
    yield asyncio.run(server.start(server.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)))
    asyncio.run(server.stop(folder, grace_s=5.0))
    server.discard(folder)


@pytest.fixture(scope="session")
def onprem_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnPremServer]:
    """Yield the platform team's server behind TLS, with the provider's login, for the whole session."""
    folder = tmp_path_factory.mktemp("onprem")
    options = onprem.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)
    lease = addresses.lease()
    yield asyncio.run(onprem.start(options, lease))
    asyncio.run(onprem.stop(folder, grace_s=5.0, is_temporary=True))
    lease.release()


@pytest.fixture
async def onprem_proxy(onprem_server: OnPremServer) -> AsyncIterator[TLSProxy]:
    """Yield one more TLS proxy before the same server, at 127.0.0.1 and `.port`, for this test to stop or to break."""
    endpoint = Endpoint(
        host="127.0.0.1",
        port=0,
        socket=onprem_server.server.socket,
        certificate=onprem_server.certificate,
        key=onprem_server.key,
    )
    async with serving(endpoint) as proxy:
        yield proxy


@pytest.fixture
async def programs(tmp_path: Path) -> AsyncIterator[Callable[..., Program]]:
    """Make programs that are killed when the test ends: `programs("composer", kubeconfig=...)`."""
    made: list[Program] = []

    def make(*arguments: str, kubeconfig: Path | None = None, **environment: str) -> Program:
        log = tmp_path / f"{len(made)}-{arguments[0]}.log"
        program = Program(arguments, log=log, kubeconfig=kubeconfig, environment=environment)
        made.append(program)
        return program

    yield make
    for program in made:
        if program.is_running:
            await program.kill9()


@pytest.fixture
def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
