"""The whole system as its judges meet it: a control plane, PostgreSQL behind TLS, composer and provider as processes.

Both processes run under their own ServiceAccounts. Facts come from the API server, its audit log and PostgreSQL's log.
"""

import asyncio
import base64
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from devcloud import addresses, onprem
from devcloud.controlplane import Programs
from devcloud.controlplane import plane as planes
from devcloud.controlplane.kubectl import Kubectl
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from devcloud.install import until_served
from devcloud.onprem import OnPremServer
from tests.support.api import Api, ApiError, JsonObject, connect
from tests.support.audit import WRITES, AuditLog, Match, Request
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    NAMESPACE,
    PROVIDER_CONFIG,
    SECRET,
    Kind,
    condition,
)
from tests.support.namespaces import end_namespace
from tests.support.passes import passes_by_controller
from tests.support.prepared import prepare
from tests.support.processes import Program
from tests.support.sql_log import SqlLog
from tests.support.waiting import eventually

_SERVER = "onprem"
_ROOT = Path(__file__).resolve().parents[2]
COMPOSER = "system:serviceaccount:fairlead-system:fairlead-composer"
PROVIDER = "system:serviceaccount:fairlead-onprem:fairlead-provider-onprem"
_OURS = "system:serviceaccount:fairlead-"
ADMIN_SECRET = "onprem-admin"
_SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")


@dataclass(frozen=True, slots=True)
class ForPods:
    """An address of this machine that pods reach, and a folder with the authority that they trust."""

    address: str
    tls: Path


