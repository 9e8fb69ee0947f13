"""What people do with kubectl: tenants with their claims, and the platform's people with kinds and Compositions."""

from __future__ import annotations

import asyncio
import re
import shlex
from datetime import timedelta
from typing import Any, Final

from apis import names
from fairlead.simulation.platform import CLAIMS
from runtime import clock
from runtime.conditions import timestamp
from runtime.objects import CRDS, SECRETS, Key, Object, Resource, dumps, loads
from tests.simulation.cast import Cast
from tests.simulation.history import OTHER, PERSON, TEAM

CLAIM_KEYS: Final = (Key(TEAM, "a"), Key(TEAM, "b"), Key(OTHER, "c"))
INNER_NAMES: Final = ("app", "orders")
_COMMAND: Final = re.compile(r"`kubectl annotate ([^`]*)`")


async def have_claim(cast: Cast) -> str:
    spec: Object = {
        "version": cast.draw(*cast.cloud.versions),
        "size": cast.draw("small", "medium"),
        "deletionPolicy": cast.draw(*cast.cloud.policies[0]),
        "highAvailability": cast.cloud.has_standby and cast.happens(1 / 8),
        "deletionProtection": cast.happens(1 / 8),
    }
    backups = cast.platform.cloud.backups()
    if backups and cast.happens(1 / 4):
        spec["restoreFrom"] = {"backup": cast.draw(*backups)}
    key = cast.draw(*CLAIM_KEYS)
    claims = cast.cloud.claims_kept(cast, key.namespace)
    if claims and cast.happens(1 / 2):
        past = clock.now() - timedelta(seconds=cast.chance.uniform(0, 200))
        spec["restoreFrom"] = {"claim": cast.draw(*claims)} | cast.draw({}, {"time": timestamp(past)})
    return await cast.make(CLAIMS, key, spec)


async def edit_claim(cast: Cast) -> str:
    path, values = cast.draw(
        ("size", ("small", "medium", "large")),
        ("deletionPolicy", ("Delete", "Orphan", "Snapshot")),
        ("deletionProtection", (True, False, False)),
        ("version", ("16", "17")),
        ("highAvailability", (True, False)),
    )
    return await cast.edit(CLAIMS, _a_claim(cast), f"/spec/{path}", cast.draw(*values))


async def rotate(cast: Cast) -> str:
    token = {"token": f"t{cast.chance.randrange(1000)}"}
    return await cast.edit(CLAIMS, _a_claim(cast), "/spec/passwordRotation", token)


async def delete_claim(cast: Cast) -> str:
    return await cast.remove(CLAIMS, _a_claim(cast))


def _a_claim(cast: Cast) -> Key:
    """Return a claim that is there, or might be."""
    present = [key for _, key in cast.keys(CLAIMS)]
    return Key(*cast.draw(*(present or CLAIM_KEYS)))


async def have_shared(cast: Cast) -> str:
    about = cast.platform.description
    spec = {"forProvider": dict(cast.cloud.shared), "deletionPolicy": cast.draw(*cast.cloud.policies[1])}
    return await cast.make(about.server, Key(TEAM, "shared"), spec)


async def delete_shared(cast: Cast) -> str:
    return await cast.remove(cast.platform.description.server, Key(TEAM, "shared"))


async def have_inner(cast: Cast) -> str:
    about, name = cast.platform.description, cast.draw(*INNER_NAMES)
    resource = cast.draw(*about.inner)
    spec = {"forProvider": cast.cloud.inside(resource, name), "deletionPolicy": cast.draw(*cast.cloud.policies[2])}
    return await cast.make(resource, Key(TEAM, name), spec)


async def delete_inner(cast: Cast) -> str:
    return await cast.remove(cast.draw(*cast.platform.description.inner), Key(TEAM, cast.draw(*INNER_NAMES)))


async def delete_any(cast: Cast) -> str:
    """Delete any object, those that a claim has made among them."""
    present = cast.keys(*cast.platform.description.resources)
    if not present:
        return "nothing to delete"
    resource, key = cast.draw(*present)
    return await cast.remove(resource, key)


async def edit_policy(cast: Cast) -> str:
    present = cast.keys(*cast.platform.description.resources)
    if not present:
        return "nothing to edit"
    resource, key = cast.draw(*present)
    return await cast.edit(resource, key, "/spec/deletionPolicy", cast.draw(*cast.cloud.policies[2]))


