"""A node on this machine, and applications in its pods; run by `make e2e`, as root on Debian.

What a program in a pod would do is done from the pod's network namespace, with the files that the kubelet mounted for
it: the pod's image is the sandbox's own, so that none has to be built.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcloud import up
from devcloud.install import apply_objects
from devcloud.node.components import ADDRESS, BRIDGE, PAUSE_IMAGE
from devcloud.up import Environment, Options
from tests.support.fixtures import ASSETS
from tests.support.waiting import eventually

_NAMESPACE = "shop"
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
# Asks the API server by the address of its Service, as the pod's own ServiceAccount.
_WHOAMI = """
import json, ssl, sys, urllib.request
from pathlib import Path
mounted = Path(sys.argv[1])
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
request = urllib.request.Request(
    "https://10.0.0.1/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(review).encode(),
    {"Authorization": "Bearer " + (mounted / "token").read_text(), "Content-Type": "application/json"})
context = ssl.create_default_context(cafile=str(mounted / "ca.crt"))
print(json.load(urllib.request.urlopen(request, context=context, timeout=60))["status"]["userInfo"]["username"])
"""
# Logs in by the connection Secret's files alone.
_LOGIN = """
import sys
from pathlib import Path
import psycopg
mounted = Path(sys.argv[1])
with psycopg.connect((mounted / "uri").read_text(), sslrootcert=str(mounted / "certificates")) as connection:
    print(connection.execute("SELECT session_user, inet_server_addr() IS NULL").fetchone()[0])
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Environment]:
    """Yield a platform with a node, its composer and its on-prem provider as processes."""
    # Not pytest's folder: a socket's path has at most 107 characters (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="fairlead-e2e-"))
    try:
        yield asyncio.run(up.up(Options(ASSETS, folder / "platform", node=True), print))
    finally:
        asyncio.run(up.down(print, folder=folder / "platform"))
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def namespace(platform: Environment) -> str:
    """Return a namespace of the restricted standard that is prepared for claims."""
    labels = {"name": _NAMESPACE, "labels": _RESTRICTED}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": labels}
    asyncio.run(apply_objects(platform.plane.kubectl, [made]))
    asyncio.run(up.prepare(ASSETS, [_NAMESPACE], folder=platform.folder))
    return _NAMESPACE


def _pod(name: str, volumes: list[dict[str, Any]] | None = None, **container: Any) -> dict[str, Any]:
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    runs = {"name": "app", "image": PAUSE_IMAGE, "imagePullPolicy": "Never", "securityContext": secured, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {"containers": [runs], "volumes": volumes or []},
    }


async def _run(platform: Environment, pod: dict[str, Any]) -> tuple[Path, int]:
    """Run a pod; return the folder of its volumes and the process of its one container when it is Ready."""
    kubectl, name = platform.plane.kubectl, pod["metadata"]["name"]
    await apply_objects(kubectl, [pod])
    words = ("wait", f"pod/{name}", f"--namespace={_NAMESPACE}", "--for=condition=Ready", "--timeout=240s")
    await kubectl.run(*words, limit_s=260.0)
    query = "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}"
    answer = await kubectl.run("get", "pod", name, f"--namespace={_NAMESPACE}", "--output", query)
    uid, _, container = answer.partition(" ")
    node = platform.folder / "node"
    tasks = _said("ctr", f"--address={node / 'containerd.sock'}", "--namespace=k8s.io", "tasks", "list")
    pids = dict(line.split()[:2] for line in tasks.splitlines()[1:])
    return node / "kubelet" / "pods" / uid / "volumes", int(pids[container.removeprefix("containerd://")])


def _said(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def _in_network_of(pid: int, program: str, *arguments: str) -> str:
    return _said("nsenter", f"--net=/proc/{pid}/ns/net", sys.executable, "-c", program, *arguments)


async def test_a_restricted_pod_reaches_the_api_server_by_its_service(platform: Environment, namespace: str) -> None:
    volumes, pid = await _run(platform, _pod("caller"))

    (mounted,) = (volumes / "kubernetes.io~projected").iterdir()
    assert _in_network_of(pid, _WHOAMI, str(mounted)) == f"system:serviceaccount:{namespace}:default"
    # The API server asks the kubelet, and the kubelet the API server whether it may.
    assert await platform.plane.kubectl.run("logs", "caller", f"--namespace={namespace}") == ""


async def test_a_pod_with_a_right_too_many_is_refused(platform: Environment, namespace: str) -> None:
    pod = _pod("privileged", securityContext={"privileged": True})

    with pytest.raises(Exception, match='violates PodSecurity "restricted'):
        await apply_objects(platform.plane.kubectl, [pod])
    assert (
        await platform.plane.kubectl.run("get", "pod", "privileged", f"--namespace={namespace}", "--ignore-not-found")
        == ""
    )


async def test_an_application_in_a_pod_logs_in_by_its_mounted_secret(platform: Environment, namespace: str) -> None:
    kubectl = platform.plane.kubectl
    claim = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "orders", "namespace": namespace},
        "spec": {"version": "16", "size": "small"},
    }
    await apply_objects(kubectl, [claim])
    # It waits for its Secret, as a kubelet has every pod wait.
    volume = {"name": "db", "secret": {"secretName": "orders-connection"}}
    mount = {"name": "db", "mountPath": "/bindings/db", "readOnly": True}
    volumes, pid = await _run(platform, _pod("orders", [volume], volumeMounts=[mount]))

    mounted = volumes / "kubernetes.io~secret" / "db"
    assert (mounted / "host").read_text() == ADDRESS
    assert _in_network_of(pid, _LOGIN, str(mounted)) == (mounted / "username").read_text()


def test_down_leaves_nothing_of_the_node_on_the_machine(platform: Environment) -> None:
    folder = platform.folder

    assert asyncio.run(up.down(print, folder=folder))

    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert BRIDGE not in _said("ip", "-brief", "link")
    assert ADDRESS not in _said("ip", "-brief", "address")
    assert "kube-proxy" not in _said("nft", "list", "tables")

    async def nothing_runs() -> bool:
        return not [words for words in _commands() if str(folder) in words]

    asyncio.run(eventually(nothing_runs, "nothing runs in the platform's folder"))


def _commands() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