@dataclass(slots=True, kw_only=True)
class System:
    """A rig: what runs, and where to look.

    New namespaces are prepared for the providers of `clouds`, which are among the `installed`. With `for_pods` the
    chart has installed all clouds, and simulated ones listen where pods of ours reach them, else on a loop-back address
    of the lease.
    """

    plane: Plane
    api: Api
    folder: Path
    lease: addresses.Lease
    server: OnPremServer
    clouds: list[str] = field(default_factory=lambda: ["onprem"])
    installed: list[str] = field(default_factory=lambda: ["onprem"])
    started: list[Program] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    kubeconfigs: dict[str, Path] = field(default_factory=dict)
    for_pods: ForPods | None = None

    @property
    def sql(self) -> SqlLog:
        return SqlLog(self.server.server.log, self.server.username)

    @property
    def kubectl(self) -> Kubectl:
        return self.plane.kubectl

    def audit(self) -> AuditLog:
        """Return a reader of the audit log that begins now."""
        return AuditLog(self.plane.audit_log)

    # Processes

    async def start_composer(self, *flags: str, name: str = "composer", wait: bool = True) -> Program:
        return await self._start(name, ("composer",), ("fairlead-system", "fairlead-composer"), flags, wait=wait)

    async def start_provider(self, *flags: str, name: str = "provider", wait: bool = True) -> Program:
        return await self.start_provider_of("onprem", *flags, name=name, wait=wait)

    async def start_provider_of(
        self, cloud: str, *flags: str, name: str, wait: bool = True, module: str = "providers"
    ) -> Program:
        account = (f"fairlead-{cloud}", f"fairlead-provider-{cloud}")
        return await self._start(name, (module, cloud), account, flags, wait=wait)

    async def _start(
        self, name: str, module: tuple[str, ...], account: tuple[str, str], flags: tuple[str, ...], *, wait: bool
    ) -> Program:
        kubeconfig = await self._kubeconfig_of(*account)
        port = free_port()
        common = ("--kubeconfig", str(kubeconfig), "--namespace", account[0], "--health-port", str(port))
        number = len(self.started)
        program = Program((*module, *common, *flags), log=self.folder / f"{number}-{name}.log")
        await program.start()
        self.started.append(program)
        self.ports[name] = port
        if wait:
            await program.until_healthy(port)
        return program

    async def _kubeconfig_of(self, namespace: str, account: str) -> Path:
        """Return the kubeconfig of a ServiceAccount: one token for all processes that act as it."""
        uid = (await self.api.get(_SERVICE_ACCOUNT.path(namespace, account)))["metadata"]["uid"]
        if uid not in self.kubeconfigs:
            self.kubeconfigs[uid] = await self.plane.service_account_kubeconfig(namespace, account)
        return self.kubeconfigs[uid]

    # Objects

    async def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """POST as kubectl does: with strict field validation."""
        path = kind.path(obj["metadata"].get("namespace", ""))
        return await self.api.create(path, obj, fieldValidation="Strict", fieldManager="kubectl-create")

    async def apply(self, kind: Kind, obj: JsonObject) -> JsonObject:
        meta = obj["metadata"]
        return await self.api.apply(kind.path(meta.get("namespace", ""), meta["name"]), obj)

    async def edit(self, kind: Kind, namespace: str, name: str, patch: JsonObject) -> JsonObject:
        """Merge a patch as `kubectl edit` does."""
        query = {"fieldManager": "kubectl-edit"}
        return await self.api.request(
            "PATCH", kind.path(namespace, name), patch, content_type="application/merge-patch+json", query=query
        )

    async def until(
        self, kind: Kind, namespace: str, name: str, holds: Callable[[JsonObject], bool], *, limit_s: float = 60.0
    ) -> JsonObject:
        """Wait until an object is in a state; return it."""
        last: JsonObject | None = None

        async def met() -> JsonObject | None:
            nonlocal last
            last = await self.api.find(kind.path(namespace, name))
            return last if last is not None and holds(last) else None

        try:
            return await eventually(met, f"{kind.kind} {namespace}/{name}", limit_s=limit_s)
        except AssertionError:
            raise AssertionError(f"{kind.kind} {namespace}/{name} after {limit_s:g} s: {_short(last)}") from None

    async def delete(self, kind: Kind, namespace: str, name: str, *, propagation: str = "Background") -> None:
        """Delete an object and wait until it is gone."""
        path = kind.path(namespace, name)
        await self.api.delete(path, propagation=propagation)
        try:
            await self.api.until_gone(path)
        except AssertionError:
            raise AssertionError(f"{path} is still there: {_short(await self.api.find(path))}") from None

    async def children(self, namespace: str, claim_name: str) -> list[JsonObject]:
        """Return what a claim composed, as its inventory names it and the API server has it."""
        claim = await self.api.get(CLAIM.path(namespace, claim_name))
        children: list[JsonObject] = []
        for entry in claim.get("status", {}).get("inventory", []):
            group, _, version = entry["apiVersion"].rpartition("/")
            kind = Kind(group, version, entry["kind"], f"{entry['kind'].lower()}s")
            child = await self.api.find(kind.path(namespace, entry["name"]))
            if child is not None:
                children.append({"apiVersion": entry["apiVersion"], "kind": entry["kind"], **child})
        return children

    async def binding(self, namespace: str, claim_name: str) -> dict[str, str]:
        """Return the decoded connection Secret that a claim's status names."""
        claim = await self.api.get(CLAIM.path(namespace, claim_name))
        return decoded(await self.api.get(SECRET.path(namespace, claim["status"]["binding"]["name"])))

    async def login(self, namespace: str, claim_name: str) -> psycopg.AsyncConnection:
        """Log in as the application does, with what the Secret says and nothing else."""
        return await self.login_by(await self.binding(namespace, claim_name))

    async def login_by(self, binding: Mapping[str, str]) -> psycopg.AsyncConnection:
        """Log in with what a connection Secret said."""
        # Cloud SQL's certificate names the instance and no address.
        assert binding["sslmode"] == ("verify-ca" if binding.get("provider") == "gcp" else "verify-full")
        authority = self.folder / f"ca-{secrets.token_hex(4)}.pem"
        await asyncio.to_thread(authority.write_text, binding["certificates"])
        return await psycopg.AsyncConnection.connect(
            host=binding["host"],
            port=int(binding["port"]),
            dbname=binding["database"],
            user=binding["username"],
            password=binding["password"],
            sslmode=binding["sslmode"],
            sslrootcert=str(authority),
            connect_timeout=60,
            autocommit=True,
        )

    async def logs_in(self, namespace: str, claim_name: str) -> bool:
        return await self.logs_in_by(await self.binding(namespace, claim_name))

    async def logs_in_by(self, binding: Mapping[str, str]) -> bool:
        try:
            await (await self.login_by(binding)).close()
        except psycopg.OperationalError:
            return False
        return True

    async def ask_for_a_pass(self, kind: Kind, namespace: str, name: str) -> None:
        """Ask for a reconcile as a person does; its end is seen by the echo in status, not waited for here."""
        token = {"fairlead.dev/reconcile-requested-at": secrets.token_hex(8)}
        await self.edit(kind, namespace, name, {"metadata": {"annotations": token}})

    async def install_cloud(self, cloud: str) -> None:
        """Have the CRDs, roles and policies of a cloud, and prepare namespaces from here on for its provider too."""
        if cloud in self.clouds:
            return
        if self.for_pods is None and cloud not in self.installed:
            folder = _ROOT / "deploy" / "kustomize" / "clouds" / cloud
            await self.kubectl.run("apply", "--server-side", "--kustomize", str(folder))
            self.installed.append(cloud)
        self.clouds.append(cloud)

    async def configure(self) -> None:
        """Write what a platform team writes: the installation's id, the on-prem server, the shipped Compositions."""
        cluster_uid = (await self.api.get(NAMESPACE.path("", "kube-system")))["metadata"]["uid"]
        data = {"id": secrets.token_hex(8), "clusterUid": cluster_uid}
        await self.apply(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "fairlead-installation", data=data))
        await self.apply(SECRET, SECRET.new("fairlead-onprem", ADMIN_SECRET, stringData=self.admin_login()))
        await self.create(PROVIDER_CONFIG, self.provider_config("default"))
        await self.kubectl.run("apply", "--server-side", "--filename", str(_ROOT / "compositions"))

    # Temporary objects

    @asynccontextmanager
    async def composition(self, obj: JsonObject) -> AsyncIterator[str]:
        """Have a Composition for the length of a block; yield its name."""
        name = obj["metadata"]["name"]
        await self.create(COMPOSITION, obj)
        try:
            yield name
        finally:
            with contextlib.suppress(ApiError):
                await self.api.delete(COMPOSITION.path("", name))

    @asynccontextmanager
    async def namespace(self, **labels: str) -> AsyncIterator[str]:
        name = f"test-{secrets.token_hex(4)}"
        await self.namespaced(name, **labels)
        try:
            yield name
        finally:
            await end_namespace(self.api, name)

    async def namespaced(self, name: str, **labels: str) -> None:
        """Make a namespace of that name, prepared for claims, which stays."""
        await self.create(NAMESPACE, {**NAMESPACE.new("", name), "metadata": {"name": name, "labels": labels}})
        await prepare(self.api, name, *self.clouds)

    def admin_login(self) -> dict[str, str]:
        return {"username": self.server.username, "password": self.server.password, "host": self.server.host}

    async def connection_limit(self, database: str) -> int:
        """Return what the server itself says of a database."""
        rows = await self.server.server.execute("SELECT datname, datconnlimit FROM pg_catalog.pg_database")
        return next(int(str(limit)) for name, limit in rows if name == database)

    def provider_config(self, name: str, **changes: Any) -> JsonObject:
        """Return a ProviderConfig for the rig's server, open to every namespace; None leaves a field out."""
        spec = {
            "host": self.server.host,
            "port": self.server.port,
            "database": self.server.database,
            "adminSecretRef": {"name": ADMIN_SECRET},
            "caBundle": self.server.authority_pem.decode(),
            "allowedNamespaces": {"selector": {}},
            # The destroy rate limit has tests of its own; here it would stop the fourth test that deletes.
            "limits": {"destroysPerHour": 10_000},
            **changes,
        }
        return PROVIDER_CONFIG.new("", name, spec={key: value for key, value in spec.items() if value is not None})

    # Rest

    async def at_rest(self, *, for_s: float = 1.5, limit_s: float = 120.0) -> None:
        """Wait until no process of ours has written anything for a while."""
        await self.audit().until_quiet(Match(user=_OURS, verbs=WRITES), for_s=for_s, limit_s=limit_s)

    async def writes_until_rest(self, act: Callable[[], Awaitable[Any]], *, for_s: float = 1.5) -> list[Request]:
        """Do something, wait for rest, return what the two processes requested meanwhile, in order."""
        audit = self.audit()
        await act()
        await audit.until_quiet(Match(user=_OURS, verbs=WRITES), for_s=for_s)
        return [request for request in audit.requests(Match()) if request.user in {COMPOSER, PROVIDER}]


