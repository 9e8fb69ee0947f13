"""What a live child says of itself, for a claim whose status was lost: its entry in the inventory, made anew. Pure."""

from __future__ import annotations

from apis import names
from composer.inventory import Entry, marks_of
from runtime.objects import Object, annotations_of, finalizers_of, key_of, metadata, uid_of


def says_stateful(child: Object) -> bool:
    """Tell whether a live child itself says that it holds data: by its annotation, or as only such a one is held."""
    meta, annotations = metadata(child), annotations_of(child)
    group = str(child["apiVersion"]).rpartition("/")[0]
    held = names.TEARDOWN_FINALIZER in finalizers_of(child) and not meta.get("ownerReferences")
    return annotations.get(names.STATEFUL) == "true" or (held and not names.is_managed(group))


def entry_of(child: Object, *, stateful: bool) -> Entry | None:
    """Make the entry of a child that was found by its label alone; None when its annotations are gone.

    `stateful`: its kind holds data. What else the status said of it, the child says itself.
    """
    annotations = annotations_of(child)
    resource = annotations.get(names.RESOURCE)
    if not resource:
        return None
    return Entry(
        resource=resource,
        key=annotations.get(names.FOR_EACH_KEY, ""),
        api_version=child["apiVersion"],
        kind=child["kind"],
        name=key_of(child).name,
        uid=uid_of(child),
        depends_on=tuple(filter(None, annotations.get(names.DEPENDS_ON, "").split(","))),
        stateful=stateful or says_stateful(child),
        marks=marks_of(child),
    )
