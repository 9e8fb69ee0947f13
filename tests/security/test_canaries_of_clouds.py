"""No key of a cloud and no password shows outside Secrets: canaries are looked for as on-prem, with providers at DEBUG.

Databases are made, changed, rotated and deleted, and an account refuses a wrong key, so that the SDKs' own words for
what they send and what they are answered are among what is searched.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass

import msgspec
import pytest
import pytest_asyncio

from tests.security.canaries import content_of, forms_of, metrics_at, printed_by
from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, DB_PARAMETER_GROUP, RDS_INSTANCE, Aws
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, SERVER_DATABASE, Azure
from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, GCP_CONFIG, Gcp
from tests.support.kinds import CLAIM, CONFIG_MAP, EVENT, SECRET, Kind, claim, condition, is_ready
from tests.support.processes import Program
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.rds]

_LIMIT_S = 240.0
_WRONG = "Canary-of-a-wrong-key-of-a-cloud-6"
_NAME = "rotated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How a cloud is reached: its ProviderConfig, its kinds, and which keys of its Secret are secret."""

    config: Kind
    kinds: tuple[Kind, ...]
    flags: tuple[str, ...]
    keys: tuple[str, ...]


# Of the two reads a second that Google allows passes have nearly all.
_SELDOM = ("--sweep=15", "--grace=3", "--settle=1", "--resync=600")
_ACCOUNTS = {
    "aws": Account(
        config=AWS_CONFIG,
        kinds=(RDS_INSTANCE, DB_PARAMETER_GROUP),
        flags=QUICK,
        keys=("aws_secret_access_key",),
    ),
    "azure": Account(
        config=AZURE_CONFIG,
        kinds=(FLEXIBLE_SERVER, SERVER_DATABASE),
        flags=QUICK,
        keys=("AZURE_CLIENT_SECRET",),
    ),
    "gcp": Account(
        config=GCP_CONFIG,
        kinds=(CLOUD_SQL_INSTANCE, CLOUD_SQL_USER),
        flags=_SELDOM,
        keys=("credentials.json",),
    ),
}
_PLACES = ("logs at DEBUG", "audit log", "objects and events", "metrics", "commands")


