"""A namespace that is not prepared: nothing is made without a place for its password, and the words say what to do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in, until_gone
from tests.support.kinds import (
    CLAIM,
    PROVIDER_CONFIG,
    ROLE_BINDING,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.staff import Staff
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

ROOT = Path(__file__).resolve().parents[2]
_BINDINGS = ("fairlead-composer-claim-namespace", "fairlead-provider-onprem-claim-namespace")


async def do_as_it_says(system: System, obj: JsonObject, namespace: str) -> None:
    """Run the command of an AccessDenied message, in the repository's folder as a person would."""
    message = condition(obj, "Stalled")["message"]
    command = re.search(r"kubectl (apply -n \S+ -k \S+)", message)
    assert command is not None, message
    arguments = shlex.split(command.group(1))
    assert arguments[2] == namespace
    await system.kubectl.run(*arguments[:-1], str(ROOT / arguments[-1]))


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
    await do_as_it_says(system, obj, bare_namespace)
    await system.until(CLAIM, bare_namespace, "orders", is_ready, limit_s=150.0)
    assert await system.logs_in(bare_namespace, "orders")
    await system.delete(CLAIM, bare_namespace, "orders")


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
    await do_as_it_says(system, obj, namespace)
    await until_gone(system, home.path)
    assert await home.names() == []
