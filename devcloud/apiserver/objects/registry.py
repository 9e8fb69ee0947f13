"""What is stored, and every way to change it; after apiserver's `endpoints/handlers` and `registry/generic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from devcloud.apiserver import schemas
from devcloud.apiserver.objects import kinds, managers, meta, refusals
from devcloud.apiserver.objects.built_in import BUILT_IN
from devcloud.apiserver.objects.changes import (
    Place,
    as_before,
    id_of,
    keep_system_fields,
    keep_times,
    other_uid,
    place_of,
    refuse_unknown,
    unknown_fields,
    unversioned,
)
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.objects.kinds import Kind
from devcloud.apiserver.watching import Change
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource, dumps, key_of

_OTHER_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
_LATE: Final = "the object has been modified; please apply your changes to the latest version and try again"


class Listener(Protocol):
    """Who is called with each change."""

    def __call__(self, resource: Resource, change: Change, /) -> None:
        """Take a change."""


@dataclass
class Registry:
    """All objects of one cluster; `now` is its wall clock, `uid` makes names that no other object has."""

    now: Callable[[], datetime]
    uid: Callable[[], str]
    version: int = 100
    objects: dict[Place, Object] = field(default_factory=dict)
    resources: dict[tuple[str, str], Resource] = field(default_factory=dict)
    listeners: list[Listener] = field(default_factory=list)
    _kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)
    # What was stored of an object where it is read otherwise: an apply stores nulls.
    _stored: dict[Place, Object] = field(default_factory=dict)

    # What is there.

    def kind(self, resource: Resource) -> Kind:
        """Return what is done with objects of a kind."""
        known = self._kinds.get(id_of(resource))
        if known is None:
            crd = self.find(CRDS, Key("", f"{resource.plural}.{resource.group}"))
            built_in = BUILT_IN.get(id_of(resource))
            known = kinds.of_crd(crd, resource) if crd is not None else built_in or kinds.anything(resource)
            self._kinds[id_of(resource)] = known
        return known

    def all_of(self, resource: Resource) -> dict[Key, Object]:
        """Return all objects of a kind by their keys."""
        return {place[2]: obj for place, obj in self.objects.items() if place[:2] == id_of(resource)}

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Return an object, None where there is none."""
        return self.objects.get((*id_of(resource), key))

    def existing(self, resource: Resource, key: Key) -> Object:
        """Return an object; raises RefusedError."""
        obj = self.find(resource, key)
        if obj is None:
            self.refuse_unserved(resource)
            raise refusals.not_found(resource, key.name)
        return obj

    def refuse_unserved(self, resource: Resource) -> None:
        """Raise RefusedError for a kind that is not served."""
        if id_of(resource) not in self.resources:
            raise refusals.not_served()

    # Requests.

    def created(self, resource: Resource, obj: Object, manager: str, *, namespace: str, is_strict: bool) -> Object:
        """Return an object as POST stores it."""
        self.refuse_unserved(resource)
        kind = self.kind(resource)
        if is_strict:
            refuse_unknown(kind, obj)
        made = kind.decode(obj)
        made["metadata"] = meta.owners_once(meta.without_system_fields(made["metadata"]))
        self._place(resource, made, namespace)
        entries = managers.update(kind.scope(), kind.bottom(), made, manager, self.moment())
        return self._create(kind, made, entries)

    def updated(
        self, resource: Resource, key: Key, obj: Object, manager: str, subresource: str = "", *, is_strict: bool = False
    ) -> Object:
        """Return an object as PUT stores it."""
        kind = self._written_kind(resource, key, subresource)
        if is_strict:
            refuse_unknown(kind, obj)
        sent = kind.decode(obj)
        sent["metadata"] = meta.owners_once(sent["metadata"])
        self._place(resource, sent, key.namespace)
        self._refuse_other_name(sent, key)
        live = self.find(resource, key)
        if live is None:
            if subresource or not kind.creates_on_update:
                raise refusals.not_found(resource, key.name)
            if sent["metadata"].get("uid"):
                raise refusals.conflict(resource, key.name, other_uid(resource, key, sent["metadata"]["uid"], ""))
            sent["metadata"].pop("resourceVersion", None)
            entries = managers.update(kind.scope(), kind.bottom(), sent, manager, self.moment())
            return self._create(kind, sent, entries)
        uid, present = sent["metadata"].get("uid"), live["metadata"]["uid"]
        if uid and uid != present:
            raise refusals.conflict(resource, key.name, other_uid(resource, key, uid, present))
        return self._update(kind, live, sent, manager, subresource)

    def patched(
        self,
        resource: Resource,
        key: Key,
        change: Callable[[Object], Any],
        manager: str,
        subresource: str = "",
        *,
        is_strict: bool = False,
    ) -> Object:
        """Return an object as a merge patch or a JSON patch leaves it; `change` makes it of the present one."""
        kind = self._written_kind(resource, key, subresource)
        live = self.existing(resource, key)
        patched = change(schemas.copied(live))
        if is_strict and (unknown := unknown_fields(kind, patched)):
            raise refusals.unfit("", "", "", [refusals.invalid("patch", dumps(patched).decode(), unknown)])
        sent = kind.decode(patched)
        self._place(resource, sent, key.namespace)
        self._refuse_other_name(sent, key)
        return self._update(kind, live, sent, manager, subresource)

    def applied(
        self, resource: Resource, key: Key, patch: Object, manager: str, *, force: bool, subresource: str = ""
    ) -> tuple[Object, bool]:
        """Return an object as a server-side apply leaves it, and whether it was created."""
        kind, live = self._written_kind(resource, key, subresource), self.find(resource, key)
        if live is None and subresource:
            raise refusals.not_found(resource, key.name)
        before = live or kind.bottom()
        writer = (manager, self.moment())
        result = managers.apply(kind.scope(subresource), before, schemas.copied(patch), writer, force=force)
        made = kind.applied(schemas.copied(result.obj) | {"metadata": result.obj.get("metadata") or {}})
        uid = made["metadata"].get("uid")
        if live is None and uid:
            detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise refusals.conflict(resource, key.name, detail)
        self._place(resource, made, key.namespace)
        self._refuse_other_name(made, key)
        made["metadata"] = meta.owners_once(made["metadata"])
        if live is None:
            made["metadata"].pop("resourceVersion", None)
            return self._create(kind, made, result.entries), True
        return self._store_change(kind, live, made, result.entries, subresource, is_whole=False), False

    # Their parts.

    def _written_kind(self, resource: Resource, key: Key, subresource: str) -> Kind:
        """Return the kind of an object that is written; raises RefusedError where it has no such subresource."""
        self.refuse_unserved(resource)
        kind = self.kind(resource)
        if subresource and not kind.has_status:
            raise refusals.not_found(resource, key.name)
        return kind

    def moment(self) -> str:
        """Return the time as objects have it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def reread(self, resource: Resource) -> None:
        """Show all objects of a kind as its schema is now; what is stored of them stays."""
        kind = self.kind(resource)
        for place in [place for place in self.objects if place[:2] == id_of(resource)]:
            stored = self._stored.get(place, self.objects[place])
            read = kind.stored(stored)
            self._stored.pop(place, None)
            if not is_same(read, stored):
                self._stored[place] = stored
            self.objects[place] = read

    def _place(self, resource: Resource, obj: Object, namespace: str) -> None:
        sent = obj["metadata"].get("namespace", "")
        if not resource.namespaced:
            obj["metadata"].pop("namespace", None)
        elif not sent:
            obj["metadata"]["namespace"] = namespace
        elif sent != namespace:
            raise refusals.bad_request(_OTHER_NAMESPACE)

    def _refuse_other_name(self, obj: Object, key: Key) -> None:
        name = obj["metadata"].get("name", "")
        if not name:
            raise refusals.bad_request(
                f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
            )
        if name != key.name:
            raise refusals.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({key.name})"
            )

    def _admit(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse to create what would be of a kind that ends, or in a namespace that is not there, or ends."""
        crd = self.find(CRDS, Key("", f"{resource.plural}.{resource.group}"))
        if crd is not None and "deletionTimestamp" in crd["metadata"]:
            detail = "create not allowed while custom resource definition is terminating"
            raise refusals.forbidden(resource, name, detail)
        if not resource.namespaced:
            return
        within = self.find(NAMESPACES, Key("", namespace))
        if within is None:
            raise refusals.not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in within["metadata"]:
            detail = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise refusals.forbidden(resource, name, detail, [cause])

    def _create(self, kind: Kind, obj: Object, entries: list[Object]) -> Object:
        resource, metadata = kind.resource, obj["metadata"]
        self._admit(resource, metadata.get("namespace", ""), metadata.get("name", ""))
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = f"{metadata['generateName']}{self.uid()[-5:]}"
        metadata |= {"uid": self.uid(), "creationTimestamp": self.moment(), "managedFields": entries}
        if not entries:
            del metadata["managedFields"]
        kind.prepare_create(obj)
        faults = list(kind.faults(obj))
        if faults:
            raise refusals.unfit(resource.group, resource.kind, metadata.get("name", ""), faults)
        if "resourceVersion" in metadata:
            raise refusals.internal("resourceVersion should not be set on objects to be created")
        taken = self.find(resource, key_of(obj))
        if taken is not None:
            is_ending = "deletionTimestamp" in taken["metadata"]
            raise refusals.already_exists(resource, metadata["name"], is_ending=is_ending)
        return self.store(resource, None, obj, is_whole=False)

    def _update(self, kind: Kind, live: Object, sent: Object, manager: str, subresource: str) -> Object:
        entries = managers.update(kind.scope(subresource), live, sent, manager, self.moment())
        return self._store_change(kind, live, sent, entries, subresource)

    def _store_change(
        self,
        kind: Kind,
        live: Object,
        sent: Object,
        entries: list[Object],
        subresource: str,
        *,
        is_whole: bool = True,
    ) -> Object:
        resource, former, name = kind.resource, live["metadata"], live["metadata"]["name"]
        metadata = meta.owners_once({**sent["metadata"], "managedFields": entries})
        if not entries:
            del metadata["managedFields"]
        version = metadata.get("resourceVersion", "")
        if not version:
            if not kind.updates_unconditionally:
                fault = refusals.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise refusals.unfit(resource.group, resource.plural, name, [fault])
            metadata["resourceVersion"] = former["resourceVersion"]
        elif version != former["resourceVersion"]:
            raise refusals.conflict(resource, name, _LATE)
        changed = kind.prepare_update({**sent, "metadata": as_before(metadata, former)}, live, subresource)
        keep_system_fields(changed["metadata"], former)
        faults = list(kind.faults_of_update(changed, live, subresource))
        if faults:
            raise refusals.unfit(resource.group, resource.kind, name, faults)
        keep_times(changed, live)
        if self._ends(resource, changed, former):
            self.drop(resource, live)
            return changed
        stored = self._stored.get(place_of(resource, live), live)
        if is_same(unversioned(stored), unversioned(changed)):
            return schemas.copied(live)
        return self.store(resource, live, changed, is_whole=is_whole)

    def _ends(self, resource: Resource, obj: Object, former: Object) -> bool:
        """Return whether an object goes with its last finalizer."""
        if "deletionTimestamp" not in former or obj["metadata"].get("finalizers"):
            return False
        held = resource == NAMESPACES and (obj.get("spec") or {}).get("finalizers")
        return not held and not former.get("deletionGracePeriodSeconds")

    # The store itself.

    def store(self, resource: Resource, before: Object | None, obj: Object, *, is_whole: bool = True) -> Object:
        """Write an object; return it as it is read: a new one, and what an apply left, is not whole as it is."""
        self.version += 1
        read = {**obj, "metadata": dict(obj["metadata"])} if is_whole else self.kind(resource).stored(obj)
        read["metadata"]["resourceVersion"] = str(self.version)
        place = place_of(resource, obj)
        self._stored.pop(place, None)
        if not is_whole and not is_same(unversioned(read), unversioned(obj)):
            self._stored[place] = obj
        self.objects[place] = read
        self.on_change(resource, Change(self.version, before, read))
        return schemas.copied(read)

    def drop(self, resource: Resource, obj: Object) -> None:
        """Have an object no more."""
        self.objects.pop(place_of(resource, obj), None)
        self._stored.pop(place_of(resource, obj), None)
        self.version += 1
        gone = schemas.copied(obj)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.on_change(resource, Change(self.version, gone, None))

    def on_change(self, resource: Resource, change: Change) -> None:
        """Pass on a change."""
        for listen in self.listeners:
            listen(resource, change)
