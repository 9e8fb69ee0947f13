"""Other operators' databases that somebody made: which there are, the claim that comes closest, what it applies."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

from apis import names
from composer.kinds.catalog import Catalog, KindFacts, catalog
from composer.render import schema
from composer.render.child_metadata import external_names
from composer.render.operators.table import KINDS as OPERATOR_KINDS
from fairlead.annotate import annotate
from fairlead.cluster import connected, current_namespace, every_object, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.imports.adopting import Adopted, Preview
from fairlead.imports.candidates import candidates
from fairlead.imports.fitting import Candidate, Difference, Fit, Wanted, best_fit, children_of, differences, fields_of
from fairlead.imports.following import Followed
from fairlead.imports.thing import Thing
from fairlead.imports.unmanaged import Unmanaged
from fairlead.kube_options import Server
from runtime.errors import NotFound
from runtime.kube import Kube
from runtime.objects import CRDS, Key, Object, Resource, dumps, key_of, labels_of, metadata, status_of, uid_of

_CLAIM: Final = "PostgreSQLInstance.database.fairlead.dev"
_LIMIT_SECONDS: Final = 60.0


async def find(pattern: str, namespace: str | None, server: Server) -> tuple[Unmanaged, ...]:
    """List the objects with data of other operators that are no claim's, by kind, as `<namespace>/<name>`."""
    async with connected(server) as kube:
        kinds = await _operator_kinds(kube)
        return tuple([await _unclaimed(kube, facts.resource, pattern, namespace or "") for facts in kinds])


async def _operator_kinds(kube: Kube) -> list[KindFacts]:
    kinds = catalog([crd async for crd in every_object(kube, CRDS)])
    return [facts for name, facts in sorted(kinds.items()) if name in OPERATOR_KINDS and facts.stateful]


async def _unclaimed(kube: Kube, resource: Resource, pattern: str, namespace: str) -> Unmanaged:
    keys = [key_of(obj) async for obj in _objects(kube, resource, namespace)]
    things = (Thing(resource.kind, f"{key.namespace}/{key.name}") for key in sorted(keys))
    chosen = tuple(thing for thing in things if thing.is_called(pattern))
    return Unmanaged(f"{resource.plural}.{resource.group}", complete=True, things=chosen)


async def _objects(kube: Kube, resource: Resource, namespace: str) -> AsyncIterator[Object]:
    async for obj in every_object(kube, resource, namespace):
        if names.CLAIM_LABEL not in labels_of(obj):
            yield obj


async def fitted(reference: str, namespace: str | None, composition: str, server: Server) -> Fit:
    """Return the claim that changes least of an object. Raises CommandError where no Composition makes its kind."""
    async with connected(server) as kube:
        word, name = split_reference(reference)
        resource = await Discovery(kube).resource_named(word)
        live = await existing(kube, resource, Key(namespace or current_namespace(server), name))
        kinds = catalog([crd async for crd in every_object(kube, CRDS)])
        wanted = Wanted(resource, Thing(resource.kind, name), key_of(live).namespace, fields_of(live), {})
        claims = kinds[_CLAIM]
        fit = best_fit(wanted, await candidates(kube, composition), claims.resource, claims.schema or {})
    if fit is None:
        raise CommandError(f"no Composition makes one {resource.kind} of a claim", exit_code=Exit.INVALID_INPUT)
    return fit


async def preview(kube: Kube, resource: Resource, key: Key) -> Preview:
    """Return what taking over the objects that a claim's annotation names would apply. Raises CommandError."""
    claim = await existing(kube, resource, key)
    kinds = catalog([crd async for crd in every_object(kube, CRDS)])
    candidate = await _candidate_of(kube, claim)
    uids, changes, why = [], list[tuple[str, Difference]](), ""
    for (slot, _), name in external_names(claim).items():
        facts = _kind_of(candidate, slot, kinds)
        if facts is None or facts.managed:
            continue
        try:
            live = await kube.get(facts.resource, Key(key.namespace, name))
        except NotFound:
            why = f"{facts.resource.kind} {name} is not there"
            continue
        uids.append(uid_of(live))
        changes += [(f"{facts.resource.kind} {name}", item) for item in _applied(claim, candidate, kinds, slot, live)]
    texts = tuple(_change(of, difference) for of, difference in changes)
    return Preview(
        kind=resource.kind,
        namespace=key.namespace,
        name=key.name,
        incarnation=",".join(uids),
        agreement="" if why or not uids else hashlib.sha256(dumps([uids, texts])).hexdigest()[:16],
        ownership=(),
        changes=texts,
        total=len(texts),
        why=why or "its annotation names no other operator's object",
    )


def _change(of: str, difference: Difference) -> Mapping[str, str]:
    path, _, values = str(difference).partition(": ")
    observed, _, desired = values.partition(" -> ")
    return {"path": f"{of} spec.{path}", "observed": observed, "desired": desired, "when": "Now"}


def _applied(claim: Object, candidate: Candidate, kinds: Catalog, slot: str, live: Object) -> Iterator[Difference]:
    facts = _kind_of(candidate, slot, kinds)
    whole = next((facts.schema for facts in kinds.values() if facts.resource.kind == claim["kind"]), None) or {}
    places = {resource: name for (resource, _), name in external_names(claim).items()}
    if facts is None:
        return
    for child in children_of(schema.defaulted(claim, whole), candidate, facts.resource, places):
        if child.resource == slot:
            yield from differences(fields_of(live), fields_of(child.object))


def _kind_of(candidate: Candidate, slot: str, kinds: Catalog) -> KindFacts | None:
    template = next((entry["template"] for entry in candidate.spec["resources"] if entry["name"] == slot), None)
    if template is None:
        return None
    return kinds.get(f"{template['kind']}.{template['apiVersion'].partition('/')[0]}")


async def _candidate_of(kube: Kube, claim: Object) -> Candidate:
    chosen = (claim["spec"].get("compositionRef") or {}).get("name")
    name = chosen or (status_of(claim).get("composition") or {}).get("name")
    if not name:
        text = f"{claim['kind']} {metadata(claim)['name']} has no Composition yet; its conditions say why"
        raise CommandError(text, exit_code=Exit.NOT_READY)
    (candidate,) = await candidates(kube, str(name))
    return candidate


async def adopt(kube: Kube, resource: Resource, key: Key, agreed: str) -> Adopted:
    """Consent to taking over what a claim names, where it applies exactly what was agreed to; wait until it is done."""
    shown = await preview(kube, resource, key)
    if not shown.agreement or shown.agreement != agreed:
        other = f"it is {shown.agreement} now: look again" if shown.agreement else shown.why
        return Adopted(shown.called, f"not adopted: {agreed} is not what adopting it would do; {other}", Exit.REFUSED)
    await annotate(kube, resource, key, lambda _obj: {names.ADOPT: shown.incarnation})
    wanted = set(shown.incarnation.split(","))
    async with Followed.begin(kube, [(resource, key.namespace)]) as followed:
        claim = await followed.until(resource, key, lambda obj: wanted <= _made(obj), _LIMIT_SECONDS) or {}
    if wanted <= _made(claim):
        return Adopted(shown.called, "adopted", Exit.DONE)
    return Adopted(shown.called, "not adopted yet: its conditions say why", Exit.NOT_READY)


def _made(claim: Object) -> set[str]:
    return {str(entry.get("uid")) for entry in status_of(claim).get("inventory") or ()}