@asynccontextmanager
async def rig(folder: Path, programs: Programs) -> AsyncIterator[System]:
    """Run a plane and a PostgreSQL server with everything installed but no process of ours yet."""
    lease = addresses.lease()
    options = planes.Options(
        folder=folder / "plane", lifetime=Lifetime.WITH_PARENT, durable=False, before_controllers=_install
    )
    server_options = _server_options(folder / _SERVER)
    plane, server = await asyncio.gather(planes.start(options, programs), onprem.start(server_options, lease))
    try:
        async with connect(plane.kubeconfig) as api:
            system = System(plane=plane, api=api, folder=folder, lease=lease, server=server)
            await system.configure()
            try:
                yield system
            finally:
                for program in system.started:
                    if program.is_running:
                        await program.kill9()
    finally:
        await onprem.stop(server_options.folder, grace_s=5.0, is_temporary=True)
        await planes.stop(options.folder, grace_s=2.0)
        lease.release()


def _server_options(folder: Path) -> onprem.Options:
    return onprem.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)


async def _install(kubectl: Kubectl) -> None:
    await kubectl.run("apply", "--server-side", "--filename", str(_ROOT / "crds"))
    await until_served(kubectl, _ROOT / "crds")
    await kubectl.run("apply", "--server-side", "--kustomize", str(_ROOT / "deploy" / "kustomize" / "base"))


async def passes(port: int) -> int:
    """Return how many passes the busiest controller of a process has ended, by its own metrics."""
    return max((await passes_by_controller(port)).values(), default=0)


def decoded(secret: JsonObject) -> dict[str, str]:
    """Return the content of a Secret."""
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _short(obj: JsonObject | None) -> str:
    if obj is None:
        return "absent"
    meta = obj["metadata"]
    names = ("Ready", "Synced", "Reconciling", "Stalled")
    conditions = [condition(obj, name) for name in names]
    words = [f"{c['type']}={c['status']} {c['reason']}: {c['message'][:400]}" for c in conditions if c]
    return f"{meta['name']} generation {meta.get('generation')} deleting {'deletionTimestamp' in meta} {words}"
