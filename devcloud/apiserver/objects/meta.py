"""Metadata of objects: read, made whole and checked; after apimachinery's `api/validation` and `registry/rest`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from devcloud.apiserver.objects.refusals import Fault, forbidden_field, invalid, required, too_long
from runtime.objects import Object, dumps

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_MOST_NAME, _MOST_LABEL, _MOST_ANNOTATIONS = 253, 63, 256 * 1024
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_FIELDS: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
# What a request may not say of a new object.
_SYSTEM: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid", "selfLink")
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")

Names = Callable[[str], Iterator[str]]


def read(meta: Any) -> Object:
    """Return metadata as the API server keeps it: known fields, nothing empty."""
    made: Object = {name: meta[name] for name in _FIELDS if name in meta and not _is_empty(name, meta[name])}
    if "ownerReferences" in made:
        made["ownerReferences"] = [_owner(reference) for reference in made["ownerReferences"]]
    return made


def read_applied(meta: Any) -> Object:
    """Return metadata of a custom resource as an apply stores it: what is empty stays until the next write."""
    return read(meta) | {name: part for name, part in meta.items() if name in _FIELDS and part in (None, {}, [])}


def unknown(meta: Any) -> Iterator[str]:
    """Yield the paths of what metadata has no field for."""
    yield from (f"metadata.{name}" for name in meta if name not in _FIELDS)


def _is_empty(name: str, value: Any) -> bool:
    return value is None or value in ("", {}, []) or (value == 0 and name == "generation")


def _owner(reference: Object) -> Object:
    whole = {"apiVersion": "", "kind": "", "name": "", "uid": ""} | reference
    return {name: whole[name] for name in _OWNER_FIELDS if whole.get(name) is not None}


def without_system_fields(meta: Object) -> Object:
    """Return metadata of a request for a new object without what the server alone says."""
    return {name: part for name, part in meta.items() if name not in _SYSTEM}


def owners_once(meta: Object) -> Object:
    """Return metadata with each owner reference once."""
    references = meta.get("ownerReferences")
    if not references:
        return meta
    once = list({dumps(reference): reference for reference in references}.values())
    return meta if len(once) == len(references) else {**meta, "ownerReferences": once}


def subdomain(name: str) -> Iterator[str]:
    """Yield what is wrong with a name that is a DNS subdomain."""
    if len(name) > _MOST_NAME:
        yield f"must be no more than {_MOST_NAME} characters"
    if not _SUBDOMAIN.fullmatch(name):
        yield (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )


def any_name(name: str) -> Iterator[str]:
    """Yield what is wrong with a name that was taken before: nothing."""
    del name
    return iter(())


def label(name: str) -> Iterator[str]:
    """Yield what is wrong with a name that is a DNS label, as a namespace's is."""
    if len(name) > _MOST_LABEL:
        yield f"must be no more than {_MOST_LABEL} characters"
    if not _LABEL.fullmatch(name):
        yield (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        )


def config_key(key: str) -> Iterator[str]:
    """Yield what is wrong with a key of a ConfigMap or a Secret."""
    if len(key) > _MOST_NAME:
        yield f"must be no more than {_MOST_NAME} characters"
    if not _CONFIG_KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key == ".":
        yield "must not be '.'"
    if key == "..":
        yield "must not be '..'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def _qualified(name: str) -> Iterator[str]:
    prefix, slash, rest = name.rpartition("/")
    example = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"  # noqa: E501 - as it is answered
    alphabet = f"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character {example}"  # noqa: E501 - as it is answered
    if "/" in prefix:
        yield f"a qualified name {alphabet} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {message}" for message in subdomain(prefix))
    if not rest:
        yield "name part must be non-empty"
    elif len(rest) > _MOST_LABEL:
        yield f"name part must be no more than {_MOST_LABEL} characters"
    if not _QUALIFIED.fullmatch(rest):
        yield f"name part {alphabet}"


def _label_values(labels: dict[str, str]) -> Iterator[Fault]:
    field = "metadata.labels"
    for key, value in labels.items():
        yield from (invalid(field, key, message) for message in _qualified(key))
        if len(value) > _MOST_LABEL:
            yield invalid(field, value, f"must be no more than {_MOST_LABEL} characters")
        if not _VALUE.fullmatch(value):
            yield invalid(
                field,
                value,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
                "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            )


def _annotations(annotations: dict[str, str]) -> Iterator[Fault]:
    field = "metadata.annotations"
    for key in annotations:
        yield from (invalid(field, key, message) for message in _qualified(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MOST_ANNOTATIONS:
        yield too_long(field, _MOST_ANNOTATIONS)


def _owners(references: list[Object]) -> Iterator[Fault]:
    field, controller = "metadata.ownerReferences", ""
    for reference in references:
        if not reference["apiVersion"]:
            yield invalid(f"{field}.apiVersion", "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not reference[name]:
                yield invalid(f"{field}.{name}", "", "must not be empty")
        if (reference["apiVersion"], reference["kind"]) == ("v1", "Event"):
            yield invalid(field, reference, "/v1, Kind=Event is disallowed from being an owner")
        if reference.get("controller"):
            who = f"{reference['kind']}/{reference['name']}"
            if controller:
                yield invalid(
                    field,
                    references,
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {who}",
                )
            controller = controller or who


def _finalizers(finalizers: list[str]) -> Iterator[Fault]:
    field = "metadata.finalizers"
    for finalizer in finalizers:
        yield from (invalid(field, finalizer, message) for message in _qualified(finalizer))
    if FOREGROUND in finalizers and ORPHAN in finalizers:
        yield invalid(field, finalizers, f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set")


def legacy_finalizers(meta: Object) -> Iterator[Fault]:
    """Yield the finalizers that kinds of the core group refuse."""
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in (FOREGROUND, ORPHAN, "kubernetes"):
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, detail)


def _common(meta: Object) -> Iterator[Fault]:
    yield from _label_values(meta.get("labels") or {})
    yield from _annotations(meta.get("annotations") or {})
    yield from _owners(meta.get("ownerReferences") or [])


def faults(meta: Object, names: Names, *, is_namespaced: bool) -> Iterator[Fault]:
    """Yield what is wrong with the metadata of a new object."""
    name = meta.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from (invalid("metadata.name", name, message) for message in names(name))
    namespace = meta.get("namespace", "")
    if is_namespaced and not namespace:
        yield required("metadata.namespace")
    elif not is_namespaced and namespace:
        yield forbidden_field("metadata.namespace", "not allowed on this type")
    elif namespace:
        yield from (invalid("metadata.namespace", namespace, message) for message in label(namespace))
    yield from _common(meta)
    yield from _finalizers(meta.get("finalizers") or [])


def faults_of_update(meta: Object, old: Object) -> Iterator[Fault]:
    """Yield what is wrong with metadata after a change."""
    if "deletionTimestamp" in old:
        extra = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            listed = ", ".join(dumps(name).decode() for name in extra)
            yield forbidden_field(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}",
            )
    if not meta.get("resourceVersion"):
        yield invalid("metadata.resourceVersion", "", "must be specified for an update")
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if meta.get(name) != old.get(name):
            yield invalid(f"metadata.{name}", meta.get(name), "field is immutable")
    yield from _common(meta)
