"""No secret shows outside Secrets: canaries are looked for in logs at DEBUG, objects, metrics, processes, commands.

Passwords are given, made, rotated, refused and wrong meanwhile, so that each way through the processes was taken.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import stat
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.security.builders import database as composed
from tests.security.canaries import Exposure, content_of, metrics_at, printed_by
from tests.support.api import Api, JsonObject
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    DATABASE,
    EVENT,
    NAMESPACE,
    PROVIDER_CONFIG,
    REVISION,
    SECRET,
    claim,
    composition,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.shared import at_work
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CHOSEN = {
    "good": "Canary-of-a-good-password-1",
    "newline": "Canary-of-a-password\nof-two-lines-2",
    "short": "Canry-3",
}
_NOTES, _WRONG = "Canary-of-a-tenants-own-Secret-4", "Canary-of-a-wrong-administrators-password-5"
_OWN = ("canaries", "fairlead-onprem", "fairlead-system")
_CORE_EVENTS = "/api/v1/events"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talking(alone: System) -> System:
    """Return the rig with composer and provider at DEBUG."""
    await asyncio.gather(alone.start_composer("--log-level=DEBUG"), alone.start_provider("--log-level=DEBUG"))
    await alone.until(PROVIDER_CONFIG, "", "default", is_ready)
    return alone


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def exposure(talking: System) -> Exposure:
    """Return all that shows once passwords were given, made, rotated, refused and wrong."""
    system, (namespace, *_) = talking, _OWN
    await system.namespaced(namespace)
    await system.create(SECRET, SECRET.new(namespace, "notes", stringData={"text": _NOTES}))
    published = [await _live(system, namespace, "rotated")]
    await system.edit(CLAIM, namespace, "rotated", {"spec": {"passwordRotation": {"token": "next"}}})
    await system.until(CLAIM, namespace, "rotated", is_ready)
    published.append(await system.binding(namespace, "rotated"))
    await _live(system, namespace, "deleted")
    published.append(await system.binding(namespace, "deleted"))
    await system.delete(CLAIM, namespace, "deleted")
    await _choose(system, namespace)
    await _mistake(system, namespace)
    await system.at_rest()

    # Other tests have passwords that are words.
    kept = [content_of(secret) for own in _OWN for secret in await system.api.items(SECRET.path(own))]
    canaries = {f"published {number}": binding["password"] for number, binding in enumerate(published)}
    canaries |= {f"chosen: {name}": text for name, text in _CHOSEN.items()}
    canaries |= {"a tenant's": _NOTES, "a wrong administrator's": _WRONG, "the administrator's": system.server.password}
    for number, content in enumerate(kept):
        passwords = {key: content[key] for key in ("current", "pending", "password", "key") if content.get(key)}
        canaries |= {f"Secret {number}, {key}": text for key, text in passwords.items()}
    for account in ("fairlead-system.fairlead-composer", "fairlead-onprem.fairlead-provider-onprem"):
        canaries[account] = _token(system.plane.folder / "kubeconfigs" / account)
    return Exposure(await _places(system, namespace), canaries)


async def _live(system: System, namespace: str, name: str) -> dict[str, str]:
    await system.create(CLAIM, claim(namespace, name, deletionPolicy="Delete"))
    await system.until(CLAIM, namespace, name, is_ready)
    return await system.binding(namespace, name)


async def _choose(system: System, namespace: str) -> None:
    """Have passwords that a person chose used, or refused."""
    for name, password in _CHOSEN.items():
        data = {"it": base64.b64encode(password.encode()).decode()}
        await system.create(SECRET, SECRET.new(namespace, name, data=data))
        reference = {"name": name, "key": "it"}
        await system.create(DATABASE, database(namespace, name, passwordSecretRef=reference))
    await system.until(DATABASE, namespace, "good", is_ready)
    for name in ("newline", "short"):
        await system.until(DATABASE, namespace, name, in_trouble("InvalidPassword"))


async def _mistake(system: System, namespace: str) -> None:
    """Have a server refuse the administrator, for a claim too."""
    login = {**system.admin_login(), "password": _WRONG}
    await system.create(SECRET, SECRET.new("fairlead-onprem", "wrong-admin", stringData=login))
    reference = {"adminSecretRef": {"name": "wrong-admin"}}
    await system.create(PROVIDER_CONFIG, system.provider_config("wrong", **reference))
    await system.create(COMPOSITION, composition("wrong", composed("wrong"), connection={"from": "database"}))
    await system.create(CLAIM, claim(namespace, "refused", compositionRef={"name": "wrong"}))

    def answered(obj: JsonObject) -> bool:
        return condition(obj, "Synced").get("status") == "False"

    await system.until(CLAIM, namespace, "refused", answered)


def _token(kubeconfig: Path) -> str:
    document: JsonObject = msgspec.json.decode(kubeconfig.read_bytes())
    return str(document["users"][0]["user"]["token"])


async def _places(system: System, namespace: str) -> dict[str, str]:
    pids = [pid for program in at_work(system) for pid in _family(program.pid)]
    return {
        "339-postgresqls-log": system.server.server.log.read_text(errors="replace"),
        "340-arguments": _of_processes(pids, "cmdline"),
        "341-audit-log": system.plane.audit_log.read_text(errors="replace"),
        "342-environments": _of_processes(pids, "environ"),
        "344-objects-and-events": await _objects(system.api),
        "345-logs-at-debug": "".join(program.text() for program in at_work(system)),
        "metrics": "".join([await metrics_at(system.ports[name]) for name in ("composer", "provider")]),
        "commands": await _commands(system, namespace),
    }


def _family(pid: int) -> list[int]:
    """Return a process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in _family(int(child)))]


