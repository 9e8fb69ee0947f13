"""Argo CD delivers the example's repository; run by `make e2e`, without root.

Its application controller and its repository server are built from Argo CD's own Go module. The Redis is an in-memory
one, and there is no API server of Argo CD.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from devcloud import gitops
from devcloud.controlplane import Programs
from devcloud.gitops import controllers
from tests.support.api import JsonObject
from tests.support.audit import AuditLog, Request
from tests.support.gitops import LIMIT_S, OPERATED, TEAM, GitOps, argocd_settings, gitops_rig, spec_patch
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, DATABASE, Kind, is_ready

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

_APPLICATION = Kind("argoproj.io", "v1alpha1", "Application", "applications")
_NAMESPACE = "argocd"
_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:argocd-application-controller"


class ArgoCD:
    """The example's Applications, and what a person asks of Argo CD."""

    def __init__(self, rig: GitOps) -> None:
        self.rig = rig
        self.system = rig.system

    async def push(self, message: str) -> str:
        """Commit, and have each Application compared at once, as `argocd app get --refresh` does; return the commit."""
        commit = self.rig.repository.commit(message)
        await self.refresh()
        return commit

    async def refresh(self) -> None:
        """Have each Application compared with Git, and wait until that is done."""
        annotation = "argocd.argoproj.io/refresh"
        applications = await self.system.api.items(_APPLICATION.path(_NAMESPACE))
        names = [application["metadata"]["name"] for application in applications]
        for name in names:
            await self.system.edit(
                _APPLICATION, _NAMESPACE, name, {"metadata": {"annotations": {annotation: "normal"}}}
            )
        for name in names:
            await self.until(name, lambda obj: annotation not in obj["metadata"].get("annotations", {}))

    async def until(self, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        return await self.system.until(_APPLICATION, _NAMESPACE, name, holds, limit_s=LIMIT_S)

    async def until_healthy(self, name: str, commit: str = "") -> JsonObject:
        """Wait until an Application is Synced and Healthy, at a commit where one is named."""

        def is_done(obj: JsonObject) -> bool:
            return (sync_of(obj), health_of(obj)) == ("Synced", "Healthy") and revision_of(obj).endswith(commit)

        return await self.until(name, is_done)

    def writes(self, audit: AuditLog) -> list[Request]:
        """Return what Argo CD changed in the team's namespace, dry runs apart."""
        return [request for request in audit.writes(_ACCOUNT, namespace=TEAM) if "dryRun" not in request.uri]


def sync_of(application: JsonObject) -> str:
    return str(application.get("status", {}).get("sync", {}).get("status", ""))


def health_of(application: JsonObject) -> str:
    return str(application.get("status", {}).get("health", {}).get("status", ""))


def revision_of(application: JsonObject) -> str:
    return str(application.get("status", {}).get("sync", {}).get("revision", ""))


def resource_of(application: JsonObject, kind: str, name: str) -> JsonObject:
    """Return what an Application says of one of its objects; empty when it says nothing."""
    for resource in application.get("status", {}).get("resources", ()):
        if (resource["kind"], resource["name"]) == (kind, name):
            return dict(resource)
    return {}


def refusal_of(application: JsonObject, claim: str) -> str:
    """Return what the sync under way says of a claim that it could not write or prune; empty when it could."""
    result = application["status"].get("operationState", {}).get("syncResult", {})
    for resource in result.get("resources", ()):
        if (resource["kind"], resource["name"], resource["status"]) == (CLAIM.kind, claim, "SyncFailed"):
            return str(resource["message"])
    return ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def argocd(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> AsyncIterator[ArgoCD]:
    """Yield Argo CD once Fairlead is there from Git and at work; the claims may still be on their way."""
    built = await gitops.ensure_argocd(print)
    async with gitops_rig(tmp_path_factory.mktemp("argocd"), control_plane_programs) as rig:
        await controllers.start_argocd(rig.system.folder / "argocd", rig.system.plane, built, argocd_settings())
        made = ArgoCD(rig)
        entry = rig.repository.folder / "clusters" / "prod" / "argocd.yaml"
        await rig.system.kubectl.run("apply", "--server-side", f"--filename={entry}")
        await made.until_healthy("fairlead")
        await rig.do_by_hand()
        await rig.start_fairlead()
        yield made


async def test_a_wave_is_healthy_when_its_databases_are_and_not_before(argocd: ArgoCD) -> None:
    for name in ("fairlead-crds", "fairlead-compositions", "outbound"):
        await argocd.until_healthy(name)
    orders = await argocd.system.until(CLAIM, TEAM, "orders", is_ready, limit_s=LIMIT_S)

    # The other team's operator has not brought up the database of `posts`.
    waiting = await argocd.until("inbound", lambda obj: sync_of(obj) == "Synced")
    assert health_of(waiting) == "Progressing"
    await argocd.rig.play_operator()
    await argocd.system.until(CLAIM, OPERATED, "posts", is_ready, limit_s=LIMIT_S)

    await argocd.until_healthy("inbound")
    await argocd.until_healthy("databases")
    assert await argocd.rig.logs_in("orders")
    assert "argocd.argoproj.io/tracking-id" in orders["metadata"]["annotations"]
    assert await argocd.rig.tools_labels() == []


async def test_a_stalled_claim_is_degraded_with_its_own_words_and_a_commit_repairs_it(argocd: ArgoCD) -> None:
    argocd.rig.write_claim("typo", version="18")
    await argocd.push("A version that the server does not run")

    application = await argocd.until("inbound", lambda obj: health_of(obj) == "Degraded")
    health = resource_of(application, CLAIM.kind, "typo")["health"]
    assert health["status"] == "Degraded"
    assert health["message"].startswith("UnsupportedVersion: ")
    assert resource_of(application, CLAIM.kind, "orders")["health"]["status"] == "Healthy"

    argocd.rig.write_claim("typo")
    await argocd.until_healthy("inbound", await argocd.push("Version 16"))
    assert await argocd.rig.logs_in("typo")


async def test_a_claim_changed_by_hand_is_put_back_and_no_child_is_touched(argocd: ArgoCD) -> None:
    children = await argocd.system.children(TEAM, "orders")
    audit = argocd.system.audit()
    await spec_patch(argocd.system, "orders", size="large")

    await argocd.system.until(
        CLAIM, TEAM, "orders", lambda obj: obj["spec"]["size"] == "small" and is_ready(obj), limit_s=LIMIT_S
    )

    assert {(request.verb, request.resource, request.name) for request in argocd.writes(audit)} == {
        ("patch", CLAIM.plural, "orders")
    }
    now = await argocd.system.children(TEAM, "orders")
    assert [child["metadata"]["uid"] for child in now] == [child["metadata"]["uid"] for child in children]
    assert await argocd.rig.tools_labels() == []


async def test_claims_stay_synced_and_nobody_writes(argocd: ArgoCD) -> None:
    await argocd.until_healthy("inbound")
    await argocd.system.at_rest()
    before = await argocd.until_healthy("inbound")
    audit = argocd.system.audit()

    async def compare_twice() -> None:
        await argocd.refresh()
        await argocd.refresh()

    assert await argocd.system.writes_until_rest(compare_twice) == []
    after = await argocd.until_healthy("inbound")
    assert argocd.writes(audit) == []
    assert after["status"]["operationState"]["startedAt"] == before["status"]["operationState"]["startedAt"]
    assert {resource["status"] for resource in after["status"]["resources"]} == {"Synced"}


async def test_a_pruned_claim_goes_by_its_policy_and_no_child_is_touched(argocd: ArgoCD) -> None:
    argocd.rig.write_claim("kept", deletionPolicy="Orphan")
    argocd.rig.write_claim("dropped", deletionPolicy="Delete")
    await argocd.until_healthy("inbound", await argocd.push("Two more"))
    names = {name: await argocd.rig.database_of(name) for name in ("kept", "dropped")}
    others = await argocd.system.children(TEAM, "orders")
    audit = argocd.system.audit()

    argocd.rig.remove_claim("kept")
    argocd.rig.remove_claim("dropped")
    await argocd.until_healthy("inbound", await argocd.push("And none of them"))

    await asyncio.gather(*(until_gone(argocd.system, CLAIM.path(TEAM, name)) for name in names))
    databases = await argocd.rig.databases()
    assert {name: database in databases for name, database in names.items()} == {"kept": True, "dropped": False}
    deleted = [(request.resource, request.name) for request in argocd.writes(audit) if request.verb == "delete"]
    assert sorted(deleted) == [(CLAIM.plural, "dropped"), (CLAIM.plural, "kept")]
    assert [request for request in audit.writes(_ACCOUNT) if request.group == DATABASE.group] == []
    now = await argocd.system.children(TEAM, "orders")
    assert [child["metadata"]["uid"] for child in now] == [child["metadata"]["uid"] for child in others]


async def test_a_protected_claim_is_not_pruned_and_argo_cd_says_so(argocd: ArgoCD) -> None:
    claim = (argocd.rig.repository.folder / "inbound" / TEAM / "orders.yaml").read_text()
    argocd.rig.remove_claim("orders")
    await argocd.push("A deletion by mistake")

    # Argo CD tries the sync again five times, in two and a half minutes; meanwhile its phase is Running.
    application = await argocd.until("inbound", lambda obj: bool(refusal_of(obj, "orders")))
    assert "spec.deletionProtection: false first" in refusal_of(application, "orders")
    live = await argocd.system.api.get(CLAIM.path(TEAM, "orders"))
    assert "deletionTimestamp" not in live["metadata"]
    assert is_ready(live)

    argocd.rig.repository.write(f"inbound/{TEAM}/orders.yaml", claim)
    argocd.rig.list_claims()
    await argocd.until_healthy("inbound", await argocd.push("It is back"))


async def test_a_changed_composition_rolls_out_from_git(argocd: ArgoCD) -> None:
    async def deliver() -> None:
        await argocd.until_healthy("fairlead-compositions", await argocd.push("One more connection"))

    await argocd.rig.rolls_out(deliver)
