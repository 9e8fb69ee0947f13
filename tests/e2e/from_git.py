"""A commit with a claim, delivered by Flux or Argo CD, is served by our pods and read with psql in a pod; as root.

Needs mmdebstrap and buildah, which make an image of Debian's own psql. Run by `make e2e`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from devcloud import daemons, gitops, install
from devcloud.gitops import controllers
from tests.support.git_server import GitRepository, served
from tests.support.gitops import TRACKERS, argocd_settings
from tests.support.pods import READY_LIMIT_S, Application, Cluster

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

_PSQL_IMAGE = "localhost/psql:test"
_PSQL = "/usr/lib/postgresql/15/bin/psql"
# The password is in the URI and nowhere else.
_QUERY = f'PGSSLROOTCERT=/bindings/db/certificates {_PSQL} "$(cat /bindings/db/uri)" -Atc "SELECT session_user"'


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is made to deliver a repository's folder `claims`, and how it reports that this is done.

    Attributes:
        namespace: Where the claims go.
        objects: What makes the tool deliver them.
        watched: The object that says so, as kubectl names it.
        states: What that object has when all is delivered and Ready, as `kubectl wait --for` takes it.
        home: The namespace of that object.
    """

    namespace: str
    objects: tuple[dict[str, Any], ...]
    watched: str
    states: tuple[str, ...]
    home: str


def _flux(url: str) -> Tool:
    meta = {"name": "claims", "namespace": "flux-system"}
    source = {"interval": "1m", "url": url, "ref": {"branch": "main"}}
    stage = {
        "interval": "1m",
        "sourceRef": {"kind": "GitRepository", "name": "claims"},
        "path": "./claims",
        "targetNamespace": "by-flux",
        "prune": True,
        "wait": True,
        "timeout": "10m",
    }
    objects = (
        {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": meta, "spec": source},
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": meta, "spec": stage},
    )
    return Tool(
        "by-flux", objects, "kustomization.kustomize.toolkit.fluxcd.io/claims", ("condition=Ready",), "flux-system"
    )


def _argocd(url: str) -> Tool:
    spec = {
        "project": "default",
        "source": {"repoURL": url, "targetRevision": "main", "path": "claims"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "by-argocd"},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["ServerSideApply=true"]},
    }
    meta = {"name": "claims", "namespace": "argocd"}
    application = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta, "spec": spec}
    states = ("jsonpath={.status.sync.status}=Synced", "jsonpath={.status.health.status}=Healthy")
    return Tool("by-argocd", (application,), "application.argoproj.io/claims", states, "argocd")


@pytest.fixture(scope="module")
def repository(cluster: Cluster) -> Iterator[GitRepository]:
    """Yield a repository whose one commit has a claim."""
    claim = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "orders"},
        "spec": {"version": "16", "size": "small"},
    }
    with served(cluster.folder / "repository") as made:
        made.write("claims/orders.yaml", json.dumps(claim))
        made.write("claims/kustomization.yaml", json.dumps({"resources": ["orders.yaml"]}))
        made.commit("A claim")
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def delivering(cluster: Cluster) -> AsyncIterator[None]:
    """Have Flux's and Argo CD's controllers at work beside the node."""
    plane, folder = cluster.plane, cluster.folder
    flux = await controllers.start_flux(folder / "flux", plane, await gitops.ensure_flux(print))
    built = await gitops.ensure_argocd(print)
    argocd = await controllers.start_argocd(folder / "argocd", plane, built, argocd_settings())
    yield
    for daemon in (*flux, *argocd):
        await daemons.stop(daemon.identity)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def psql_image(cluster: Cluster) -> str:
    """Bring an image with psql to the node; return its name."""
    archive = cluster.folder / "psql.tar"
    _make_psql_image(cluster.folder, archive)
    await cluster.node.import_image(archive)
    return _PSQL_IMAGE


def _make_psql_image(folder: Path, archive: Path) -> None:
    files = folder / "psql-files.tar"
    _run(
        "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=postgresql-client-15", "bookworm", files
    )
    container = _run("buildah", "from", "scratch")
    _run("buildah", "add", "--quiet", container, files, "/")
    _run("buildah", "config", "--user", "65532:65532", container)
    _run("buildah", "commit", "--quiet", "--rm", container, _PSQL_IMAGE)
    _run("buildah", "push", "--quiet", _PSQL_IMAGE, f"oci-archive:{archive}:{_PSQL_IMAGE}")
    files.unlink()


def _run(*command: str | Path) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("tool_of", [_flux, _argocd], ids=["Flux", "Argo CD"])
@pytest.mark.usefixtures("delivering")
async def test_a_claim_from_a_commit_is_read_with_psql_in_a_pod(
    cluster: Cluster, repository: GitRepository, psql_image: str, tool_of: Any
) -> None:
    tool: Tool = tool_of(repository.url)
    await install.apply_objects(cluster.plane.kubectl, list(tool.objects))
    for state in tool.states:
        await cluster.wait(tool.watched, state, tool.home, READY_LIMIT_S)

    (claim,) = await cluster.items("pgi", tool.namespace)
    secret = claim["status"]["binding"]["name"]
    psql = Application(
        name="psql", command=("sh", "-c", _QUERY), image=psql_image, namespace=tool.namespace, secret=secret
    )
    shown = await cluster.prints(psql)

    query = ("get", "secret", secret, f"--namespace={tool.namespace}", "--template={{.data.username | base64decode}}")
    assert shown == await cluster.plane.kubectl.run(*query)
    (child,) = await cluster.items("postgresdatabases", tool.namespace)
    keys = [*child["metadata"]["labels"], *child["metadata"]["annotations"]]
    assert [key for key in keys if any(part in key for part in TRACKERS)] == []
