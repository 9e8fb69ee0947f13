"""Which API server, which namespace, which kind a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cluster import connected, current_namespace, default_kubeconfig, split_reference
from fairlead.exits import CommandError

CONFIG = """\
apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: home, context: {cluster: a, user: a, namespace: garden}}
- {name: work, context: {cluster: b, user: b, namespace: shop}}
- {name: bare, context: {cluster: c, user: c}}
"""


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("orders", ("PostgreSQLInstance", "orders")),
        ("pgi/orders", ("pgi", "orders")),
        ("postgresdatabase/orders-x", ("postgresdatabase", "orders-x")),
    ],
)
def test_a_reference_is_a_name_or_kind_and_name(reference: str, parts: tuple[str, str]) -> None:
    assert split_reference(reference) == parts


@pytest.mark.parametrize("reference", ["", "/", "pgi/", "/orders", "a/b/c"])
def test_anything_else_is_refused(reference: str) -> None:
    with pytest.raises(CommandError, match="neither NAME nor KIND/NAME"):
        split_reference(reference)


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        pytest.param(CONFIG, "shop", id="the current context's"),
        pytest.param(CONFIG.replace("current-context: work", "current-context: bare"), "default", id="none is set"),
        pytest.param(CONFIG.replace("current-context: work", "current-context: gone"), "default", id="no such context"),
        pytest.param("[", "default", id="an unreadable file is the connection's trouble, not ours"),
        pytest.param("text", "default", id="no kubeconfig at all"),
    ],
)
def test_the_namespace_is_kubectls(tmp_path: Path, text: str, namespace: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    assert current_namespace(path) == namespace


def test_the_namespace_follows_the_variable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    monkeypatch.setenv("KUBECONFIG", f"{path}:/another")

    assert default_kubeconfig() is None
    assert current_namespace(None) == "shop"


def test_without_the_variable_the_usual_file_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert default_kubeconfig() is None

    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(CONFIG)

    assert default_kubeconfig() == tmp_path / ".kube" / "config"
    assert current_namespace(None) == "shop"


async def test_no_api_server_at_all_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(CommandError, match=r"fairlead env"):
        async with connected(None):
            pass
