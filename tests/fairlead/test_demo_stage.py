"""What the demo takes away, and what it shows when a step is not seen: decided without a platform."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from devcloud.clouds import all_clouds
from devcloud.up import Environment
from fairlead import demo
from fairlead.demo_stage import Stage
from fairlead.exits import CommandError, Exit
from fairlead.tree import Node

_MADE = {"app.kubernetes.io/managed-by": "fairlead-demo", "fairlead.dev/ephemeral": "true"}


@dataclass
class Kubectl:
    """Answers `get namespace` for the namespaces that are there; keeps every command."""

    namespaces: dict[str, dict[str, str]]
    commands: list[tuple[str, ...]] = field(default_factory=list)

    async def run(self, *arguments: str, **_: Any) -> str:
        self.commands.append(arguments)
        if arguments[:2] != ("get", "namespace") or arguments[2] not in self.namespaces:
            return ""
        return msgspec.json.encode(
            {"metadata": {"name": arguments[2], "labels": self.namespaces[arguments[2]]}}
        ).decode()

    @property
    def deleted(self) -> list[str]:
        return [command[2] for command in self.commands if command[:2] == ("delete", "namespace")]


def _stage(kubectl: Kubectl) -> Stage:
    plane = SimpleNamespace(kubectl=kubectl, kubeconfig=Path("/nowhere"))
    return Stage(cast("Environment", SimpleNamespace(plane=plane, logs={"composer": Path("/logs/composer.log")})))


@pytest.mark.parametrize(
    ("there", "deleted"),
    [
        pytest.param({}, [], id="nothing is there"),
        pytest.param({"demo": _MADE, "demo-aws": _MADE}, ["demo", "demo-aws"], id="those of an earlier run"),
        pytest.param({"demo-aws": _MADE, "shop": {}}, ["demo-aws"], id="one of an earlier run"),
    ],
)
async def test_the_demo_removes_the_namespaces_that_it_made(
    there: dict[str, dict[str, str]], deleted: list[str]
) -> None:
    kubectl = Kubectl(there)

    await demo.clear(_stage(kubectl), ("demo", "demo-aws"))

    assert kubectl.deleted == deleted


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="without a label"),
        pytest.param({"fairlead.dev/ephemeral": "true"}, id="one whose data may go, and that is another's"),
        pytest.param({"app.kubernetes.io/managed-by": "Helm"}, id="one that another tool made"),
    ],
)
async def test_the_demo_refuses_a_namespace_of_its_name_that_it_did_not_make(labels: dict[str, str]) -> None:
    kubectl = Kubectl({"demo": _MADE, "demo-aws": labels})

    with pytest.raises(CommandError, match="namespace demo-aws is not of an earlier demo") as refused:
        await demo.clear(_stage(kubectl), ("demo", "demo-aws"))

    assert refused.value.exit_code is Exit.REFUSED
    assert kubectl.deleted == []


def test_the_namespaces_of_the_demo_are_marked_as_its_own() -> None:
    assert len({cloud.story.namespace for cloud in all_clouds()}) == len(all_clouds()) > 1
    for document in (cloud.story.namespace_document() for cloud in all_clouds()):
        assert all(f'{name}: "{value}"' in document or f"{name}: {value}" in document for name, value in _MADE.items())


@pytest.mark.parametrize(
    ("traced", "shown"),
    [
        pytest.param(Node("PostgreSQLInstance", "orders", "False", "NotOwned", "another is there", None), 1, id="it"),
        pytest.param(None, 0, id="what was not seen is not hidden by a trace that cannot be had"),
    ],
)
async def test_a_step_that_is_not_seen_ends_with_the_trace_of_its_claim(
    traced: Node | None, shown: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def trace(claim: str, **_: Any) -> Node:
        if traced is None:
            raise CommandError(f"there is no PostgreSQLInstance {claim}")
        return traced

    async def nothing() -> None:
        return None

    monkeypatch.setattr("fairlead.demo_stage.trace", trace)
    with pytest.raises(CommandError, match=r"not seen within 0 s: orders is Ready; the logs are /logs/composer\.log"):
        await _stage(Kubectl({})).until("orders is Ready", nothing, claim="orders", limit_s=0.0)

    output = capsys.readouterr().out
    assert "fairlead trace orders -n demo" in output
    assert output.count("NotOwned") == shown
