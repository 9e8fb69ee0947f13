"""A namespace that is not prepared: nothing is made without a place for its password, and the words say what to do."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    DATABASE,
    NAMESPACE,
    PROVIDER_CONFIG,
    ROLE_BINDING,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.staff import Staff
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_ROOT = Path(__file__).resolve().parents[2]
_BINDINGS = ("fairlead-composer-claim-namespace", "fairlead-provider-onprem-claim-namespace")


@pytest_asyncio.fixture(loop_scope="session")
async def bare_namespace(system: System) -> AsyncIterator[str]:
    """Yield a namespace as `kubectl create namespace` makes it."""
    name = f"bare-{secrets.token_hex(4)}"
    await system.create(NAMESPACE, NAMESPACE.new("", name))
    yield name
    if await system.api.find(NAMESPACE.path("", name)) is not None:
        await system.api.delete(NAMESPACE.path("", name))


async def _do_as_it_says(system: System, obj: JsonObject, namespace: str) -> None:
    """Run the command of an AccessDenied message, in the repository's folder as a person would."""
    message = condition(obj, "Stalled")["message"]
    command = re.search(r"kubectl (apply -n \S+ -k \S+)", message)
    assert command is not None, message
    arguments = shlex.split(command.group(1))
    assert arguments[2] == namespace
    await system.kubectl.run(*arguments[:-1], str(_ROOT / arguments[-1]))


def _stalled(reason: str, word: str) -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        stalled = condition(obj, "Stalled")
        return stalled.get("reason") == reason and word in stalled["message"]

    return holds


async def test_a_claim_in_a_bare_namespace_makes_no_database_and_goes_on_after_the_command_it_names(
    staff: Staff, bare_namespace: str
) -> None:
    system = staff.system
    # From here on the provider has prepared the server.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    mark = system.sql.mark()
    await system.create(CLAIM, claim(bare_namespace, "orders", deletionPolicy="Delete"))

    obj = await system.until(CLAIM, bare_namespace, "orders", in_trouble("AccessDenied"))
    assert condition(obj, "Ready")["status"] == "False"
    await system.at_rest()
    assert system.sql.changes(mark) == []

    obj = await system.api.get(CLAIM.path(bare_namespace, "orders"))
    await _do_as_it_says(system, obj, bare_namespace)
    await system.until(CLAIM, bare_namespace, "orders", is_ready, limit_s=150.0)
    assert await system.logs_in(bare_namespace, "orders")
    await system.delete(CLAIM, bare_namespace, "orders")


async def test_a_claim_in_a_bare_namespace_is_deleted_without_a_trace(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    await system.create(CLAIM, claim(bare_namespace, "never", deletionPolicy="Delete"))
    await system.until(CLAIM, bare_namespace, "never", in_trouble("AccessDenied"))

    await system.delete(CLAIM, bare_namespace, "never")

    assert await system.api.items(DATABASE.path(bare_namespace)) == []


async def test_a_managed_resource_in_a_bare_namespace_makes_no_database(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    # From here on the provider has prepared the server.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    mark = system.sql.mark()
    await system.create(DATABASE, database(bare_namespace, "alone"))

    obj = await system.until(DATABASE, bare_namespace, "alone", in_trouble("AccessDenied"))
    assert system.sql.changes(mark) == []

    await _do_as_it_says(system, obj, bare_namespace)
    await system.until(DATABASE, bare_namespace, "alone", is_ready, limit_s=150.0)
    await system.delete(DATABASE, bare_namespace, "alone")


async def test_the_composer_alone_without_its_right_says_so_and_goes_on(staff: Staff, bare_namespace: str) -> None:
    system = staff.system
    folder = _ROOT / "deploy" / "kustomize" / "clouds" / "onprem" / "claim-namespace" / "provider.yaml"
    await system.kubectl.run("apply", "--namespace", bare_namespace, "--filename", str(folder))
    await system.create(CLAIM, claim(bare_namespace, "half", deletionPolicy="Delete"))

    obj = await system.until(CLAIM, bare_namespace, "half", _stalled("AccessDenied", "the composer"))
    (child,) = await system.children(bare_namespace, "half")
    assert is_ready(child)

    await _do_as_it_says(system, obj, bare_namespace)
    await system.until(CLAIM, bare_namespace, "half", is_ready, limit_s=150.0)
    assert await system.logs_in(bare_namespace, "half")
    await system.delete(CLAIM, bare_namespace, "half")


async def test_a_claim_whose_namespace_lost_its_rights_keeps_its_data_and_its_end_waits_for_them(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    home: Home = await move_in(system, claim(namespace, "kept", deletionPolicy="Delete"))
    for name in _BINDINGS:
        await system.api.delete(ROLE_BINDING.path(namespace, name))
    await system.ask_for_a_pass(CLAIM, namespace, "kept")
    obj = await home.until_stalled("AccessDenied")
    assert condition(obj, "Ready")["status"] == "True"
    await home.untouched()

    await system.api.delete(home.path)
    obj = await home.until_stalled("AccessDenied")
    await _do_as_it_says(system, obj, namespace)
    await until_gone(system, home.path)
    assert await home.names() == []
