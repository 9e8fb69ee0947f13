"""Fairlead's own pods on a node: the images of `make images`, installed by the Helm chart; run by `make e2e`, as root.

ARCHIVES names a folder with the images as OCI archives, made with REPOSITORY=localhost; without it they are built.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from devcloud import addresses, clouds, controlplane, install, node
from devcloud.clouds import RunningCloud
from devcloud.controlplane import plane as planes
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Lifetime
from devcloud.node import node as nodes
from devcloud.node.components import ADDRESS
from devcloud.node.node import Node
from tests.security.canaries import content_of, forms_of
from tests.support import helm
from tests.support.audit import AuditLog
from tests.support.fixtures import ASSETS
from tests.support.rights import rights_in, usage_of
from tests.support.waiting import eventually

_ROOT = Path(__file__).resolve().parents[2]
_TAG = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
_CLOUDS = clouds.names()
_SERVED = "onprem"
_IMAGES = ("fairlead-composer", *(f"fairlead-provider-{cloud}" for cloud in _CLOUDS))
_NAMESPACES = ("fairlead-system", *(f"fairlead-{cloud}" for cloud in _CLOUDS))
_SHOP = "shop"
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_READY_LIMIT_S = 420
_CLAIM_LIMIT_S = 240
# What an application does with the files of its connection Secret.
_LOGIN = """
from pathlib import Path
import psycopg
mounted = Path("/bindings/db")
with psycopg.connect((mounted / "uri").read_text(), sslrootcert=str(mounted / "certificates")) as connection:
    print(connection.execute("SELECT session_user = %s", [(mounted / "username").read_text()]).fetchone()[0])
"""
# What a pod learns by name: the API server's Service, the pods behind a Service of the chart, nothing of what is none.
_NAMES = """
import socket
print(socket.gethostbyname("kubernetes.default"))
print(*sorted({answer[4][0] for answer in socket.getaddrinfo("fairlead-composer.fairlead-system", 8081)}))
try:
    print(socket.gethostbyname("nobody.default"))
except socket.gaierror:
    print("unknown")
