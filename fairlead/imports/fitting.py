"""Which claim, by which Composition, comes closest to what is there, and in what it still differs. Pure.

A claim says less than a cloud does: sizes are words, and a Composition fills in the rest. So each Composition is
rendered for each size, and the claim is taken whose child differs least from what was observed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from apis import names
from apis.identity import Identity
from composer.quantities import measured
from composer.render import schema
from composer.render.child_metadata import group_kind_of
from composer.render.errors import CompositionError
from composer.render.passwords import secret_names
from composer.render.render import Child, render
from composer.render.request import Request
from fairlead.imports.manifests import object_name
from fairlead.imports.thing import Thing
from runtime.objects import Object, Resource, dumps, metadata

_NO_UID: Final = "00000000-0000-0000-0000-000000000000"
# What the clouds call what a claim calls so: their words, first those of the instance itself.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "version": ("version", "engineVersion", "databaseVersion", "postgresql.version", "imageName"),
    "databaseName": ("databaseName", "dbName", "bootstrap.initdb.database"),
    "username": ("username", "masterUsername", "administratorLogin", "bootstrap.initdb.owner"),
    "storageGiB": (
        "allocatedStorage",
        "dataDiskSizeGb",
        "storageSizeGB",
        "storage.size",
        "volume.size",
        "settings.diskSize",
        "storage.storageSizeGB",
    ),
    "extensions": ("extensions",),
    "parameters": ("parameters", "databaseFlags"),
}
_OPTIONAL: Final = ("storageGiB", "parameters", "extensions")
_HIGH_AVAILABILITY: Final[Mapping[str, tuple[object, ...]]] = {
    "multiAz": (True,),
    "availabilityType": ("REGIONAL",),
    "highAvailabilityMode": ("ZoneRedundant", "SameZone"),
    "settings.availabilityType": ("REGIONAL",),
    "highAvailability.mode": ("ZoneRedundant", "SameZone"),
    "instances": (2, 3, 4, 5),
    "numberOfInstances": (2, 3, 4, 5),
}
_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that the claim's child would have otherwise than it is."""

    path: str
    observed: Any
    desired: Any

    def __str__(self) -> str:
        return f"{self.path}: {_text(self.observed)} -> {_text(self.desired)}"


@dataclass(frozen=True, slots=True)
class Fit:
    """A claim with the Composition that serves it, and in what its child differs from what is there.

    `made` are the other children that a provider would make for it, each by resource and kind.
    """

    claim: Object
    composition: str
    differences: tuple[Difference, ...]
    made: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Composition with the environments that it reads."""

    name: str
    spec: Object
    environments: Mapping[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a claim is sought for: a thing with the fields that were observed, and where the claim shall be."""

    resource: Resource
    thing: Thing
    namespace: str
    fields: Object
    others: Mapping[str, str]
    """Names in the cloud of what is inside the thing, by resource of the Composition."""
    password_secret: str = ""


def best_fit(
    wanted: Wanted, candidates: Iterable[Candidate], claims: Resource, claim_schema: schema.Schema
) -> Fit | None:
    """Return the claim that differs least, of equal ones the first; None where no Composition makes such a kind."""
    fits = (fit for candidate in candidates for fit in _fits(wanted, candidate, claims, claim_schema))
    return min(fits, key=_distance, default=None)


def _fits(wanted: Wanted, candidate: Candidate, claims: Resource, claim_schema: schema.Schema) -> Iterator[Fit]:
    reference = {"apiVersion": claims.api_version, "kind": claims.kind}
    made = [
        resource["name"]
        for resource in candidate.spec["resources"]
        if group_kind_of(resource["template"]) == wanted.resource.group_kind
    ]
    if candidate.spec["compositeTypeRef"] != reference or len(made) != 1:
        return
    places = {made[0]: wanted.thing.name, **wanted.others}
    for spec in _specs(wanted.fields, _inside(wanted.others), schema.step(claim_schema, "spec") or {}):
        claim = _claim(wanted, candidate.name, claims, spec, places)
        children = children_of(schema.defaulted(claim, claim_schema), candidate, wanted.resource, places)
        fields = [fields_of(child.object) for child in children if child.resource == made[0]]
        others = [child for child in children if child.resource not in places]
        if fields:
            yield Fit(
                claim,
                candidate.name,
                tuple(differences(wanted.fields, fields[0])),
                tuple((child.resource, str(child.object["kind"])) for child in others),
            )


