"""`fairlead import preview` and `adopt`: which objects a person means, read once, and asked about side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apis import names
from fairlead.cluster import connected, current_namespace, every_object, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.imports import operators
from fairlead.imports.adopting import Adopted, Agreement, Preview, adopt_all, agreements_in, is_ours, preview
from fairlead.imports.following import Followed
from fairlead.kube_options import Server
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource, annotations_of, key_of


@dataclass(frozen=True, slots=True)
class Request:
    """What a person agreed to: one object's hash, or a file of previews; `wave`: how many at a time."""

    reference: str
    agreed: str
    previews: Path | None
    namespace: str | None
    server: Server
    wave: int = 10


async def previews(references: Sequence[str], namespace: str | None, server: Server) -> list[Preview]:
    """Return the previews of the objects that are named, or of all in a namespace that name something in a cloud."""
    async with connected(server) as kube:
        home = namespace or current_namespace(server)
        meant = [await _meant(kube, reference, home) for reference in references] or await _waiting(kube, home)
        claims = [await operators.preview(kube, *place) for place in meant if _is_claim(place[0])]
        meant = [place for place in meant if not _is_claim(place[0])]
        async with Followed.begin(kube, [(resource, key.namespace) for resource, key in meant]) as followed:
            return [*claims, *await asyncio.gather(*(preview(kube, followed, *place) for place in meant))]


async def adopt(request: Request) -> list[Adopted]:
    """Adopt what was agreed to. Raises CommandError for a file that is none of previews."""
    async with connected(request.server) as kube:
        if request.previews is None:
            home = request.namespace or current_namespace(request.server)
            resource, key = await _meant(kube, request.reference, home)
            if _is_claim(resource):
                return [await operators.adopt(kube, resource, key, request.agreed)]
            agreements = [Agreement(resource, key, request.agreed)]
        else:
            kinds = {resource.kind: resource for resource in await Discovery(kube).managed_kinds()}
            agreements = agreements_in(_read(request.previews), kinds)
        return await adopt_all(kube, agreements, request.wave)


async def _meant(kube: Kube, reference: str, namespace: str) -> tuple[Resource, Key]:
    word, name = split_reference(reference)
    resource = await Discovery(kube).resource_named(word)
    if not (names.is_managed(resource.group) or _is_claim(resource)) or not resource.namespaced:
        text = f"{reference} is no managed resource, as postgresdatabase/orders is"
        raise CommandError(text, exit_code=Exit.USAGE)
    return resource, Key(namespace, name)


async def _waiting(kube: Kube, namespace: str) -> list[tuple[Resource, Key]]:
    """Return the managed resources of a namespace for which a person named something that is not theirs yet."""
    waiting = []
    for resource in await Discovery(kube).managed_kinds():
        objects = [obj async for obj in every_object(kube, resource, namespace)]
        waiting += [(resource, key_of(obj)) for obj in objects if _is_meant(obj)]
    if not waiting:
        raise CommandError(f"nothing in namespace {namespace} waits to be adopted", exit_code=Exit.INVALID_INPUT)
    return waiting


def _is_claim(resource: Resource) -> bool:
    return resource.group in names.CLAIM_GROUPS


def _is_meant(obj: Object) -> bool:
    return bool(annotations_of(obj).get(names.EXTERNAL_NAME)) and not is_ours(obj)


def _read(path: Path) -> object:
    try:
        return msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise CommandError(f"{path}: no JSON: {error}", exit_code=Exit.INVALID_INPUT) from error
