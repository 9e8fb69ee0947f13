"""Where a key of a cloud or a password could show outside Secrets, in the life of a claim with all at DEBUG.

A database is made and its password rotated, and an account refuses a wrong key, so that the SDKs' own words for what
they send and what they are answered are among what is searched.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass

import msgspec

from tests.security.canaries import Exposure, content_of, metrics_at, printed_by
from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, DB_PARAMETER_GROUP, RDS_INSTANCE
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, SERVER_DATABASE
from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, GCP_CONFIG
from tests.support.kinds import CLAIM, CONFIG_MAP, EVENT, SECRET, Kind, claim, condition
from tests.support.shared import at_work, name_of
from tests.support.simulated_cloud import SimulatedCloud
from tests.support.system import System

_LIMIT_S = 240.0
_WRONG = "Canary-of-a-wrong-key-of-a-cloud-6"
_CLAIM = "orders"


@dataclass(frozen=True, slots=True)
class Account:
    """How a cloud is reached: its ProviderConfig, its kinds, and which keys of its Secret are secret."""

    config: Kind
    kinds: tuple[Kind, ...]
    keys: tuple[str, ...]


ACCOUNTS = {
    "aws": Account(AWS_CONFIG, (RDS_INSTANCE, DB_PARAMETER_GROUP), ("aws_secret_access_key",)),
    "azure": Account(AZURE_CONFIG, (FLEXIBLE_SERVER, SERVER_DATABASE), ("AZURE_CLIENT_SECRET",)),
    "gcp": Account(GCP_CONFIG, (CLOUD_SQL_INSTANCE, CLOUD_SQL_USER), ("credentials.json",)),
}
PLACES = ("logs at DEBUG", "audit log", "objects and events", "metrics", "commands", "its simulator")


async def exposure_of(cloud: SimulatedCloud, namespace: str, former: str) -> Exposure:
    """Return what objects and commands show of a cloud once a password was rotated; a key is refused first.

    `former` is the password that the claim `orders` of the namespace had before.
    """
    system, account = cloud.system, ACCOUNTS[cloud.cloud]
    await _have_a_key_refused(cloud, account)
    canaries = {"a former password": former, "a wrong key": _WRONG, **await _secrets(cloud, account, namespace)}
    kinds = (CLAIM, account.config, *account.kinds, CONFIG_MAP, EVENT)
    lists = [await system.api.items(path) for path in (*(kind.path() for kind in kinds), "/api/v1/events")]
    objects = msgspec.json.encode(lists).decode()
    return Exposure({"objects and events": objects, "commands": await _commands(system, namespace)}, canaries)


async def with_records(cloud: SimulatedCloud, exposure: Exposure) -> Exposure:
    """Return an exposure with what processes at DEBUG, the API server and a simulator recorded of it until now."""
    system = cloud.system
    programs = {name_of(program): program for program in at_work(system)}
    seen = [name for name in programs if name in {"composer", "standby"} or name.startswith(cloud.cloud)]
    records = {
        "logs at DEBUG": "".join(programs[name].text() for name in seen),
        "audit log": system.plane.audit_log.read_text(errors="replace"),
        "metrics": "".join([await metrics_at(system.ports[name]) for name in seen]),
        "its simulator": cloud.simulator.text() + msgspec.json.encode(await cloud.calls()).decode(),
    }
    return Exposure({**exposure.places, **records}, exposure.canaries)


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
    await asyncio.to_thread(file.write_bytes, msgspec.json.encode(claim(namespace, _CLAIM, size="medium")))
    traced = await printed_by(system, _CLAIM, "trace", f"pgi/{_CLAIM}", "--namespace", namespace)
    return traced + await printed_by(system, _CLAIM, "plan", str(file))
