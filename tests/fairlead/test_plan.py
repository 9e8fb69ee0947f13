"""`fairlead plan` on an API server in memory: which claims an edited file reaches, and what is said of each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apis import names
from apis.identity import Identity, child_name
from fairlead.cli import run
from fairlead.exits import Exit
from providers.gcp import PROVIDER
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, CRDS, NAMESPACES, Key, Object, Resource
from tests.architecture import tree
from tests.composer.factories import CLAIMS
from tests.support.memory_kube import MemoryKube

COMPOSITIONS = Resource("fairlead.dev", "v1alpha1", "Composition", "compositions", namespaced=False)
REVISIONS = Resource("fairlead.dev", "v1alpha1", "CompositionRevision", "compositionrevisions", namespaced=False)


def _spec(**data: str) -> dict[str, Any]:
    return {
        "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
        "deletionPolicies": ["Orphan", "Delete"],
        "environments": ["defaults"],
        "resources": [
            {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": data}},
        ],
    }


SPEC = _spec(limit="{{ env.defaults.limit }}")


def _composition(name: str, spec: dict[str, Any]) -> Object:
    return {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Composition", "metadata": {"name": name}, "spec": spec}


def _environment(limit: str, namespace: str = "fairlead-system") -> Object:
    meta = {"name": "defaults", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"limit": limit}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryKube:
    """Yield a cluster: a Composition that reads an environment, and a claim `shop/orders` that nobody composed yet."""
    made = MemoryKube()
    for _, crd in tree.documents(tree.CRDS):
        body = {name: item for name, item in crd.items() if name not in {"apiVersion", "kind", "metadata"}}
        meta = {"labels": crd["metadata"].get("labels") or {}, "annotations": crd["metadata"].get("annotations") or {}}
        established = {"conditions": [{"type": "Established", "status": "True"}]}
        made.put(CRDS, crd["metadata"]["name"], namespace="", metadata=meta, **{**body, "status": established})
    made.put(NAMESPACES, "shop", namespace="")
    made.put(CONFIG_MAPS, "defaults", namespace="fairlead-system", data={"limit": "10"})
    made.put(COMPOSITIONS, "team", namespace="", spec=SPEC)
    _revise(made, "team-1", 1, SPEC)
    _claim(made, "orders")

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield made

    monkeypatch.setattr("fairlead.plan.connected", connect)
    monkeypatch.setattr("fairlead.saved_plan.connected", connect)
    monkeypatch.setattr("fairlead.saved_plan.current_namespace", lambda _: "shop")
    monkeypatch.setattr("fairlead.plan.current_namespace", lambda _: "shop")
    return made


def _revise(cluster: MemoryKube, name: str, number: int, spec: dict[str, Any]) -> None:
    body = {"compositionName": "team", "revision": number, "composition": spec}
    cluster.put(REVISIONS, name, namespace="", spec=body)


def _claim(cluster: MemoryKube, name: str, **spec: Any) -> None:
    status = {"composition": {"name": "team", "revision": "team-1"}}
    cluster.put(CLAIMS, name, namespace="shop", spec={"version": "16", "size": "small", **spec}, status=status)


Planned = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(cluster: MemoryKube, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Planned:
    """Return what plans objects out of files: its exit code, its output and its errors."""
    assert cluster.objects

    def planned(*objects: Object, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        for number, obj in enumerate(objects):
            (tmp_path / f"{number}.json").write_bytes(msgspec.json.encode(obj))
        code = run(["plan", str(tmp_path), *options])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return planned


def _child(cluster: MemoryKube, claim: str) -> Key:
    uid = cluster.objects[CLAIMS, Key("shop", claim)]["metadata"]["uid"]
    return Key("shop", child_name(Identity(uid, "shop", claim), "settings"))


def _compose(cluster: MemoryKube, *, limit: str, claim: str = "orders") -> None:
    """Let a claim have the child that the Composition gives with this limit."""
    uid, name = cluster.objects[CLAIMS, Key("shop", claim)]["metadata"]["uid"], _child(cluster, claim).name
    meta = {"labels": {names.CLAIM_LABEL: uid}, "annotations": {names.CLAIM_NAME: claim, names.RESOURCE: "settings"}}
    child = cluster.put(CONFIG_MAPS, name, namespace="shop", metadata=meta, data={"limit": limit})
    entry = {"resource": "settings", "apiVersion": "v1", "kind": "ConfigMap", "name": name}
    entry["uid"] = child["metadata"]["uid"]
    cluster.objects[CLAIMS, Key("shop", claim)]["status"]["inventory"] = [entry]


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ({"project": "other"}, Exit.INVALID_INPUT, "ProviderConfig gcp/default"),
        ({"project": "shop", "limits": {"tiers": []}}, Exit.DONE, "no change"),
        ({"project": "shop", "limits": {"tiers": 1}}, Exit.INVALID_INPUT, "Expected `array | null`, got `int`"),
    ],
)
def test_an_edited_provider_config_is_planned(
    cluster: MemoryKube, plan: Planned, spec: Object, code: Exit, says: str
) -> None:
    about = {"credentials": {"source": "MetadataServer"}}
    used = cluster.put(
        PROVIDER.config_resource, "default", namespace="", spec={"project": "shop", **about}, status={"inUse": True}
    )
    answer, *texts = plan({**used, "metadata": {"name": "default"}, "spec": {**about, **spec}})

    assert (answer, says in "".join(texts)) == (code, True), texts


def test_an_edited_environment_is_planned_for_the_claims_that_read_it(cluster: MemoryKube, plan: Planned) -> None:
    _compose(cluster, limit="10")
    code, out, _ = plan(_environment("15"))

    assert (code, "data.limit: 10 → 15" in out) == (Exit.DIFFERENCES, True), out
    assert out.startswith("shop/orders by team\n")


def test_an_environment_that_breaks_a_composition_is_refused_with_the_reason(
    cluster: MemoryKube, plan: Planned
) -> None:
    broken = {**_environment("15"), "data": {"limits": "15"}}
    code, _, errors = plan(broken)

    assert (code, "0.json" in errors, "Composition team" in errors) == (Exit.INVALID_INPUT, True, True), errors
    assert "'limit' is undefined" in errors
    assert cluster.writes == []


def test_a_config_map_of_another_namespace_is_no_environment_and_that_is_said(
    cluster: MemoryKube, plan: Planned
) -> None:
    _compose(cluster, limit="10")
    composition = _composition("team", SPEC)
    code, out, errors = plan(_environment("15", "shop"), composition)

    assert (code in (Exit.DONE, Exit.DIFFERENCES), "data.limit" in out) == (True, False)
    assert "ConfigMap shop/defaults is no environment: those are in namespace fairlead-system" in errors


@pytest.mark.parametrize(
    ("bound", "chosen"),
    [
        pytest.param("orders-connection", "orders-new", id="a new name"),
        pytest.param("orders-connection", "", id="the usual name"),
        pytest.param("orders-old", "", id="back to the usual name"),
        pytest.param("orders-new", "orders-new", id="the name it has"),
        pytest.param("", "orders-new", id="none was published yet"),
    ],
)
def test_a_connection_secret_that_goes_for_its_new_name_is_said_beforehand(
    cluster: MemoryKube, plan: Planned, bound: str, chosen: str
) -> None:
    is_renamed = bound not in {"", chosen or "orders-connection"}
    _compose(cluster, limit="10")
    live = cluster.objects[CLAIMS, Key("shop", "orders")]
    live["status"] |= {"binding": {"name": bound}} if bound else {}
    spec = {"version": "16", "size": "small"} | ({"connectionSecretName": chosen} if chosen else {})
    edited = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": {"name": "orders"}, "spec": spec}
    code, out, _ = plan(edited)

    message = f"Secret {bound} is deleted as soon as Secret {chosen or 'orders-connection'} is there"
    assert (code == Exit.DESTROYS, message in out) == (is_renamed, is_renamed), out


def _claim_in(namespace: str) -> Object:
    meta = {"name": "new", "namespace": namespace}
    spec = {"version": "16", "size": "small", "compositionRef": {"name": "team"}}
    return {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": meta, "spec": spec}


def test_a_namespace_that_does_not_exist_is_said(plan: Planned) -> None:
    code, out, _ = plan(_claim_in("shopp"))

    assert (code, "namespace shopp does not exist: make it" in out) == (Exit.DIFFERENCES, True), out


def test_a_claim_to_be_restored_from_that_does_not_live_is_said(cluster: MemoryKube, plan: Planned) -> None:
    _claim(cluster, "orders")
    for source, is_said in (("orders", False), ("never", True)):
        claim = _claim_in("shop")
        claim["spec"]["restoreFrom"] = {"claim": source}
        assert ("there is no claim never in namespace shop" in plan(claim)[2]) is is_said


def test_a_namespace_that_comes_with_the_claim_need_not_exist(plan: Planned) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fair"}}

    assert "does not exist" not in plan(_claim_in("fair"), namespace)[1]


def test_all_that_a_claim_may_not_have_is_said_at_once(plan: Planned) -> None:
    served = _spec(limit="{{ 'size: nothing so large' | refuse if claim.spec.size == 'large' else '10' }}")
    claim = {**_claim_in("shop"), "spec": {"version": "15", "size": "large", "compositionRef": {"name": "team"}}}
    code, out, _ = plan(claim, _composition("team", {**served, "offers": {"version": {"values": ["16"]}}}))

    assert code == Exit.INVALID_INPUT
    assert "version: 15 is not offered; offered: 16" in out
    assert "size: large is not offered; offered: small, medium, xlarge" in out


def test_a_file_that_names_another_namespace_than_the_option_is_said(plan: Planned) -> None:
    _, out, errors = plan(_claim_in("shop"), options=("-n", "other"))

    assert out.startswith("shop/new by team\n")
    assert "planned in namespace shop, which the file names; -n other is for claims that name none" in errors


def test_plans_that_differ_in_names_alone_are_said_once(cluster: MemoryKube, plan: Planned) -> None:
    for name in ("bills", "carts"):
        _claim(cluster, name)
    for name in ("bills", "carts", "orders"):
        _compose(cluster, limit="10", claim=name)
    code, out, _ = plan(_environment("15"), options=("-o", "markdown"))

    title, _, fence, *lines, end = out.splitlines()
    assert (code, title, fence, end) == (Exit.DIFFERENCES, "### fairlead plan: 3 claims: 3 to update", "```text", "```")
    assert lines == [
        "3 claims by team: shop/bills, shop/carts, shop/orders",
        "  ~ update settings (ConfigMap of each)",
        "      data.limit: 10 → 15",
        "      metadata.annotations.fairlead.dev/composition: (not set) → team",
    ]


def test_a_saved_plan_is_applied_once_nothing_has_moved(
    cluster: MemoryKube,
    plan: Planned,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applied: list[tuple[str, Object]] = []

    async def apply(_: Resource, obj: Object, *, manager: str) -> Object:
        applied.append((manager, obj))
        return obj

    monkeypatch.setattr(cluster, "apply", apply)
    file = str(tmp_path_factory.mktemp("plans") / "plan.json")
    _compose(cluster, limit="10")
    plan(_environment("15"), options=("--out", file))
    child = cluster.objects[CONFIG_MAPS, _child(cluster, "orders")]
    child["data"]["limit"] = "12"
    refused = run(["apply", file]), capsys.readouterr().err
    assert (refused[0], applied) == (Exit.REFUSED, [])
    assert "something moved since it was planned:\n  shop/orders\n" in refused[1]

    child["data"]["limit"] = "10"
    assert (run(["apply", file]), capsys.readouterr().out) == (
        Exit.DONE,
        "ConfigMap fairlead-system/defaults applied\n",
    )
    assert applied == [("kubectl", _environment("15"))]


@pytest.mark.parametrize("written", ["{}", "no JSON", '{"format": 9, "settings": "", "objects": [], "claims": []}'])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    (tmp_path / "plan.json").write_text(written)

    assert run(["apply", str(tmp_path / "plan.json")]) == Exit.INVALID_INPUT
    assert "plan" in capsys.readouterr().err


@pytest.mark.parametrize("refused", ["list compositions", "list customresourcedefinitions", "get configmaps"])
def test_a_plan_without_rights_names_the_role(cluster: MemoryKube, plan: Planned, refused: str) -> None:
    cluster.forbidden.add(refused)
    code, _, errors = plan(_composition("team", SPEC))

    assert code == Exit.TOOL_FAILED
    assert refused.partition(" ")[2] in errors
    assert "fairlead-plan" in errors
