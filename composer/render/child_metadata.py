"""What a child has beside its template: name, place, owner, our labels and annotations, deletion policy. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apis import names
from apis.identity import Identity, NameRule, connection_secret_name
from composer.models import Expressions
from composer.render.errors import CompositionError, Problem
from runtime.objects import Object, annotations_of, key_of, metadata


@dataclass(frozen=True, slots=True)
class Owning:
    """The claim that children belong to, and what all of them get of it.

    `deletion_policy` is the one in force: the claim's where its Composition offers it, else Orphan.
    """

    claim: Object
    identity: Identity
    composition: str
    deletion_policy: str


@dataclass(frozen=True, slots=True)
class Part:
    """One child's name and place: `made_as` is the resource it was made under, `path` that of its template.

    `needs` are the resources that go after it, by the names they were made under. `holds_data`: losing it would lose
    data, by its kind, by its Composition or as it once was.
    """

    name: str
    made_as: str
    key: str
    path: str
    needs: tuple[str, ...] = ()
    holds_data: bool = False


def external_names(claim: Object) -> dict[tuple[str, str], str]:
    """Return the names in the cloud of what a claim's first children are to stand for, by resource and forEach key.

    The platform team wrote `<resource>=<name>` or `<resource>/<key>=<name>`, with commas between.
    """
    entries = (entry.strip().partition("=") for entry in annotations_of(claim).get(names.EXTERNAL_NAMES, "").split(","))
    slots = ((slot.partition("/"), name) for slot, _, name in entries if slot)
    return {(resource, key): name for (resource, _, key), name in slots}


def group_kind_of(obj: Mapping[str, Any]) -> str:
    """Return `Kind.group` of an object or a template."""
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return f"{obj['kind']}.{group}" if group else str(obj["kind"])


def name_rule_of(composition: Expressions, resource: str) -> NameRule:
    """Return what a Composition's spec says of the names of a resource's objects."""
    written = next(source for source in composition["resources"] if source["name"] == resource)
    return NameRule(written.get("namePrefix", ""), written.get("nameLimit", 0))


def child_object(owning: Owning, part: Part, manifest: Object) -> Object:
    """Return a rendered template as the object that is written.

    Raises CompositionError when the template sets what follows from the claim.
    """
    meta, claim = metadata(manifest), owning.claim
    managed = names.is_managed(str(manifest["apiVersion"]).rpartition("/")[0])
    own: Object = {
        "name": part.name,
        "namespace": metadata(claim).get("namespace", ""),
        "labels": {**(meta.get("labels") or {}), names.CLAIM_LABEL: owning.identity.uid},
        "annotations": {**(meta.get("annotations") or {}), **_annotations(owning, part)},
    }
    if managed:
        own["annotations"] |= _connection_secret(claim)
    if part.holds_data and not managed:
        # The collector deletes all dependents at once under foreground deletion; this keeps the order ours.
        own["finalizers"] = [names.TEARDOWN_FINALIZER]
    else:
        own["ownerReferences"] = [_owner(claim)]
    rest = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
    if managed and isinstance(rest.get("spec"), Mapping):
        rest["spec"] = _with_policy(rest["spec"], owning, part)
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": own, **rest}


def _with_policy(spec: Mapping[str, Any], owning: Owning, part: Part) -> Object:
    """Return the spec with the deletion policy in force: its provider destroys nothing beyond that."""
    if "deletionPolicy" in spec:
        message = "follows from the claim's deletionPolicy and cannot be set"
        path = f"{part.path}.template.spec.deletionPolicy"
        raise CompositionError(Problem("TemplateForbidden", message, path, resource=part.made_as))
    return {**spec, "deletionPolicy": owning.deletion_policy}


def _annotations(owning: Owning, part: Part) -> dict[str, str]:
    annotations = {
        names.CLAIM_NAME: owning.identity.name,
        names.COMPOSITION: owning.composition,
        names.RESOURCE: part.made_as,
    }
    if part.key:
        annotations[names.FOR_EACH_KEY] = part.key
    if part.holds_data:
        annotations[names.STATEFUL] = "true"
    if part.needs:
        annotations[names.DEPENDS_ON] = ",".join(part.needs)
    if annotations_of(owning.claim).get(names.ADOPT) == "none":
        annotations[names.ADOPT] = "none"
    return annotations


def _connection_secret(claim: Object) -> dict[str, str]:
    """Return the annotation that names the connection Secret where its name does not follow from the claim's.

    Providers take a password whose credentials Secret is lost back from there.
    """
    key = key_of(claim)
    name = connection_secret_name(key.name, (claim.get("spec") or {}).get("connectionSecretName", ""))
    return {} if name == f"{key.name}-connection" else {names.CONNECTION_SECRET: name}


def _owner(claim: Object) -> Object:
    return {
        "apiVersion": claim["apiVersion"],
        "kind": claim["kind"],
        "name": metadata(claim)["name"],
        "uid": metadata(claim).get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
