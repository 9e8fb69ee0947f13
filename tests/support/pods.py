"""Fairlead's own pods on a node, and applications in other pods beside them: what the tests of `make e2e` share."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcloud import addresses, clouds, controlplane, install, node, onprem
from devcloud.certificates import authority_in
from devcloud.clouds import RunningCloud
from devcloud.controlplane import plane as planes
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from devcloud.node import node as nodes
from devcloud.node.node import Node
from devcloud.simulator.server import AUTHORITY
from tests.support import helm
from tests.support.api import connect
from tests.support.fixtures import ASSETS
from tests.support.gcp import FLAGS
from tests.support.simulated_cloud import PORTS, QUICK
from tests.support.system import ForPods, System

ROOT = Path(__file__).resolve().parents[2]
TAG = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CLOUDS = clouds.names()
SERVED = "onprem"
IMAGES = ("fairlead-composer", *(f"fairlead-provider-{cloud}" for cloud in CLOUDS))
NAMESPACES = ("fairlead-system", *(f"fairlead-{cloud}" for cloud in CLOUDS))
SHOP = "shop"
CLAIM_NAMESPACES = (SHOP, "by-flux", "by-argocd")
"""The namespaces of claims, each of the restricted standard."""
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_TLS = "tls"
_TRUSTED_BY = ("AWS_CA_BUNDLE", "SSL_CERT_FILE")
"""The variables by which the providers of AWS and of Google Cloud find another authority than the public ones."""
READY_LIMIT_S = 420
CLAIM_LIMIT_S = 240
# What an application does with the files of its connection Secret.
_LOGIN = """
from pathlib import Path
import psycopg
mounted = Path("/bindings/db")
with psycopg.connect((mounted / "uri").read_text(), sslrootcert=str(mounted / "certificates")) as connection:
    print(connection.execute("SELECT session_user = %s", [(mounted / "username").read_text()]).fetchone()[0])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A program that runs once in a pod of the restricted standard, beside a mounted connection Secret.

    Attributes:
        name: The pod's name.
        command: The program and its arguments.
        image: An image of the node; of ours the on-prem provider's has Python and libpq.
        namespace: The pod's namespace.
        secret: The Secret that is mounted at /bindings/db.
    """

    name: str
    command: tuple[str, ...]
    image: str = f"localhost/fairlead-provider-onprem:{TAG}"
    namespace: str = SHOP
    secret: str = "orders-connection"

    def pod(self) -> dict[str, Any]:
        secured = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        runs = {
            "name": "app",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": list(self.command),
            "securityContext": secured,
            "volumeMounts": [{"name": "db", "mountPath": "/bindings/db", "readOnly": True}],
        }
        volume = {"name": "db", "secret": {"secretName": self.secret}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"restartPolicy": "Never", "containers": [runs], "volumes": [volume]},
        }


@dataclass(frozen=True)
class Cluster:
    """A control plane with a node, on which only the chart was installed, and a server for its on-prem provider.

    `octet` is the second number of the server's loop-back addresses. The providers of the other clouds speak to
    simulated ones at the node's address; the cluster does not run those.
    """

    folder: Path
    plane: Plane
    node: Node
    server: RunningCloud
    octet: int

    async def items(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        text = await self.plane.kubectl.run("get", kind, f"--namespace={namespace}", "--output=json")
        listed: list[dict[str, Any]] = json.loads(text)["items"]
        return listed

    async def wait(self, thing: str, state: str, namespace: str = SHOP, limit_s: int = CLAIM_LIMIT_S) -> None:
        words = ("wait", thing, f"--namespace={namespace}", f"--for={state}", f"--timeout={limit_s}s")
        await self.plane.kubectl.run(*words, limit_s=limit_s + 30.0)

    async def claim(self, name: str) -> None:
        """Create a small claim in SHOP."""
        claim = {
            "apiVersion": "database.fairlead.dev/v1alpha1",
            "kind": "PostgreSQLInstance",
            "metadata": {"name": name, "namespace": SHOP},
            "spec": {"version": "16", "size": "small"},
        }
        await install.apply_objects(self.plane.kubectl, [claim])

    async def prints(self, application: Application) -> str:
        """Run an application in a pod until it ends well; return what it printed."""
        name, namespace = application.name, application.namespace
        await install.apply_objects(self.plane.kubectl, [application.pod()])
        await self.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded", namespace)
        return (await self.plane.kubectl.run("logs", name, f"--namespace={namespace}")).strip()

    async def logs_in(self, name: str) -> str:
        """Return what an application prints that logs in to the claim `orders` of SHOP from a pod of that name."""
        return await self.prints(Application(name=name, command=("python", "-c", _LOGIN)))

    @asynccontextmanager
    async def system(self) -> AsyncIterator[System]:
        """Yield the cluster as what the tests of processes know; they may start simulated clouds, and no process."""
        server = onprem.server_in(self.folder / SERVED, self.octet)
        assert server is not None
        lease = addresses.lease()
        try:
            async with connect(self.plane.kubeconfig) as api:
                yield System(
                    plane=self.plane,
                    api=api,
                    folder=self.folder,
                    lease=lease,
                    server=server,
                    for_pods=ForPods(self.node.address, self.folder / _TLS),
                )
        finally:
            lease.release()

    def helm(self, *words: str | Path) -> None:
        ended = helm.run(helm.program(), "--kubeconfig", self.plane.kubeconfig, *words)
        assert ended.returncode == 0, ended.stderr

    def install(self) -> None:
        """Install the chart and wait until all of its pods are Ready."""
        release = ("fairlead", helm.CHART, f"--namespace={helm.RELEASE}", "--create-namespace")
        self.helm(
            "install", *release, f"--values={self.folder / 'values.json'}", "--wait", f"--timeout={READY_LIMIT_S}s"
        )


@contextmanager
def _archives() -> Iterator[Path]:
    """Yield the folder with an archive of each image: that of ARCHIVES, or a new one that is filled now."""
    named = os.environ.get("ARCHIVES", "")
    if named:
        yield Path(named)
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-images-") as folder:
        settings = {"ARCHIVES": folder, "ENGINE": "buildah", "REPOSITORY": "localhost"}
        subprocess.run([ROOT / "deploy" / "images" / "build"], env={**os.environ, **settings}, check=True)
        yield Path(folder)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Yield a cluster with the chart, all of its pods Ready, and a ProviderConfig for the on-prem server."""
    # Not pytest's folder: a socket's path has at most 107 characters (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="fairlead-e2e-"))
    try:
        with _archives() as images:
            started = asyncio.run(_start(folder, images))
        started.install()
        asyncio.run(_configure(started))
        yield started
    finally:
        asyncio.run(_stop(folder))
        shutil.rmtree(folder)


