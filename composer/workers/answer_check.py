"""Whether what a template worker answers can be what its request renders to. Pure.

The second wall behind the worker's confinement: whoever takes a worker over reaches no other object than the claim's
own children, under their own names, with what the Composition writes out. What an expression gives is not computed
again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from apis.identity import Identity
from apis.names import is_managed, is_reserved
from composer.quantities import measured
from composer.render.errors import Problem
from composer.render.floors import reached
from composer.render.operators.table import is_current
from composer.render.render import CHILDREN_LIMIT, OUTPUT_LIMIT_BYTES, Child, Rendered
from composer.render.request import ChildBuilder, Request
from composer.render.values import VALUES_LIMIT, has_too_many_values
from composer.validation.offerings import Offerings, bounded
from runtime.objects import deleting, metadata

_BRACES = "{{"
_SHOWN_CHARACTERS = 64
# What stands around a result in an answer, in bytes and in values.
_AROUND = 64
_NO_FLOORS: frozenset[str] = frozenset()


class AnswerError(Exception):
    """An answer that no render of its request gives: the sentence says which part of it."""


class CheckedObjects:
    """The objects that were compared with their templates lately, by a digest of all that the comparison reads.

    Most renders of a claim give what the one before gave: one digest costs a tenth of the comparison.
    """

    def __init__(self, limit: int = 16_384) -> None:
        self._limit = limit
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests

    def add(self, digest: bytes) -> None:
        """Remember a comparison that found nothing; the oldest is forgotten when there are too many."""
        self._digests[digest] = None
        if len(self._digests) > self._limit:
            self._digests.popitem(last=False)


def refuse_foreign(request: Request, rendered: Rendered, checked: CheckedObjects | None = None) -> None:
    """Raise AnswerError unless everything in a result belongs to the claim and the Composition of the request."""
    try:
        _Check(request, CheckedObjects() if checked is None else checked).run(rendered)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise AnswerError(f"it has not the shape of a render ({type(error).__name__})") from error


def refuse_excess(answer: bytes) -> None:
    """Raise AnswerError when an answer that holds a result is larger than any result may be."""
    if len(answer) > OUTPUT_LIMIT_BYTES + _AROUND or has_too_many_values(answer, VALUES_LIMIT + _AROUND):
        raise AnswerError("it is larger than any render")


def refuse_strange(composition: Mapping[str, Any], problems: Iterable[Problem]) -> None:
    """Raise AnswerError unless these can be faults of a Composition: of its resources, each with a reason."""
    resources = composition.get("resources")
    names = (
        {resource.get("name") for resource in resources if isinstance(resource, dict)}
        if isinstance(resources, list)
        else set()
    )
    for problem in problems:
        if problem.resource not in {"", *names} or not _is_reason(problem.reason):
            raise AnswerError(f"{_shown(problem.reason)} of {_shown(problem.resource)} is no fault of this Composition")


def refuse_boundless(offerings: Offerings) -> None:
    """Raise AnswerError when a status has no room for what claims may ask for, or a reader would be misled by it."""
    if bounded(offerings) != offerings:
        raise AnswerError("its offers are larger than a status may have")


def _is_reason(text: str) -> bool:
    return text.isascii() and text.isalpha() and len(text) <= _SHOWN_CHARACTERS


class _Check:
    """One comparison of a result with its request."""

    def __init__(self, request: Request, checked: CheckedObjects) -> None:
        identity = Identity.parse(request.identity)
        if identity is None:
            raise AnswerError("there is a result for an identity that is none")
        self._request = request
        self._checked = checked
        self._resources: dict[str, Mapping[str, Any]] = {
            resource["name"]: resource for resource in request.composition["resources"]
        }
        self._builder = ChildBuilder(request, identity, request.composition.get("deletionPolicies") or ("Orphan",))
        self._live = {(observed.resource, observed.key): observed for observed in request.observed}

    def run(self, rendered: Rendered) -> None:
        if len(rendered.children) > CHILDREN_LIMIT or not (rendered.children or rendered.waiting):
            raise AnswerError(f"it has {len(rendered.children)} children")
        slots = {child.slot for child in rendered.children}
        objects = {(child.group_kind, child.name) for child in rendered.children}
        if not len(slots) == len(objects) == len(rendered.children):
            raise AnswerError("two of its children are one object")
        for child in rendered.children:
            self._child(child)
        self._refuse_left_out(rendered)
        for name in ("connection", "status"):
            _computed(self._request.composition.get(name) or {}, getattr(rendered, name), name)

    def _child(self, child: Child) -> None:
        if child.resource not in self._resources:
            raise AnswerError(f"there is no resource {_shown(child.resource)}")
        source = self._resources[child.resource]
        if bool(child.key) != bool(source.get("forEach")):
            raise AnswerError(f"{child.resource}: the key {_shown(child.key)} is no element of it")
        if child.stateful is not source.get("stateful"):
            raise AnswerError(f"{child.resource}: stateful is {child.stateful}")
        edges = set(child.depends_on)
        if child.resource in edges or not set(source.get("dependsOn") or ()) <= edges <= set(self._resources):
            raise AnswerError(f"{child.resource}: it depends on {_shown(child.depends_on)}")
        digest = self._digest(child, source)
        if digest not in self._checked:
            self._object(child, source)
            self._checked.add(digest)
        paths = source.get("floors") or ()
        if child.floors != reached(child.object, paths) or not {kept.path for kept in child.kept} <= set(paths):
            raise AnswerError(f"{child.resource}: its floors are not those of its fields")
        if child.ready and not self._may_be_ready(child, source):
            raise AnswerError(f"{child.resource}: it is called ready, and is not")

    def _digest(self, child: Child, source: Mapping[str, Any]) -> bytes:
        """Return a digest of all that `_object` reads, of the claim without what others write of it meanwhile."""
        request, claim = self._request, self._request.claim
        meta = metadata(claim)
        read = (
            (child.object, child.slot, child.depends_on, source, request.floors),
            (claim["apiVersion"], claim["kind"], meta["name"], meta.get("namespace"), meta.get("uid")),
            (meta.get("annotations"), claim.get("spec"), request.identity, request.composition_name),
            (request.composition.get("deletionPolicies"), request.origins, request.element_origins),
            (request.stateful_foreign, request.stateful_places, request.adopted),
        )
        return hashlib.blake2b(msgspec.json.encode(read), digest_size=16).digest()

    def _object(self, child: Child, source: Mapping[str, Any]) -> None:
        """Compare an object with what its template and the rule make of it.

        No more is taken from the answer than labels and annotations of the template, and what expressions give.
        """
        made, written = child.object, source["template"]
        plain = {**made, "metadata": {}}
        for part in ("labels", "annotations"):
            own = {name: text for name, text in made["metadata"][part].items() if not is_reserved(name)}
            plain["metadata"][part] = own
            in_template = (written.get("metadata") or {}).get(part) or {}
            _compare(in_template, own, f"{child.resource}: metadata.{part}")
        if is_managed(str(made["apiVersion"]).rpartition("/")[0]) and isinstance(made.get("spec"), dict):
            plain["spec"] = {name: item for name, item in made["spec"].items() if name != "deletionPolicy"}
        floors = frozenset(floor.path for floor in self._request.floors if floor.resource == child.resource)
        written, content = {**written, "metadata": None}, {**plain, "metadata": None}
        _compare(written, content, f"{child.resource}: ", floors)
        stateful = source.get("stateful") is True
        wanted = self._builder.build(child.slot, child.depends_on, plain, stateful=stateful, path=child.resource)
        for name in sorted({*wanted["metadata"], *made["metadata"]}):
            actual, expected = made["metadata"].get(name), wanted["metadata"].get(name)
            if actual != expected:
                text = f"metadata.{name} is {_shown(actual)} instead of {_shown(expected)}"
                raise AnswerError(f"{child.resource}: {text}")
        if wanted != made:
            raise AnswerError(f"{child.resource}: spec.deletionPolicy is not the one in force")

    def _may_be_ready(self, child: Child, source: Mapping[str, Any]) -> bool:
        seen = self._live.get(child.slot)
        if seen is None or source.get("readyWhen"):
            return seen is not None and not deleting(seen.object)
        return is_current(seen.object, is_silent=seen.is_silent)

    def _refuse_left_out(self, rendered: Rendered) -> None:
        made, waiting = {child.resource for child in rendered.children}, {held.resource for held in rendered.waiting}
        passwords = {f"passwords.{password['name']}" for password in self._request.composition.get("passwords") or ()}
        awaited = {held.waits_for for held in rendered.waiting} - passwords
        if made & waiting or not {*waiting, *awaited} <= set(self._resources):
            raise AnswerError("its resources do not wait for one another")
        for name, source in self._resources.items():
            if name not in made and name not in waiting and not (source.get("when") or source.get("forEach")):
                raise AnswerError(f"resource {name} is left out")


def _computed(tree: Mapping[str, Any], fields: Mapping[str, Any], path: str) -> None:
    """Compare the status or the connection, whose fields are left out while a part of them waits."""
    for name, item in fields.items():
        if name not in tree:
            raise AnswerError(f"{path}.{_shown(name)} is no field of it")
        _compare(tree[name], item, f"{path}.{name}")
    for name, item in tree.items():
        if name not in fields and item is not None and not _has_expression(item):
            raise AnswerError(f"{path}.{name} is left out")


def _has_expression(tree: Any) -> bool:
    match tree:
        case str():
            return _BRACES in tree
        case dict():
            return any(map(_has_expression, tree.values()))
        case list():
            return any(map(_has_expression, tree))
        case _:
            return False


def _compare(tree: Any, value: Any, path: str, floors: frozenset[str] = _NO_FLOORS) -> None:
    """Raise AnswerError where a value is not what its template writes out; an expression may give anything.

    A field in `floors` (paths below `path`) may be larger than it is written.
    """
    difference = _difference(tree, value, floors)
    if difference is not None:
        below, text = difference
        joint = "" if below.startswith("[") or path.endswith(" ") or not below else "."
        raise AnswerError(f"{path}{joint}{below} {text}")


def _difference(tree: Any, value: Any, floors: frozenset[str]) -> tuple[str, str] | None:
    """Return the path below and the text of the first difference. Every pass asks: paths are made for one alone."""
    if isinstance(tree, str):
        if _BRACES in tree or (isinstance(value, str) and tree == value):
            return None
    elif isinstance(tree, dict) and isinstance(value, dict):
        return _difference_of_fields(tree, value, floors)
    elif isinstance(tree, list) and isinstance(value, list) and len(tree) == len(value):
        for index, (below, item) in enumerate(zip(tree, value, strict=True)):
            difference = _difference(below, item, _NO_FLOORS)
            if difference is not None:
                return _below(f"[{index}]", difference)
        return None
    elif type(tree) is type(value) and tree == value:
        return None
    return "", f"is {_shown(value)} instead of {_shown(tree)}"


def _difference_of_fields(
    tree: dict[str, Any], value: dict[str, Any], floors: frozenset[str]
) -> tuple[str, str] | None:
    for name, item in value.items():
        written = tree.get(name)
        # Most fields are texts without floors: no call is spent on them.
        if not floors and isinstance(written, str) and (written == item or _BRACES in written):
            continue
        floors_below = floors and frozenset(path.partition(".")[2] for path in floors if path.partition(".")[0] == name)
        if "" in floors_below and measured(item) is not None:
            continue
        if name in tree or floors_below:
            difference = _difference(tree.get(name, {}), item, floors_below)
            if difference is not None:
                return _below(name, difference)
        else:
            return _shown(name), "is no field of its template"
    if len(value) != len(tree) or value.keys() != tree.keys():
        for name in tree.keys() - value.keys():
            if not (isinstance(tree[name], str) and _BRACES in tree[name]):
                return name, "is left out"
    return None


def _below(step: str, difference: tuple[str, str]) -> tuple[str, str]:
    path, text = difference
    return (f"{step}{path}" if not path or path.startswith("[") else f"{step}.{path}"), text


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN_CHARACTERS]
