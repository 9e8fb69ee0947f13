"""A child that is made for what is in the cloud already: taken over by its claim, or made for it before. Pure.

The annotation `fairlead.dev/external-name` of a claim says what it takes over. Its value is `<resource>=<name in the
cloud>`, or `<resource>/<key>=<name>` of a resource with forEach, with commas between two. The name is written on the
child when that is first made, as its provider writes it on what it made itself; a provider makes nothing under a name
that a person wrote, and takes over only what a person then consents to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apis import names
from composer.models import CompositionSpec, ResourceTemplate
from composer.render.child_metadata import group_kind_of
from runtime.objects import Object

_MARK = names.EXTERNAL_NAME.removeprefix(names.PREFIX)


def external_references(annotations: Mapping[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the external reference with which a child is first made, by resource and forEach key."""
    references = {}
    for pair in _pairs(annotations):
        place, _, name = pair.partition("=")
        resource, _, key = place.strip().partition("/")
        references[resource, key] = {_MARK: name.strip()}
    return references


def import_problems(annotations: Mapping[str, str], composition: CompositionSpec) -> Iterator[str]:
    """Yield what is wrong with a claim's external names under a Composition, in sentences."""
    managed = sorted(resource.name for resource in composition.resources if _is_managed(resource))
    offered = f"; this Composition can take over: {', '.join(managed) or 'nothing'}"
    for pair in _pairs(annotations):
        place, is_pair, name = (part.strip() for part in pair.partition("="))
        resource = place.partition("/")[0]
        if not is_pair or not resource or not name:
            yield f"annotation {names.EXTERNAL_NAME}: '{pair}' is not RESOURCE=NAME{offered}"
        elif resource not in managed:
            yield f"annotation {names.EXTERNAL_NAME}: {resource} has no name in a cloud{offered}"


def recreated(obj: Object, external_reference: Mapping[str, str]) -> Object:
    """Return an object with the external reference and finalizer of its predecessor, by which its database is found."""
    meta = obj["metadata"]
    annotations = {names.PREFIX + mark: value for mark, value in external_reference.items()}
    finalizers = sorted({*meta.get("finalizers", ()), names.TEARDOWN_FINALIZER})
    return {
        **obj,
        "metadata": {**meta, "annotations": {**meta["annotations"], **annotations}, "finalizers": finalizers},
    }


def _pairs(annotations: Mapping[str, str]) -> list[str]:
    written = annotations.get(names.EXTERNAL_NAME, "")
    return [pair.strip() for pair in written.split(",")] if written.strip() else []


def _is_managed(resource: ResourceTemplate) -> bool:
    return names.is_managed(group_kind_of(resource.template).partition(".")[2])
