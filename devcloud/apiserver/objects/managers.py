"""Who owns which fields of an object; after apimachinery's `managedfields` and structured-merge-diff's `merge`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from devcloud.apiserver.objects import refusals
from devcloud.apiserver.objects.atoms import ABSENT, Atom
from devcloud.apiserver.objects.compare import Comparison, compare, is_same
from devcloud.apiserver.objects.entries import Managers, Owned, Who, bare, decoded, encoded
from devcloud.apiserver.objects.field_sets import (
    NOTHING,
    FieldSet,
    difference,
    intersection,
    of_paths,
    shown,
    union,
    with_named,
)
from devcloud.apiserver.objects.merging import merged
from devcloud.apiserver.objects.typed import MistypedError, check, removed, to_set
from runtime.objects import Object, dumps

BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT: Final = "ancient-changes"
_MOST_UPDATERS: Final = 10
_META: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
# What no manager owns.
_STRIPPED: Final = of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _META)]
)


@dataclass(frozen=True, slots=True)
class Scope:
    """One way to write objects of a kind: its type, and what the way resets whatever is sent."""

    atom: Atom
    api_version: str
    kind: str
    subresource: str = ""
    reset: FieldSet = NOTHING
    bottom: Object = field(default_factory=dict)

    def who(self, manager: str, operation: str) -> Who:
        """Return the entry of a manager that writes this way."""
        version = "" if operation == "Apply" else self.api_version
        return Who(manager or "unknown", operation, version, self.subresource)

    def shown(self, obj: Object) -> str:
        """Return an object as messages of apply name it."""
        meta = obj.get("metadata") or {}
        group, _, version = self.api_version.rpartition("/")
        return f"{meta.get('namespace', '')}/{meta.get('name', '')}; {group}/{version}, Kind={self.kind}"


def _entries(obj: Object) -> list[Object] | None:
    entries: list[Object] | None = (obj.get("metadata") or {}).get("managedFields")
    return entries


def _live_or_sent(scope: Scope, live: Object, sent: Object) -> Managers:
    """Return the managers that an update starts from: those that were sent, where they can be read."""
    of_live = decoded(_entries(live) or ()) or {}
    if scope.subresource:
        return of_live
    entries = _entries(sent)
    if entries is not None and entries in ([], [{}]):
        return {}
    return decoded(entries or ()) or of_live


def update(scope: Scope, live: Object, sent: Object, manager: str, time: str) -> list[Object]:
    """Return managedFields after a write other than apply; `live` is empty at a creation."""
    managers = _live_or_sent(scope, live, sent)
    if not managers and (live.get("metadata") or {}).get("uid"):
        return []
    before, after = bare(live), bare(sent)
    try:
        check(scope.atom, after, allows_doubles=True)
        check(scope.atom, before, allows_doubles=True, fitting=after)
    except MistypedError:
        return []
    managers = _updated(scope, before, after, managers, (scope.who(manager, "Update"), time))
    return encoded(_capped(managers))


def _updated(scope: Scope, before: Object, after: Object, managers: Managers, writer: tuple[Who, str]) -> Managers:
    who, time = writer
    managers = _of_versions(scope, managers)
    comparison = compare(scope.atom, before, after).but(scope.reset)
    written = union(comparison.modified, comparison.added)
    managers = _taken(managers, comparison, managers)
    own = difference(written, _STRIPPED)
    if own:
        former = managers[who].fields if who in managers else NOTHING
        managers[who] = Owned(union(own, former), scope.api_version, time)
    return managers


def _of_versions(scope: Scope, managers: Managers) -> Managers:
    """Return the managers of versions that are served."""
    return {who: owned for who, owned in managers.items() if owned.api_version == scope.api_version}


def _taken(managers: Managers, comparison: Comparison, others: Iterable[Who]) -> Managers:
    """Return managers of which those others lost what a write changed."""
    lost = union(union(comparison.modified, comparison.added), comparison.removed)
    if not lost:
        return managers
    left: Managers = {}
    losers = frozenset(others)
    for who, owned in managers.items():
        fields = difference(owned.fields, lost) if who in losers else owned.fields
        if fields:
            left[who] = owned if fields is owned.fields else replace(owned, fields=fields)
    return left


def _capped(managers: Managers) -> Managers:
    """Merge the oldest updaters until there are no more than ten."""
    updaters = sorted((who for who in managers if who.operation == "Update"), key=lambda who: (managers[who].time, who))
    left = dict(managers)
    count = len(updaters)
    first: dict[str, Who] = {}
    for who in updaters:
        if count <= _MOST_UPDATERS:
            break
        owned = managers[who]
        bucket = Who(_ANCIENT, "Update", owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = who
            continue
        if bucket not in left:
            left[bucket] = left.pop(first[owned.api_version])
        left[bucket] = Owned(union(owned.fields, left[bucket].fields), owned.api_version, owned.time)
        del left[who]
        count -= 1
    return left


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply: the object, with its managedFields."""

    obj: Object
    entries: list[Object]


