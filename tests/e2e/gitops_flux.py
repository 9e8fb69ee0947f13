"""Flux's source-controller and kustomize-controller deliver the example's repository; run by `make e2e`, without root.

Both are Flux's own programs, built from their Go modules, beside a real control plane.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from devcloud import gitops, oci
from devcloud.controlplane import Programs
from devcloud.gitops import controllers
from tests.support.api import JsonObject
from tests.support.audit import AuditLog, Request
from tests.support.gitops import LIMIT_S, OPERATED, ROOT, TEAM, GitOps, gitops_rig, spec_patch
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, DATABASE, Kind, condition, is_ready
from tests.support.registry import serving

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

_STAGE = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
_ARTIFACT = Kind("source.toolkit.fluxcd.io", "v1", "OCIRepository", "ocirepositories")
_SOURCE = Kind("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
_NAMESPACE = "flux-system"
_ACCOUNT = f"system:serviceaccount:{_NAMESPACE}:kustomize-controller"


class Flux:
    """The example's Kustomizations, and what a person asks of Flux."""

    def __init__(self, rig: GitOps) -> None:
        self.rig = rig
        self.system = rig.system

    async def push(self, message: str) -> str:
        """Commit, and have Flux fetch at once, as `flux reconcile source` does; return the commit."""
        commit = self.rig.repository.commit(message)
        await self.fetch(commit)
        return commit

    async def fetch(self, commit: str) -> None:
        token = await self._request(_SOURCE, "databases")

        def is_fetched(source: JsonObject) -> bool:
            status = source.get("status", {})
            revision = status.get("artifact", {}).get("revision", "")
            return status.get("lastHandledReconcileAt") == token and str(revision).endswith(f":{commit}")

        await self.system.until(_SOURCE, _NAMESPACE, "databases", is_fetched, limit_s=LIMIT_S)

    async def reconcile(self, stage: str) -> None:
        """Have a Kustomization applied again, as `flux reconcile kustomization` does; return when that is done."""
        token = await self._request(_STAGE, stage)

        def is_done(obj: JsonObject) -> bool:
            is_handled = obj["status"].get("lastHandledReconcileAt") == token
            return is_handled and bool(condition(obj, "Ready")["status"] == "True")

        await self.system.until(_STAGE, _NAMESPACE, stage, is_done, limit_s=LIMIT_S)

    async def _request(self, kind: Kind, name: str) -> str:
        token = secrets.token_hex(8)
        annotations = {"reconcile.fluxcd.io/requestedAt": token}
        await self.system.edit(kind, _NAMESPACE, name, {"metadata": {"annotations": annotations}})
        return token

    async def until_ready(self, stage: str, commit: str = "") -> JsonObject:
        """Wait until a Kustomization is Ready, at a commit where one is named."""

        def is_done(obj: JsonObject) -> bool:
            revision = str(obj.get("status", {}).get("lastAppliedRevision", ""))
            return condition(obj, "Ready").get("status") == "True" and revision.endswith(commit)

        return await self.system.until(_STAGE, _NAMESPACE, stage, is_done, limit_s=LIMIT_S)

    async def until_failed(self, stage: str, reason: str) -> str:
        """Wait until a Kustomization is Ready=False for a reason; return the message."""

        def has_failed(obj: JsonObject) -> bool:
            ready = condition(obj, "Ready")
            return (ready.get("status"), ready.get("reason")) == ("False", reason)

        obj = await self.system.until(_STAGE, _NAMESPACE, stage, has_failed, limit_s=LIMIT_S)
        return str(condition(obj, "Ready")["message"])

    def writes(self, audit: AuditLog) -> list[Request]:
        """Return what kustomize-controller changed in the team's namespace, dry runs apart."""
        return [request for request in audit.writes(_ACCOUNT, namespace=TEAM) if "dryRun" not in request.uri]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flux(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> AsyncIterator[Flux]:
    """Yield Flux once Fairlead is there from Git and at work; the claims may still be on their way."""
    built = await gitops.ensure_flux(print)
    async with gitops_rig(tmp_path_factory.mktemp("flux"), control_plane_programs) as rig:
        await controllers.start_flux(rig.system.folder / "flux", rig.system.plane, built)
        made = Flux(rig)
        entry = rig.repository.folder / "clusters" / "prod" / "flux.yaml"
        await rig.system.kubectl.run("apply", "--server-side", f"--filename={entry}")
        await made.until_ready("fairlead")
        await rig.do_by_hand()
        await rig.start_fairlead()
        yield made


async def test_a_stage_that_waits_is_ready_when_its_databases_are_and_not_before(flux: Flux) -> None:
    for stage in ("fairlead-crds", "fairlead-compositions", "outbound"):
        await flux.until_ready(stage)
    orders = await flux.system.until(CLAIM, TEAM, "orders", is_ready, limit_s=LIMIT_S)

    # The other team's operator has not brought up the database of `posts`.
    waiting = await flux.system.api.get(_STAGE.path(_NAMESPACE, "inbound"))
    assert condition(waiting, "Ready")["status"] == "Unknown"
    assert condition(waiting, "Reconciling")["status"] == "True"
    await flux.rig.play_operator()
    posts = await flux.system.until(CLAIM, OPERATED, "posts", is_ready, limit_s=LIMIT_S)

    done = await flux.until_ready("inbound")
    times = [condition(obj, "Ready")["lastTransitionTime"] for obj in (orders, posts)]
    assert condition(done, "Ready")["lastTransitionTime"] >= max(times)
    assert await flux.rig.logs_in("orders")
    assert await flux.rig.tools_labels() == []


async def test_a_bad_claim_fails_its_stage_at_once_and_a_commit_repairs_it(flux: Flux) -> None:
    flux.rig.write_claim("typo", version="18")
    await flux.push("A version that the server does not run")

    message = await flux.until_failed("inbound", "HealthCheckFailed")
    # Not by its time-out of half an hour.
    assert "failed early due to stalled resources" in message
    assert f"{CLAIM.kind}/{TEAM}/typo status: 'Failed'" in message
    claim = await flux.system.api.get(CLAIM.path(TEAM, "typo"))
    assert (condition(claim, "Stalled")["status"], condition(claim, "Stalled")["reason"]) == (
        "True",
        "UnsupportedVersion",
    )

    flux.rig.write_claim("typo")
    await flux.until_ready("inbound", await flux.push("Version 16"))
    assert await flux.rig.logs_in("typo")


async def test_a_claim_changed_by_hand_is_put_back_and_no_child_is_touched(flux: Flux) -> None:
    children = await flux.system.children(TEAM, "orders")
    audit = flux.system.audit()
    await spec_patch(flux.system, "orders", size="large")
    await flux.system.until(CLAIM, TEAM, "orders", is_ready, limit_s=LIMIT_S)

    await flux.reconcile("inbound")

    claim = await flux.system.until(CLAIM, TEAM, "orders", is_ready, limit_s=LIMIT_S)
    assert claim["spec"]["size"] == "small"
    assert {(request.verb, request.resource, request.name) for request in flux.writes(audit)} == {
        ("patch", CLAIM.plural, "orders")
    }
    now = await flux.system.children(TEAM, "orders")
    assert [child["metadata"]["uid"] for child in now] == [child["metadata"]["uid"] for child in children]
    assert await flux.rig.tools_labels() == []


async def test_what_is_as_git_has_it_is_left_alone(flux: Flux) -> None:
    await flux.system.at_rest()
    audit = flux.system.audit()

    async def apply_twice() -> None:
        await flux.reconcile("inbound")
        await flux.reconcile("inbound")

    assert await flux.system.writes_until_rest(apply_twice) == []
    assert flux.writes(audit) == []


async def test_a_pruned_claim_goes_by_its_policy_and_no_child_is_touched(flux: Flux) -> None:
    flux.rig.write_claim("kept", deletionPolicy="Orphan")
    flux.rig.write_claim("dropped", deletionPolicy="Delete")
    await flux.until_ready("inbound", await flux.push("Two more"))
    names = {name: await flux.rig.database_of(name) for name in ("kept", "dropped")}
    others = await flux.system.children(TEAM, "orders")
    audit = flux.system.audit()

    flux.rig.remove_claim("kept")
    flux.rig.remove_claim("dropped")
    await flux.until_ready("inbound", await flux.push("And none of them"))

    for name in names:
        await until_gone(flux.system, CLAIM.path(TEAM, name))
    databases = await flux.rig.databases()
    assert {name: database in databases for name, database in names.items()} == {"kept": True, "dropped": False}
    deleted = [(request.resource, request.name) for request in flux.writes(audit) if request.verb == "delete"]
    assert sorted(deleted) == [(CLAIM.plural, "dropped"), (CLAIM.plural, "kept")]
    assert [request for request in audit.writes(_ACCOUNT) if request.resource == DATABASE.plural] == []
    now = await flux.system.children(TEAM, "orders")
    assert [child["metadata"]["uid"] for child in now] == [child["metadata"]["uid"] for child in others]


async def test_a_protected_claim_is_not_pruned_and_flux_says_so(flux: Flux) -> None:
    claim = (flux.rig.repository.folder / "inbound" / TEAM / "orders.yaml").read_text()
    flux.rig.remove_claim("orders")
    await flux.push("A deletion by mistake")

    message = await flux.until_failed("inbound", "PruneFailed")
    assert "deletionProtection" in message
    orders = await flux.system.api.get(CLAIM.path(TEAM, "orders"))
    assert "deletionTimestamp" not in orders["metadata"]
    assert is_ready(orders)

    flux.rig.repository.write(f"inbound/{TEAM}/orders.yaml", claim)
    flux.rig.list_claims()
    await flux.until_ready("inbound", await flux.push("It is back"))


async def test_a_changed_composition_rolls_out_from_git(flux: Flux) -> None:
    async def deliver() -> None:
        await flux.until_ready("fairlead-compositions", await flux.push("One more connection"))

    await flux.rig.rolls_out(deliver)


def _is_true(obj: JsonObject) -> bool:
    """Return whether an object of Flux is Ready; not all of Flux's conditions have an `observedGeneration`."""
    return bool(condition(obj, "Ready").get("status") == "True")


async def test_flux_fetches_the_manifests_as_an_oci_artefact(flux: Flux, tmp_path: Path) -> None:
    artifact = oci.manifests(ROOT)
    artifact.write(tmp_path)
    with serving(tmp_path) as registry:
        spec = {
            "interval": "1m",
            "url": f"oci://{registry}/platform/fairlead-manifests",
            "ref": {"tag": artifact.tag},
            "insecure": True,
        }
        await flux.system.create(_ARTIFACT, _ARTIFACT.new(_NAMESPACE, "fairlead", spec=spec))
        source = await flux.system.until(_ARTIFACT, _NAMESPACE, "fairlead", _is_true, limit_s=LIMIT_S)
        assert source["status"]["artifact"]["revision"] == f"{artifact.tag}@{artifact.manifest.digest}"
        spec = {
            "interval": "1m",
            "sourceRef": {"kind": "OCIRepository", "name": "fairlead"},
            "path": "./crds",
            "prune": False,
            "wait": True,
        }
        await flux.system.create(_STAGE, _STAGE.new(_NAMESPACE, "crds-by-oci", spec=spec))
        await flux.system.until(_STAGE, _NAMESPACE, "crds-by-oci", _is_true, limit_s=LIMIT_S)