def _of_processes(pids: list[int], name: str) -> str:
    """Return what /proc has of processes; a render worker that ended since it was listed has nothing to show."""
    texts = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            texts.append(Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace"))
    return "\n".join(texts)


async def _objects(api: Api) -> str:
    kinds = (CLAIM, DATABASE, PROVIDER_CONFIG, COMPOSITION, REVISION, CONFIG_MAP, EVENT, NAMESPACE)
    lists = [await api.items(path) for path in (*(kind.path() for kind in kinds), _CORE_EVENTS)]
    assert [kind.kind for kind, items in zip(kinds, lists, strict=False) if not items] == []
    return msgspec.json.encode(lists).decode()


async def _commands(system: System, namespace: str) -> str:
    """Return what the commands for people print about the claims."""
    file = system.folder / "planned.json"
    await asyncio.to_thread(file.write_bytes, msgspec.json.encode(claim(namespace, "rotated", size="medium")))
    printed = [
        await printed_by(system, name, "trace", f"pgi/{name}", "--namespace", namespace)
        for name in ("rotated", "refused")
    ]
    return "".join([*printed, await printed_by(system, "rotated", "plan", str(file))])


_PLACES = (
    "339-postgresqls-log",
    "340-arguments",
    "341-audit-log",
    "342-environments",
    "344-objects-and-events",
    "345-logs-at-debug",
    "metrics",
    "commands",
)


@pytest.mark.parametrize("place", _PLACES)
async def test_no_secret_shows(exposure: Exposure, place: str) -> None:
    assert len(exposure.places[place]) > 200
    assert exposure.shown(place) == []


async def test_the_secrets_that_are_looked_for_are_the_ones_in_use(exposure: Exposure, talking: System) -> None:
    # Without this the search could look for nothing.
    kept = [text for secret in await talking.api.items(SECRET.path()) for text in content_of(secret).values()]

    assert len(set(exposure.canaries.values())) >= 12
    in_use = ["published 1", "chosen: good", "a tenant's", "a wrong administrator's", "the administrator's"]
    assert [name for name in in_use if exposure.canaries[name] not in kept] == []
    debugging = [line for line in exposure.places["340-arguments"].splitlines() if "--log-level=DEBUG" in line]
    for module in ("composer", "providers"):
        assert [line for line in debugging if f"\0{module}\0" in line] != []


async def test_files_with_secrets_are_their_users_alone(exposure: Exposure, talking: System) -> None:
    secrets = [secret.encode() for name, secret in exposure.canaries.items() if not name.startswith("Secret ")]
    open_files = []
    for path in talking.folder.rglob("*"):
        if not path.is_file() or path.stat().st_size > 1 << 22:
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        folders = [stat.S_IMODE(parent.stat().st_mode) for parent in path.parents if talking.folder in parent.parents]
        is_private = mode & 0o077 == 0 or any(folder & 0o077 == 0 for folder in folders)
        if not is_private and any(secret in path.read_bytes() for secret in secrets):
            open_files.append(str(path.relative_to(talking.folder)))
    assert open_files == []
