"""A control plane that gets all from the repository of deploy/examples/gitops: what Flux's and Argo CD's tests share.

The repository is the example itself, copied as its README says. Composer and provider run as processes, so the stage
`fairlead` applies the namespaces, accounts and rights without the Deployments.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from devcloud import addresses, onprem
from devcloud.controlplane import Programs
from devcloud.controlplane import plane as planes
from devcloud.daemons import Lifetime
from tests.support.api import ApiError, JsonObject, connect
from tests.support.git_server import GitRepository, served
from tests.support.kinds import CLAIM, CONFIG_MAP, CRD, DATABASE, NAMESPACE, SECRET, Kind, claim, is_ready
from tests.support.operators.played import CNPG, crds
from tests.support.system import System, decoded

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "deploy" / "examples" / "gitops"
COPIED = {
    "postgres-onprem.yaml": "compositions/postgres-onprem.yaml",
    "postgres-cnpg.yaml": "compositions/operators/postgres-cnpg.yaml",
}
"""What the README has people copy into the example's folder `compositions`, and where it is shipped."""
_RELEASE = "in-cluster/release"
_URL = "https://git.example.com/platform/databases.git"
TEAM = "shop"
"""The namespace of the example's team whose databases are on the on-prem server."""
OPERATED = "blog"
"""The namespace of its team whose databases are CloudNativePG's."""
LIMIT_S = 300.0
TRACKERS = ("fluxcd.io", "argoproj.io", "app.kubernetes.io/instance", "applyset.kubernetes.io", "configsync.gke.io")
"""Parts of the labels and annotations by which the tools know what is theirs."""


@dataclass(slots=True)
class GitOps:
    """A plane, an on-prem server and a repository; nothing is applied yet but the CRDs of the played operator.

    Attributes:
        system: The rig, without any object of ours.
        repository: The copied example, committed once.
    """

    system: System
    repository: GitRepository

    def write_claim(self, name: str, **spec: Any) -> None:
        """Have a claim of the team in its folder."""
        obj = claim("", name, **spec)
        self.repository.write(f"inbound/{TEAM}/{name}.yaml", json.dumps(obj))
        self.list_claims()

    def remove_claim(self, name: str) -> None:
        self.repository.remove(f"inbound/{TEAM}/{name}.yaml")
        self.list_claims()

    def list_claims(self) -> None:
        """Name all of the team's claims in its kustomization."""
        folder = self.repository.folder / "inbound" / TEAM
        files = sorted(path.name for path in folder.glob("*.yaml") if path.name != "kustomization.yaml")
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": TEAM,
            "resources": [*files, "claim-namespace"],
        }
        self.repository.write(f"inbound/{TEAM}/kustomization.yaml", json.dumps(kustomization))

    async def do_by_hand(self) -> None:
        """Do what the README has people do by hand: the installation's id and the provider's Secrets."""
        system = self.system
        uid = (await system.api.get(NAMESPACE.path("", "kube-system")))["metadata"]["uid"]
        for made in (
            CONFIG_MAP.new(
                "fairlead-system", "fairlead-installation", data={"id": secrets.token_hex(8), "clusterUid": uid}
            ),
            SECRET.new("fairlead-onprem", "pg1-admin", stringData=system.admin_login()),
            SECRET.new("fairlead-onprem", "pg1-ca", stringData={"ca.crt": system.server.authority_pem.decode()}),
        ):
            kind = CONFIG_MAP if made["kind"] == "ConfigMap" else SECRET
            await system.create(kind, made)

    async def start_fairlead(self) -> None:
        """Start composer and provider under the accounts that came from Git."""
        await asyncio.gather(self.system.start_composer("--no-elect"), self.system.start_provider("--no-elect"))

    async def play_operator(self) -> None:
        """Play CloudNativePG for the example's claim `posts`."""
        for step in CNPG.rise:
            if step.kind in {None, CNPG.source}:
                await CNPG.play(self.system.api, OPERATED, "posts", step)

    async def databases(self) -> set[str]:
        """Return the names of the databases that the on-prem server has."""
        rows = await self.system.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
        return {str(row[0]) for row in rows}

    async def database_of(self, name: str) -> str:
        """Return the name on the server of a claim's database."""
        (child,) = await self.system.children(TEAM, name)
        return str(child["metadata"]["annotations"]["fairlead.dev/external-name"])

    async def logs_in(self, name: str) -> bool:
        return await self.system.logs_in_by(await self.binding(name))

    async def binding(self, name: str) -> dict[str, str]:
        claim_ = await self.system.api.get(CLAIM.path(TEAM, name))
        return decoded(await self.system.api.get(SECRET.path(TEAM, claim_["status"]["binding"]["name"])))

    async def rolls_out(self, deliver: Callable[[], Awaitable[object]]) -> None:
        """Change a constant of the Composition in Git, have it delivered, and wait until the server has it."""
        database = await self.database_of("orders")
        before = await self.system.connection_limit(database)
        (child,) = await self.system.children(TEAM, "orders")
        former, wanted = (f"small: {{connections: {limit}," for limit in (before, before + 1))
        self.repository.replace("compositions/postgres-onprem.yaml", former, wanted)

        await deliver()

        def has_it(obj: JsonObject) -> bool:
            return bool(obj["spec"]["forProvider"]["connectionLimit"] == before + 1) and is_ready(obj)

        await self.system.until(DATABASE, TEAM, child["metadata"]["name"], has_it, limit_s=LIMIT_S)
        assert await self.system.connection_limit(database) == before + 1

    async def tools_labels(self) -> list[str]:
        """Return the labels and annotations of Git tools on the children of the team's claims."""
        names = [obj["metadata"]["name"] for obj in await self.system.api.items(CLAIM.path(TEAM))]
        children = [child for name in names for child in await self.system.children(TEAM, name)]
        assert children
        keys = [
            key
            for child in children
            for key in (*child["metadata"].get("labels", {}), *child["metadata"].get("annotations", {}))
        ]
        return [key for key in keys if any(part in key for part in TRACKERS)]