def apply(scope: Scope, live: Object, patch: Object, writer: tuple[str, str], *, force: bool) -> Applied:
    """Return what an apply makes of a live object, which is but apiVersion and kind where there is none.

    `writer` is the manager and the time; raises RefusedError.
    """
    manager, time = writer
    _refuse_kind(scope, patch)
    managers = decoded(_entries(live) or ()) or {}
    before = bare(live)
    if not managers:
        try:
            check(scope.atom, before)
        except MistypedError as error:
            text = f"failed to convert new object ({scope.shown(live)}) to smd typed: {error}"
            raise refusals.internal(f"failed to create manager for existing fields: {text}") from None
        managers = _updated(scope, scope.bottom, before, {}, (scope.who(BEFORE_FIRST_APPLY, "Update"), time))
    if (patch.get("metadata") or {}).get("managedFields") is not None:
        raise refusals.bad_request("metadata.managedFields must be nil")
    try:
        check(scope.atom, patch)
    except MistypedError as error:
        raise refusals.internal(f"failed to create typed patch object ({scope.shown(patch)}): {error}") from None
    return _merged(scope, before, patch, managers, (scope.who(manager, "Apply"), time), force=force)


def _refuse_kind(scope: Scope, patch: Object) -> None:
    version, kind = patch.get("apiVersion", ""), patch.get("kind", "")
    if (version, kind) != (scope.api_version, scope.kind):
        group, _, number = version.rpartition("/")
        raise refusals.bad_request(f"invalid object type: {group}/{number}, Kind={kind}")


def _merged(
    scope: Scope, live: Object, patch: Object, managers: Managers, writer: tuple[Who, str], *, force: bool
) -> Applied:
    who, time = writer
    managers = _of_versions(scope, managers)
    result: Any = merged(scope.atom, live, patch)
    last = managers.get(who)
    own = to_set(scope.atom, patch)
    if scope.reset:
        own = Comparison(added=own).but(scope.reset).added
    managers = {**managers, who: Owned(own, scope.api_version, "")}
    if last is not None and difference(last.fields, own):
        result = _pruned(scope.atom, result, managers, last.fields)
    comparison = compare(scope.atom, live, result).but(scope.reset)
    others = [other for other in managers if other != who]
    if not force:
        _refuse_conflicts(managers, others, union(comparison.modified, comparison.added))
    managers = _taken(managers, comparison, others)
    own = difference(own, _STRIPPED)
    is_changed = result is ABSENT or not is_same(live, result)
    managers.pop(who, None)
    if own:
        # An apply that changes no value renews no time, and begins none.
        kept = "" if last is None else last.time
        managers[who] = Owned(own, scope.api_version, time if is_changed else kept)
    return Applied(result, encoded(managers))


def _pruned(atom: Atom, result: Any, managers: Mapping[Who, Owned], last: FieldSet) -> Any:
    """Return what is left when what was applied last, and is now nobody's, is taken away."""
    last = with_named(last, atom)
    pruned = removed(atom, result, last)
    whole = with_named(to_set(atom, result), atom)
    owned = NOTHING
    for manager in managers.values():
        owned = union(owned, manager.fields)
    kept = union(with_named(to_set(atom, pruned), atom), with_named(owned, atom))
    pruned = removed(atom, result, difference(whole, kept))
    gone = difference(whole, with_named(to_set(atom, pruned), atom))
    return removed(atom, result, intersection(gone, last))


def _refuse_conflicts(managers: Managers, others: list[Who], written: FieldSet) -> None:
    met = []
    for who in sorted(others, key=_spelled):
        fields = intersection(managers[who].fields, written)
        met += [(_printed(who, managers[who]), shown(path)) for path in fields.paths()]
    if not met:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {printed}", "field": path}
        for printed, path in met
    ]
    if len(met) == 1:
        raise refusals.apply_conflict(f"Apply failed with 1 conflict: conflict with {met[0][0]}: {met[0][1]}", causes)
    lines = []
    for printed in dict.fromkeys(pair[0] for pair in met):
        lines += [f"conflicts with {printed}:", *(f"- {path}" for other, path in met if other == printed)]
    raise refusals.apply_conflict(f"Apply failed with {len(met)} conflicts: " + "\n".join(lines), causes)


def _spelled(who: Who) -> bytes:
    """Return an entry's key as the API server spells and sorts it."""
    parts = {"manager": who.manager, "operation": who.operation, "apiVersion": who.api_version}
    return dumps({name: text for name, text in (parts | {"subresource": who.subresource}).items() if text})


def _printed(who: Who, owned: Owned) -> str:
    text = refusals.quoted(who.manager)
    if who.subresource:
        text += f" with subresource {refusals.quoted(who.subresource)}"
    return f"{text} using {owned.api_version}" if who.operation == "Update" else text
