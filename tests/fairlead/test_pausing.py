"""`fairlead pause` and `fairlead resume` on a real API server: annotations, and nothing else, on what heeds them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devcloud.controlplane.plane import Plane
from fairlead.annotate import patch, tools_with
from fairlead.cli import run
from fairlead.exits import CommandError
from fairlead.pausing import end_in
from tests.support.api import Api, JsonObject

CLAIMS, ONPREM = "database.fairlead.dev/v1alpha1", "onprem.fairlead.dev/v1alpha1"
NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
PAUSED, REASON = "fairlead.dev/paused", "fairlead.dev/paused-reason"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("30m", "2026-11-22T10:30:00Z"),
        ("2h", "2026-11-22T12:00:00Z"),
        ("1d", "2026-11-23T10:00:00Z"),
        ("2026-11-22T18:00:00Z", "2026-11-22T18:00:00Z"),
        ("2026-11-22T18:00:00+02:00", "2026-11-22T16:00:00Z"),
    ],
)
def test_an_end_is_a_duration_or_a_time(text: str, end: str) -> None:
    assert end_in(text, NOW) == end


@pytest.mark.parametrize(
    "text", ["soon", "2h30m", "-1h", "2026-11-22", "2026-11-22T18:00:00", "0m", "2025-01-01T00:00:00Z"]
)
def test_another_text_or_a_time_that_is_over_is_no_end(text: str) -> None:
    with pytest.raises(CommandError) as refused:
        end_in(text, NOW)

    assert refused.value.exit_code == 64


def _annotated(**annotations: str) -> JsonObject:
    return {"metadata": {"name": "a", "annotations": annotations} if annotations else {"name": "a"}}


SET = {"op": "add", "path": "/metadata/annotations/fairlead.dev~1paused", "value": "true"}
PATCHES = [
    pytest.param(
        _annotated(),
        {PAUSED: "true"},
        [{"op": "add", "path": "/metadata/annotations", "value": {}}, SET],
        id="the first annotation",
    ),
    pytest.param(_annotated(a="b"), {PAUSED: "true"}, [SET], id="one more"),
    pytest.param(_annotated(**{PAUSED: "true"}), {PAUSED: "true"}, [], id="there already"),
    pytest.param(
        _annotated(**{PAUSED: "true"}),
        {PAUSED: None, REASON: None},
        [{"op": "remove", "path": "/metadata/annotations/fairlead.dev~1paused"}],
        id="taken away where it is",
    ),
    pytest.param(_annotated(), {PAUSED: None}, [], id="nothing to take away"),
]


@pytest.mark.parametrize(("obj", "changes", "operations"), PATCHES)
def test_a_patch_leads_to_the_annotations(obj: JsonObject, changes: Any, operations: list[JsonObject]) -> None:
    assert patch(obj, changes) == operations


def test_a_tool_that_keeps_an_annotation_is_named_and_a_hand_is_not() -> None:
    fields: JsonObject = {"f:metadata": {"f:annotations": {f"f:{PAUSED}": {}}}}
    managers = ["kubectl-annotate", "fairlead-cli", "kustomize-controller", "argocd-controller"]
    entries = [{"manager": manager, "fieldsV1": fields} for manager in managers]
    obj = {"metadata": {"managedFields": [*entries, {"manager": "other", "fieldsV1": {"f:metadata": {}}}]}}

    assert tools_with(obj, PAUSED) == ["argocd-controller", "kustomize-controller"]


async def _claim(api: Api, namespace: str, **annotations: str) -> str:
    path = Api.path(CLAIMS, "postgresqlinstances", namespace)
    claim = {
        "apiVersion": CLAIMS,
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "orders", "namespace": namespace, "annotations": annotations},
        "spec": {"version": "16", "size": "small"},
    }
    await api.create(path, claim)
    return f"{path}/orders"


async def _run(plane: Plane, *arguments: str) -> int:
    return await asyncio.to_thread(run, [*arguments, "--kubeconfig", str(plane.kubeconfig)])


async def test_a_claim_is_paused_until_a_time_and_goes_on(
    plane: Plane, api: Api, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = await _claim(api, namespace, note="kept")
    before = await api.get(path)

    paused = await _run(plane, "pause", "orders", "-n", namespace, "--until", "2h", "--reason", "disk exchange")
    during = await api.get(path)
    again = await _run(plane, "pause", "orders", "-n", namespace)
    endless = await api.get(path)
    resumed = [await _run(plane, "resume", "orders", "-n", namespace) for _ in range(2)]
    after = await api.get(path)

    assert (paused, again, resumed) == (0, 0, [0, 0])
    annotations = during["metadata"]["annotations"]
    end = datetime.fromisoformat(annotations.pop(PAUSED))
    assert timedelta(hours=1) < end - datetime.now(UTC) <= timedelta(hours=2)
    assert annotations == {"note": "kept", REASON: "disk exchange"}
    # A pause without a reason forgets the reason of the one before.
    assert endless["metadata"]["annotations"] == {"note": "kept", PAUSED: "true"}
    assert after["metadata"]["annotations"] == {"note": "kept"}
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    said = capsys.readouterr().out
    assert "is paused until `fairlead resume`" in said
    assert f"PostgreSQLInstance orders in namespace {namespace} was not paused" in said


async def test_a_provider_config_is_paused_and_its_destroy_rate_limit_lifted(
    plane: Plane, api: Api, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Api.path(ONPREM, "providerconfigs", name=namespace)
    await api.create(
        Api.path(ONPREM, "providerconfigs"),
        {
            "apiVersion": ONPREM,
            "kind": "ProviderConfig",
            "metadata": {"name": namespace},
            "spec": {"host": "pg.example.org", "adminSecretRef": {"name": "a"}, "caSecretRef": {"name": "b"}},
        },
    )

    paused = await _run(plane, "pause", f"onprempc/{namespace}")
    during = await api.get(path)
    resumed = await _run(plane, "resume", f"onprempc/{namespace}", "--destroys-until", "1h")
    after = await api.get(path)
    await api.delete(path)

    assert (paused, resumed) == (0, 0)
    assert during["metadata"]["annotations"] == {PAUSED: "true"}
    (name,) = after["metadata"]["annotations"]
    assert name == "fairlead.dev/brake-released"
    assert "and all that it serves" in capsys.readouterr().out


async def test_what_heeds_no_pause_of_its_own_is_refused(
    plane: Plane, api: Api, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Api.path(ONPREM, "postgresdatabases", namespace)
    child = {
        "apiVersion": ONPREM,
        "kind": "PostgresDatabase",
        "metadata": {"name": "child", "annotations": {"fairlead.dev/claim-name": "orders"}},
        "spec": {"forProvider": {"databaseName": "orders", "username": "orders"}},
    }
    await api.create(path, child)
    await _claim(api, namespace)

    codes = [
        await _run(plane, "pause", "postgresdatabase/child", "-n", namespace),
        await _run(plane, "resume", "orders", "-n", namespace, "--destroys-until", "1h"),
        await _run(plane, "pause", "orders", "-n", namespace, "--until", "tomorrow"),
        await _run(plane, "pause", "nobody", "-n", namespace),
    ]

    said = capsys.readouterr().err
    assert codes == [7, 7, 64, 1]
    assert "follows its claim orders: name the claim instead" in said
    assert "has no destroy rate limit: name the ProviderConfig" in said
    assert "there is no PostgreSQLInstance nobody" in said
    assert PAUSED not in (await api.get(f"{path}/child"))["metadata"]["annotations"]
