"""Which API server, which namespace, which kind a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cluster import connected, current_namespace, split_reference
from fairlead.exits import CommandError
from fairlead.kube_options import USUAL, Server

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

    assert current_namespace(Server(path)) == namespace


def test_the_namespace_is_that_of_the_context_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(CONFIG)

    assert current_namespace(Server(path, "home")) == "garden"


def test_each_of_several_kubeconfigs_may_bring_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("current-context: work\n")
    second.write_text(CONFIG.replace("current-context: work", "current-context: home"))
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")

    assert current_namespace(USUAL) == "shop"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a person who has nothing yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("how", ["by default", "by the variable", "by the option"])
async def test_a_platform_of_up_that_is_down_is_known_as_that(
    bare: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = _unanswering(bare / ".cache" / "fairlead" / "platform" / "plane" / "kubeconfigs" / "admin")
    if how == "by the variable":
        monkeypatch.setenv("KUBECONFIG", str(path))

    with pytest.raises(CommandError, match="the platform of `fairlead up` is down; `fairlead up` brings it back"):
        async with connected(Server(path) if how == "by the option" else USUAL) as kube:
            await kube.raw("GET", "/apis")


async def test_another_api_server_that_is_down_is_called_silent(bare: Path) -> None:
    with pytest.raises(CommandError, match="the API server gives no answer"):
        async with connected(Server(_unanswering(bare / "config"))) as kube:
            await kube.raw("GET", "/apis")


def _unanswering(path: Path) -> Path:
    """Write a kubeconfig of a port where nothing listens: port 1 of this machine needs root to be opened."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cluster = "clusters:\n- {name: b, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}\n"
    path.write_text(f"{CONFIG}{cluster}users:\n- {{name: b, user: {{token: made-up}}}}\n")
    return path


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