async def _start(folder: Path, archives: Path) -> Cluster:
    programs, node_programs = await controlplane.ensure(print), await node.ensure(print)
    address = await nodes.take_address(folder / "node", progress=print)
    options = planes.Options(folder=folder / "plane", lifetime=Lifetime.DETACHED, durable=False, node_address=address)
    plane = await planes.start(options, programs)
    running = await nodes.start(folder / "node", plane, node_programs, lifetime=Lifetime.DETACHED, progress=print)
    for image in IMAGES:
        await running.import_image(archives / f"{image}.tar")
    lease = addresses.lease()
    (folder / SERVED).mkdir()
    server = await clouds.cloud_of(SERVED).start(folder / SERVED, dataclasses.replace(lease, pods_address=address))
    lease.release()
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}
        for name in CLAIM_NAMESPACES
    ]
    await install.apply_objects(plane.kubectl, namespaces)
    tls = folder / _TLS
    tls.mkdir(mode=0o700)
    await install.apply_objects(plane.kubectl, list(_authorities(authority_in(tls, AUTHORITY).pem.decode())))
    uid = await plane.kubectl.run("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
    values = {
        "image": {"repository": "localhost", "tag": TAG, "pullPolicy": "Never"},
        "installation": {"id": "0123456789abcdef", "clusterUid": uid},
        "claimNamespaces": list(CLAIM_NAMESPACES),
        "logLevel": "DEBUG",
        "providers": {cloud: _values(cloud, address) for cloud in CLOUDS},
    }
    (folder / "values.json").write_text(json.dumps(values))
    return Cluster(folder, plane, running, server, lease.octet)


def _authorities(pem: str) -> Iterator[dict[str, Any]]:
    """Yield the namespace of each provider that speaks to a simulated cloud, and the authority that it trusts.

    The release takes over namespaces that say that they are its own.
    """
    release = {"meta.helm.sh/release-name": "fairlead", "meta.helm.sh/release-namespace": helm.RELEASE}
    owned = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": release}
    for namespace in (f"fairlead-{cloud}" for cloud in CLOUDS if cloud != SERVED):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, **owned}}
        metadata = {"name": "company", "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": pem}}


def _values(cloud: str, address: str) -> dict[str, Any]:
    """Return the chart's values of a provider; of other clouds it speaks to a simulated one alone, and often."""
    if cloud == SERVED:
        return {"enabled": True}
    args = [f"--endpoint-override={address}:{PORTS[cloud]}", *(FLAGS if cloud == "gcp" else QUICK)]
    return {
        "enabled": True,
        "args": args,
        "env": [{"name": name, "value": "/company/ca.crt"} for name in _TRUSTED_BY],
        "volumes": [{"name": "company", "configMap": {"name": "company"}}],
        "volumeMounts": [{"name": "company", "mountPath": "/company", "readOnly": True}],
    }


async def _configure(cluster: Cluster) -> None:
    secret, config = cluster.server.objects
    # The destroy rate limit has tests of its own; here it would stop the fourth test that deletes.
    unlimited = {**config, "spec": {**config["spec"], "limits": {"destroysPerHour": 10_000}}}
    await install.apply_objects(cluster.plane.kubectl, [secret, unlimited])
    await install.install_compositions(cluster.plane.kubectl, ASSETS)


async def _stop(folder: Path) -> None:
    if (folder / "node").exists():
        await nodes.stop(folder / "node", progress=print)
    if (folder / SERVED).exists():
        await clouds.cloud_of(SERVED).stop(folder / SERVED)
    await planes.stop(folder / "plane")