def _distance(fit: Fit) -> tuple[int, int, float]:
    """Return how far a claim is from what is there: in fields that would shrink, in all fields, and in amounts."""
    amounts = [
        (float(difference.observed), float(difference.desired))
        for difference in fit.differences
        if _is_amount(difference.observed) and _is_amount(difference.desired)
    ]
    shrinking = sum(desired < observed for observed, desired in amounts)
    return shrinking, len(fit.differences), sum(abs(desired - observed) for observed, desired in amounts)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _claim(wanted: Wanted, composition: str, claims: Resource, spec: Object, places: Mapping[str, str]) -> Object:
    reference = {"passwordSecretRef": {"name": wanted.password_secret}} if wanted.password_secret else {}
    written = ",".join(f"{resource}={name}" for resource, name in places.items())
    return {
        "apiVersion": claims.api_version,
        "kind": claims.kind,
        "metadata": {
            "name": object_name(wanted.thing),
            "namespace": wanted.namespace,
            "annotations": {names.EXTERNAL_NAMES: written},
        },
        "spec": {"compositionRef": {"name": composition}, **spec, **reference},
    }


def _specs(fields: Object, inside: Object, below: schema.Schema) -> Iterator[Object]:
    """Yield what a claim may say, most alike first: each size, with and without what few Compositions candidate."""
    properties: Mapping[str, Any] = below.get("properties", {})
    sizes = (properties.get("size") or {}).get("enum") or []
    known = {word: value for word, value in (_claim_words(fields) | inside).items() if word in properties}
    whole = {"deletionPolicy": "Orphan", **known, "highAvailability": _is_highly_available(fields)}
    optional = [name for name in _OPTIONAL if name in whole]
    for count, size in itertools.product(range(len(optional) + 1), sizes):
        yield {**{name: value for name, value in whole.items() if name not in optional[:count]}, "size": size}


def _inside(others: Mapping[str, str]) -> Object:
    """Return what a claim calls what is inside of a server, by what the shipped Compositions call it."""
    words = {"database": "databaseName", "user": "username"}
    return {word: others[name].rpartition("/")[2] for name, word in words.items() if name in others}


def _claim_words(fields: Object) -> Object:
    values = {}
    for word, theirs in _WORDS.items():
        value = next((fields[name] for name in theirs if fields.get(name)), None)
        digits = _DIGITS.search(str(value)) if word == "version" else None
        if value is not None:
            values[word] = digits[0] if digits else value
            if word == "storageGiB" and isinstance(value, str):
                values[word] = _gib(value)
    return values


def _gib(quantity: str) -> int:
    amount = measured(quantity)
    return 1 if amount is None else math.ceil(amount / 2**30)


def _is_highly_available(fields: Object) -> bool:
    return any(fields.get(name) in values for name, values in _HIGH_AVAILABILITY.items())


def fields_of(obj: Object) -> Object:
    """Return the fields of an object that are compared: `forProvider` of ours; of others the spec, by dotted paths."""
    spec = obj.get("spec") or {}
    if names.is_managed(str(obj["apiVersion"]).partition("/")[0]):
        return dict(spec.get("forProvider") or {})
    return dict(_leaves(spec))


def _leaves(value: Object, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(item, Mapping) and item:
            yield from _leaves(dict(item), here)
        else:
            yield here, item


def children_of(claim: Object, candidate: Candidate, resource: Resource, places: Mapping[str, str]) -> list[Child]:
    """Return the children that a claim would have, none where the Composition refuses the claim.

    Where the object that is taken over is one of our providers', what other operators make is left out; where it is
    another operator's, it has its name in `places` already. What waits for others to be made is left out.
    """
    is_ours = names.is_managed(resource.group)
    identity = Identity(_NO_UID, metadata(claim)["namespace"], metadata(claim)["name"])
    request = Request(
        composition_name=candidate.name,
        composition=candidate.spec,
        claim=claim,
        identity=str(identity),
        environments=dict(candidate.environments),
        passwords=secret_names(candidate.spec, identity, claim),
        stateful_foreign=() if is_ours else (resource.group_kind,),
        adopted={} if is_ours else {name: {"": place} for name, place in places.items()},
    )
    try:
        children = render(request).children
    except CompositionError:
        return []
    return [child for child in children if not is_ours or names.is_managed(child.group_kind.partition(".")[2])]


def differences(observed: Object, desired: Object) -> Iterator[Difference]:
    """Yield the fields that are desired otherwise than they were observed."""
    for name, value in desired.items():
        if value is None or (isinstance(value, Mapping) and not observed.get(name) and not value):
            continue
        if dumps(observed.get(name)) != dumps(value):
            yield Difference(name, observed.get(name), value)


def _text(value: Any) -> str:
    return "unset" if value is None else dumps(value).decode().strip('"')