@dataclass(frozen=True, slots=True)
class Exposure:
    """What could be seen outside Secrets, by place, and the secrets that are not to be in it."""

    places: dict[str, str]
    canaries: dict[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def exposures(alone: System, shared_aws: Aws, shared_azure: Azure, shared_gcp: Gcp) -> dict[str, Exposure]:
    """Return what shows of each cloud, all of which are used at once."""
    composer = await alone.start_composer("--log-level=DEBUG")
    clouds: tuple[SimulatedCloud, ...] = (shared_aws, shared_azure, shared_gcp)
    exposed = await asyncio.gather(*(_exposure(cloud, _ACCOUNTS[cloud.cloud], composer) for cloud in clouds))
    return {cloud.cloud: exposure for cloud, exposure in zip(clouds, exposed, strict=True)}


async def _exposure(cloud: SimulatedCloud, account: Account, composer: Program) -> Exposure:
    """Return what shows of a cloud with a provider at DEBUG: a database made, rotated and deleted, a key refused."""
    system, namespace = cloud.system, f"canaries-{cloud.cloud}"
    program = await cloud.start_provider("--log-level=DEBUG", *account.flags)
    await system.until(account.config, "", "default", is_ready, limit_s=_LIMIT_S)
    await system.namespaced(namespace, cloud=cloud.cloud)
    (former, commands), _ = await asyncio.gather(_rotate(system, namespace), _have_a_key_refused(cloud, account))
    canaries = {"a former password": former, "a wrong key": _WRONG, **await _secrets(cloud, account, namespace)}
    await system.api.delete(CLAIM.path(namespace, _NAME))
    await system.api.until_gone(CLAIM.path(namespace, _NAME), limit_s=_LIMIT_S)
    port = system.ports[f"provider-{cloud.cloud}"]
    objects = [kind.path() for kind in (CLAIM, account.config, *account.kinds, CONFIG_MAP, EVENT)]
    lists = [await system.api.items(path) for path in (*objects, "/api/v1/events")]
    places = {
        "logs at DEBUG": program.text() + composer.text(),
        "audit log": system.plane.audit_log.read_text(errors="replace"),
        "objects and events": msgspec.json.encode(lists).decode(),
        "metrics": await metrics_at(port) + await metrics_at(system.ports["composer"]),
        "commands": commands,
    }
    return Exposure(places, canaries)


async def _rotate(system: System, namespace: str) -> tuple[str, str]:
    """Return the password that a claim had before its rotation, and what commands print about it after that."""
    await system.create(CLAIM, claim(namespace, _NAME, deletionPolicy="Delete"))
    await system.until(CLAIM, namespace, _NAME, is_ready, limit_s=_LIMIT_S)
    former = (await system.binding(namespace, _NAME))["password"]
    await system.edit(CLAIM, namespace, _NAME, {"spec": {"passwordRotation": {"token": "next"}}})

    async def is_another() -> bool:
        return (await system.binding(namespace, _NAME))["password"] != former

    await eventually(is_another, "another password is published", limit_s=_LIMIT_S)
    return former, await _commands(system, namespace)


async def _secrets(cloud: SimulatedCloud, account: Account, namespace: str) -> dict[str, str]:
    """Return the passwords of the claims and the keys of the cloud."""
    api = cloud.system.api
    secrets = [content_of(secret) for secret in await api.items(SECRET.path(namespace))]
    own = [content_of(secret) for secret in await api.items(SECRET.path(f"fairlead-{cloud.cloud}"))]
    canaries: dict[str, str] = {}
    for number, content in enumerate(secrets):
        passwords = {key: content[key] for key in ("current", "pending", "password") if content.get(key)}
        canaries |= {f"Secret {number}, {key}": text for key, text in passwords.items()}
    keys = [(key, content[key]) for content in own for key in account.keys if key in content]
    return canaries | {f"key {number}, {key}": _secret_part(key, text) for number, (key, text) in enumerate(keys)}


def _secret_part(key: str, text: str) -> str:
    """Return what of a key's text is secret: of Google's file the private key's own lines."""
    if key != "credentials.json" or text.startswith("Canary"):
        return text
    lines: list[str] = msgspec.json.decode(text)["private_key"].splitlines()
    return lines[2]


async def _have_a_key_refused(cloud: SimulatedCloud, account: Account) -> None:
    """Have a ProviderConfig that names a Secret with a wrong key."""
    system, own = cloud.system, f"fairlead-{cloud.cloud}"
    config = await system.api.get(account.config.path("", "default"))
    name = config["spec"]["credentials"]["secretRef"]["name"]
    good = await system.api.get(SECRET.path(own, name))
    data = dict(good["data"])
    for key in account.keys:
        data[key] = base64.b64encode(_WRONG.encode()).decode()
    await system.create(SECRET, SECRET.new(own, "wrong", data=data))
    credentials = {**config["spec"]["credentials"], "secretRef": {"name": "wrong"}}
    spec = {**config["spec"], "credentials": credentials}
    await system.create(account.config, account.config.new("", "wrong", spec=spec))

    def is_refused(obj: JsonObject) -> bool:
        return condition(obj, "Ready").get("status") == "False"

    await system.until(account.config, "", "wrong", is_refused, limit_s=_LIMIT_S)


async def _commands(system: System, namespace: str) -> str:
    """Return what the commands for people print about the claims."""
    file = system.folder / f"{namespace}.json"
    await asyncio.to_thread(file.write_bytes, msgspec.json.encode(claim(namespace, _NAME, size="medium")))
    traced = await printed_by(system, "trace", f"pgi/{_NAME}", "--namespace", namespace)
    return traced + await printed_by(system, "plan", str(file))


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("cloud", _ACCOUNTS)
async def test_no_secret_of_a_cloud_shows(exposures: dict[str, Exposure], cloud: str, place: str) -> None:
    exposure = exposures[cloud]
    text = exposure.places[place]

    assert len(text) > 200
    shown = [name for name, secret in exposure.canaries.items() if any(form in text for form in forms_of(secret))]
    assert shown == []


@pytest.mark.parametrize("cloud", _ACCOUNTS)
async def test_the_secrets_that_are_looked_for_are_those_in_use(exposures: dict[str, Exposure], cloud: str) -> None:
    canaries = exposures[cloud].canaries

    assert len(set(canaries.values())) >= 4
    assert min(len(text) for text in canaries.values()) >= 16
    assert [name for name in canaries if name.startswith("key ")] != []