async def spec_patch(system: System, name: str, **spec: Any) -> None:
    """Change a claim of the team as `kubectl patch` does."""
    await system.edit(CLAIM, TEAM, name, {"spec": spec})


@asynccontextmanager
async def gitops_rig(folder: Path, programs: Programs) -> AsyncIterator[GitOps]:
    """Run a plane, an on-prem server and the served copy of the example for the length of a block."""
    lease = addresses.lease()
    options = planes.Options(folder=folder / "plane", lifetime=Lifetime.WITH_PARENT, durable=False)
    server_options = onprem.Options(folder=folder / "onprem", lifetime=Lifetime.WITH_PARENT, durable=False)
    plane, server = await asyncio.gather(planes.start(options, programs), onprem.start(server_options, lease))
    try:
        async with connect(plane.kubeconfig) as api:
            system = System(plane=plane, api=api, folder=folder, lease=lease, server=server)
            for crd in crds(CNPG.name):
                await system.apply(CRD, crd)
            for kind in CNPG.kinds:
                await api.until_served(kind.path())
            copy_example(folder / "repository", overlay="base")
            with served(folder / "repository") as repository:
                _point_at(repository, system)
                repository.commit("Databases")
                try:
                    yield GitOps(system, repository)
                finally:
                    for program in system.started:
                        if program.is_running:
                            await program.kill9()
    finally:
        await onprem.stop(server_options.folder, grace_s=5.0, is_temporary=True)
        await planes.stop(options.folder, grace_s=2.0)
        lease.release()


def copy_example(folder: Path, *, overlay: str) -> None:
    """Copy the example and a release into a folder, as the example's README says.

    Args:
        folder: The new repository.
        overlay: What of deploy/kustomize runs Fairlead: `cluster`, or `base` where processes stand for the pods.
    """
    shutil.copytree(EXAMPLE, folder)
    shutil.copytree(ROOT / "crds", folder / _RELEASE / "crds")
    shutil.copytree(ROOT / "deploy" / "kustomize", folder / _RELEASE / "deploy" / "kustomize")
    for name, shipped in COPIED.items():
        shutil.copy(ROOT / shipped, folder / "compositions" / name)
    for path, levels, below in (
        ("in-cluster/kustomization.yaml", "../../..", "release/deploy"),
        ("in-cluster/cloudnative-pg/kustomization.yaml", "../../../..", "../release/deploy"),
        ("inbound/blog/claim-namespace/kustomization.yaml", "../../../../..", f"../../../{_RELEASE}/deploy"),
        ("inbound/shop/claim-namespace/kustomization.yaml", "../../../../..", f"../../../{_RELEASE}/deploy"),
    ):
        file = folder / path
        text = file.read_text(encoding="utf-8")
        assert f"- {levels}/kustomize/" in text
        changed = text.replace(f"- {levels}/kustomize/", f"- {below}/kustomize/")
        file.write_text(changed.replace("/kustomize/cluster", f"/kustomize/{overlay}"), encoding="utf-8")


def _point_at(repository: GitRepository, system: System) -> None:
    """Put the repository's own address and the rig's server in place of the example's."""
    for path in ("flux.yaml", "argocd.yaml", "argocd-applications/applications.yaml"):
        repository.replace(f"clusters/prod/{path}", _URL, repository.url)
    server = system.server
    repository.replace(
        "outbound/onprem.yaml",
        "host: pg1.example.org\n",
        f"host: {server.host}\n  port: {server.port}\n  database: {server.database}\n",
    )


def argocd_settings() -> dict[str, str]:
    """Return the data of argocd-cm after the two patches of the README."""
    settings: dict[str, str] = {}
    for path in ("argocd/argocd-cm.yaml", "examples/gitops/clusters/prod/argocd-cm.yaml"):
        patch: Any = YAML(typ="safe", pure=True).load((ROOT / "deploy" / path).read_text(encoding="utf-8"))
        settings |= patch["data"]
    return settings


async def find(system: System, kind: Kind, namespace: str, name: str) -> JsonObject | None:
    """Return an object; None while it, or its kind, is not there."""
    try:
        return await system.api.find(kind.path(namespace, name))
    except ApiError:
        return None