async def leave(cast: Cast) -> str:
    """Delete nearly all that a namespace has."""
    namespace = cast.draw(TEAM, TEAM, OTHER)
    said = []
    for resource, key in cast.keys(CLAIMS, *cast.platform.description.resources):
        if key.namespace == namespace and cast.happens(3 / 4):
            said.append(await cast.remove(resource, key))
    return ", ".join(said) or "nobody leaves"


async def obey(cast: Cast) -> str:
    """Type a command that the message of a condition offers."""
    kinds = (CLAIMS, *cast.platform.description.resources)
    offered = sorted(
        command
        for resource, key in cast.keys(*kinds)
        for condition in (cast.platform.server.all_of(resource)[key].get("status") or {}).get("conditions") or ()
        for command in _COMMAND.findall(condition.get("message", ""))
    )
    if not offered:
        return "nothing is asked of people"
    words = [word for word in shlex.split(cast.draw(*offered)) if word != "--overwrite"]
    kind, _, name = words[0].partition("/")
    resource = next((of for of in kinds if of.kind.lower() == kind.partition(".")[0]), None)
    if resource is None or "$" in words[-1]:
        return f"nobody types {words}"
    annotation, _, value = words[-1].partition("=")
    return await cast.annotate(resource, Key(words[2], name), annotation, value)


async def edit_secret(cast: Cast) -> str:
    """Spoil the Secret of a claim: make it immutable, delete it, or write something else into it."""
    secrets = cast.connections()
    if not secrets:
        return "no Secret"
    key = cast.draw(*secrets)
    if cast.happens(1 / 4):
        return await cast.remove(SECRETS, key)
    path, value = cast.draw(("/immutable", True), ("/immutable", True), ("/data/host", "bm93aGVyZQ=="))
    return await cast.edit(SECRETS, key, path, value)


async def edit_composition(cast: Cast) -> str:
    """Change the Composition as its author does: a key more, other sizes, other waves, another name of a resource."""
    about = cast.platform.description
    composition = await cast.platform.server.get(names.COMPOSITIONS, Key("", f"postgres-{about.name}"))
    spec, change = composition["spec"], cast.draw("publish", "publish", "size", "waves", "rename", "drop")
    match change:
        case "publish":
            spec["connection"][f"extra{cast.chance.randrange(3)}"] = cast.draw("one", "two")
        case "size":
            spec["variables"]["sizes"]["small"]["storageGiB"] = cast.draw(*cast.cloud.storage)
        case "waves":
            spec["rollout"]["waves"] = cast.draw(["1", "100%"], ["50%", "100%"], ["100%"])
        case "rename":
            composition["spec"] = spec = _renamed(spec)
        case _:
            database = _named(spec, "database") or _named(spec, "store")
            database["when"] = cast.draw("{{ false }}", "{{ claim.spec.restoreFrom is undefined }}")
            server = spec["resources"][0]["template"]["spec"]["forProvider"]
            server |= cast.cloud.database_fields(database["when"] != "{{ false }}")
    await cast.platform.server.replace(names.COMPOSITIONS, composition, manager=PERSON)
    return f"edit the Composition: {change}"


async def rename_resource(cast: Cast, name: str) -> str:
    """Give the resource that holds the data another name, without `movedFrom`."""
    composition = await cast.platform.server.get(names.COMPOSITIONS, Key("", name))
    composition["spec"] = _renamed(composition["spec"])
    await cast.platform.server.replace(names.COMPOSITIONS, composition, manager=PERSON)
    return f"rename a resource of Composition {name}"


def _renamed(spec: Object) -> Object:
    old, new = ("database", "store") if _named(spec, "database") else ("store", "database")
    renamed: Object = loads(dumps(spec).decode().replace(f"resources.{old}.", f"resources.{new}.").encode())
    _named(renamed, old)["name"] = new
    if renamed["connection"].get("from") == old:
        renamed["connection"]["from"] = new
    return renamed


def _named(spec: Object, name: str) -> Any:
    return next((resource for resource in spec["resources"] if resource["name"] == name), {})


async def take_kind(cast: Cast) -> str:
    """Delete a CRD, and apply all again a while later."""
    resource: Resource = cast.draw(*cast.platform.description.resources)
    said = await cast.remove(CRDS, Key("", f"{resource.plural}.{resource.group}"))
    await asyncio.sleep(cast.chance.uniform(5, 120))
    return f"{said}, {await apply_kinds(cast)}"


async def apply_kinds(cast: Cast) -> str:
    """Have the CRDs of the release; one that is being deleted stays so."""
    return f"applied {cast.platform.apply_kinds()} kinds"