"""


@dataclass(frozen=True)
class Cluster:
    """A control plane with a node, on which only the chart was installed, and a server for its on-prem provider."""

    folder: Path
    plane: Plane
    node: Node
    server: RunningCloud

    async def items(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        text = await self.plane.kubectl.run("get", kind, f"--namespace={namespace}", "--output=json")
        listed: list[dict[str, Any]] = json.loads(text)["items"]
        return listed

    async def wait(self, thing: str, state: str, namespace: str = _SHOP, limit_s: int = _CLAIM_LIMIT_S) -> None:
        words = ("wait", thing, f"--namespace={namespace}", f"--for={state}", f"--timeout={limit_s}s")
        await self.plane.kubectl.run(*words, limit_s=limit_s + 30.0)

    def helm(self, *words: str | Path) -> None:
        ended = helm.run(helm.program(), "--kubeconfig", self.plane.kubeconfig, *words)
        assert ended.returncode == 0, ended.stderr

    def install(self) -> None:
        """Install the chart and wait until all of its pods are Ready."""
        release = ("fairlead", helm.CHART, f"--namespace={helm.RELEASE}", "--create-namespace")
        self.helm(
            "install", *release, f"--values={self.folder / 'values.json'}", "--wait", f"--timeout={_READY_LIMIT_S}s"
        )


@pytest.fixture(scope="module")
def archives() -> Iterator[Path]:
    """Yield the folder with an archive of each image."""
    named = os.environ.get("ARCHIVES", "")
    if named:
        yield Path(named)
        return
    folder = Path(tempfile.mkdtemp(prefix="fairlead-images-"))
    settings = {"ARCHIVES": str(folder), "ENGINE": "buildah", "REPOSITORY": "localhost"}
    subprocess.run([_ROOT / "deploy" / "images" / "build"], env={**os.environ, **settings}, check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(archives: Path) -> Iterator[Cluster]:
    """Yield a cluster with the chart, all of its pods Ready, and a ProviderConfig for the on-prem server."""
    # Not pytest's folder: a socket's path has at most 107 characters (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="fairlead-e2e-"))
    try:
        started = asyncio.run(_start(folder, archives))
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
    for image in _IMAGES:
        await running.import_image(archives / f"{image}.tar")
    lease = addresses.lease()
    (folder / _SERVED).mkdir()
    server = await clouds.cloud_of(_SERVED).start(folder / _SERVED, dataclasses.replace(lease, pods_address=address))
    lease.release()
    namespace = {"name": _SHOP, "labels": _RESTRICTED}
    await install.apply_objects(plane.kubectl, [{"apiVersion": "v1", "kind": "Namespace", "metadata": namespace}])
    uid = await plane.kubectl.run("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
    values = {
        "image": {"repository": "localhost", "tag": _TAG, "pullPolicy": "Never"},
        "installation": {"id": "0123456789abcdef", "clusterUid": uid},
        "claimNamespaces": [_SHOP],
        "logLevel": "DEBUG",
        "providers": {cloud: {"enabled": True} for cloud in _CLOUDS},
    }
    (folder / "values.json").write_text(json.dumps(values))
    return Cluster(folder, plane, running, server)


async def _configure(cluster: Cluster) -> None:
    await install.apply_objects(cluster.plane.kubectl, cluster.server.objects)
    others = [cloud for cloud in _CLOUDS if cloud != _SERVED]
    await install.install_compositions(cluster.plane.kubectl, ASSETS, without=others)


async def _stop(folder: Path) -> None:
    if (folder / "node").exists():
        await nodes.stop(folder / "node", progress=print)
    if (folder / _SERVED).exists():
        await clouds.cloud_of(_SERVED).stop(folder / _SERVED)
    await planes.stop(folder / "plane")


@pytest.mark.parametrize("namespace", _NAMESPACES)
async def test_pods_are_ready_under_the_restricted_standard_and_one_of_them_leads(
    cluster: Cluster, namespace: str
) -> None:
    described = json.loads(await cluster.plane.kubectl.run("get", "namespace", namespace, "--output=json"))
    pods = await cluster.items("pods", namespace)

    assert _RESTRICTED.items() <= described["metadata"]["labels"].items()
    states = [state for pod in pods for state in pod["status"]["containerStatuses"]]
    assert [(state["ready"], state["restartCount"]) for state in states] == [(True, 0), (True, 0)]
    (holder,) = [lease["spec"]["holderIdentity"] for lease in await cluster.items("leases", namespace)]
    assert [pod["metadata"]["name"] in holder for pod in pods].count(True) == 1


async def test_a_claim_is_served_by_pods_and_an_application_in_a_pod_logs_in(cluster: Cluster) -> None:
    await _claim(cluster, "orders")
    await cluster.wait("pgi/orders", "condition=Ready")

    assert await _logs_in(cluster, "app") == "True"
    (claim,) = await cluster.items("pgi", _SHOP)
    assert claim["status"]["endpoint"] == ADDRESS


async def test_a_pod_finds_services_by_name(cluster: Cluster) -> None:
    pods = await cluster.items("pods", "fairlead-system")

    assert (await _prints(cluster, "names", _NAMES)).split() == [
        "10.0.0.1",
        *sorted(pod["status"]["podIP"] for pod in pods),
        "unknown",
    ]


async def test_what_is_changed_in_the_database_behind_the_pods_is_put_back(cluster: Cluster) -> None:
    query = ("get", "secret", "orders-connection", f"--namespace={_SHOP}", "--output=jsonpath={.data.username}")
    username = base64.b64decode(await cluster.plane.kubectl.run(*query)).decode()
    secret, config = cluster.server.objects
    login = {"user": secret["stringData"]["username"], "password": secret["stringData"]["password"]}
    place = {"host": config["spec"]["host"], "port": config["spec"]["port"], "dbname": config["spec"]["database"]}
    async with await psycopg.AsyncConnection.connect(**place, **login, autocommit=True) as administrator:
        await administrator.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(username)))

        async def may_log_in() -> bool:
            cursor = await administrator.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = %s", [username])
            row = await cursor.fetchone()
            return row is not None and row[0]

        assert not await may_log_in()
        await eventually(may_log_in, f"{username} may log in again", limit_s=_CLAIM_LIMIT_S, every_s=1.0)
    assert await _logs_in(cluster, "after-drift") == "True"


async def test_all_deployments_roll_while_claims_come_and_none_fails(cluster: Cluster) -> None:
    (orders,) = await cluster.items("pgi", _SHOP)
    was_ready = _condition(orders, "Ready")
    kubectl = cluster.plane.kubectl
    before = {pod["metadata"]["uid"] for name in _NAMESPACES for pod in await cluster.items("pods", name)}

    for image, namespace in zip(_IMAGES, _NAMESPACES, strict=True):
        await kubectl.run("rollout", "restart", f"deployment/{image}", f"--namespace={namespace}")
        await _claim(cluster, f"during-{image}")
    for image, namespace in zip(_IMAGES, _NAMESPACES, strict=True):
        words = ("rollout", "status", f"deployment/{image}", f"--namespace={namespace}", f"--timeout={_READY_LIMIT_S}s")
        await kubectl.run(*words, limit_s=_READY_LIMIT_S + 30.0)
    for image in _IMAGES:
        await cluster.wait(f"pgi/during-{image}", "condition=Ready")

    claims = await cluster.items("pgi", _SHOP)
    assert [_condition(claim, "Ready")["status"] for claim in claims] == ["True"] * (1 + len(_IMAGES))
    assert [claim["metadata"]["name"] for claim in claims if _condition(claim, "Stalled").get("status") == "True"] == []
    (orders,) = [claim for claim in claims if claim["metadata"]["name"] == "orders"]
    assert _condition(orders, "Ready")["lastTransitionTime"] == was_ready["lastTransitionTime"]

    async def old_ones_are_gone() -> bool:
        now = {pod["metadata"]["uid"] for name in _NAMESPACES for pod in await cluster.items("pods", name)}
        return not now & before

    await eventually(old_ones_are_gone, "the former pods are gone", limit_s=120.0, every_s=1.0)


@pytest.mark.parametrize(("image", "namespace"), list(zip(_IMAGES, _NAMESPACES, strict=True)))
def test_what_the_pods_asked_for_is_what_their_rights_list(cluster: Cluster, image: str, namespace: str) -> None:
    log = AuditLog.from_the_start(cluster.plane.audit_log)
    user = f"system:serviceaccount:{namespace}:{image}"
    requests = [request for request in log.requests(begun=True) if request.user == user]
    rights = rights_in((_ROOT / "deploy" / "rights" / f"{image}.txt").read_text(encoding="utf-8"))
    usage = usage_of(rights, requests, own=namespace, with_claims=frozenset({_SHOP}))

    assert len(requests) > 10
    assert usage.refused == []
    assert usage.unlisted == []


async def test_no_secret_shows_in_what_the_pods_log_at_debug(cluster: Cluster) -> None:
    secret, _ = cluster.server.objects
    kept = [content_of(item) for item in await cluster.items("secrets", _SHOP)]
    canaries = {secret["stringData"]["password"]}
    canaries |= {content[key] for content in kept for key in ("password", "current", "pending") if content.get(key)}
    pods = [pod for name in _NAMESPACES for pod in await cluster.items("pods", name)]
    assert [pod["metadata"]["name"] for pod in pods if "--log-level=DEBUG" not in _arguments(pod)] == []
    places = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
    logs = [await cluster.plane.kubectl.run("logs", name, f"--namespace={namespace}") for namespace, name in places]
    logs += [await cluster.plane.kubectl.run("get", kinds, "-A", "--output=json") for kinds in ("events", "pgi,pods")]

    assert len(canaries) > 2
    shown = [
        number
        for number, text in enumerate(logs)
        if any(form in text for canary in canaries for form in forms_of(canary))
    ]
    assert shown == []


async def test_claims_and_databases_outlive_the_release_and_a_new_one_takes_them_up(cluster: Cluster) -> None:
    claims = await cluster.items("pgi", _SHOP)

    await asyncio.to_thread(
        cluster.helm, "uninstall", "fairlead", f"--namespace={helm.RELEASE}", "--wait", "--timeout=240s"
    )

    async def none_runs() -> bool:
        return not [pod for name in _NAMESPACES for pod in await cluster.items("pods", name)]

    await eventually(none_runs, "no pod of ours is left", limit_s=120.0, every_s=1.0)
    assert [claim["metadata"]["uid"] for claim in await cluster.items("pgi", _SHOP)] == [
        claim["metadata"]["uid"] for claim in claims
    ]
    assert await _logs_in(cluster, "without-us") == "True"

    await asyncio.to_thread(cluster.install)
    await _claim(cluster, "afterwards")
    await cluster.wait("pgi/afterwards", "condition=Ready")
    states = [_condition(claim, "Ready")["status"] for claim in await cluster.items("pgi", _SHOP)]
    assert states == ["True"] * (len(claims) + 1)
    assert await _logs_in(cluster, "after-us") == "True"


async def _claim(cluster: Cluster, name: str) -> None:
    claim = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": name, "namespace": _SHOP},
        "spec": {"version": "16", "size": "small"},
    }
    await install.apply_objects(cluster.plane.kubectl, [claim])


def _arguments(pod: dict[str, Any]) -> list[str]:
    return [argument for container in pod["spec"]["containers"] for argument in container["args"]]


def _condition(claim: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a condition; empty without it."""
    return next((entry for entry in claim["status"]["conditions"] if entry["type"] == name), {})


async def _logs_in(cluster: Cluster, name: str) -> str:
    """Return what an application prints that logs in to `orders` from a pod of that name."""
    return await _prints(cluster, name, _LOGIN)


async def _prints(cluster: Cluster, name: str, program: str) -> str:
    """Return what a program prints in a pod of that name."""
    await install.apply_objects(cluster.plane.kubectl, [_application(name, program)])
    await cluster.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded")
    return (await cluster.plane.kubectl.run("logs", name, f"--namespace={_SHOP}")).strip()


def _application(name: str, program: str) -> dict[str, Any]:
    """Return a pod that runs a program once beside the mounted Secret; of the images the provider has libpq."""
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    runs = {
        "name": "app",
        "image": f"localhost/fairlead-provider-onprem:{_TAG}",
        "imagePullPolicy": "Never",
        "command": ["python", "-c", program],
        "securityContext": secured,
        "volumeMounts": [{"name": "db", "mountPath": "/bindings/db", "readOnly": True}],
    }
    volume = {"name": "db", "secret": {"secretName": "orders-connection"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": _SHOP},
        "spec": {"restartPolicy": "Never", "containers": [runs], "volumes": [volume]},
    }
