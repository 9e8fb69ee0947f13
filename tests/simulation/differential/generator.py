"""Sequences of requests by chance: several managers write the same few objects of one kind or two."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.objects import Object
from tests.simulation.differential.drawing import TEXTS, Drawing
from tests.simulation.differential.requests import CURRENT, NONE, OTHER, Request, Sequence
from tests.simulation.differential.worlds import World

_MANAGERS: Final = ("m1", "m2", "m3")
_NAMES: Final = ("a", "b", "c")
_COLLECTED: Final = ("ConfigMap", "Secret")
_VERBS: Final = {
    "create": 10, "apply": 28, "update": 10, "merge": 12, "json": 8, "delete": 8, "get": 2, "list": 4, "status": 12,
    "owned": 5, "finalizers": 7, "odd": 6,
}  # fmt: skip
_MAKES: Final = frozenset({"create", "apply"})


@dataclass
class Generator:
    """Draws sequences; `collects` says whether the garbage collector knows the kinds of the CRDs."""

    world: World
    chance: random.Random
    collects: bool = False
    _schemas: dict[str, Object] = field(default_factory=dict)
    _present: set[tuple[str, str]] = field(default_factory=set)
    _values: Drawing = field(init=False)

    def __post_init__(self) -> None:
        self._values = Drawing(self.chance)

    def sequence(self) -> Sequence:
        """Return a sequence."""
        custom = sorted(self.world.schemas)
        main = self.chance.choice(
            [*custom, *custom, "Thing", "Thing", "Thing", "Plain", "ConfigMap", "Secret", "Lease"]
        )
        other = self.chance.choice(_COLLECTED)
        self._schemas = {
            kind: self._values.narrowed(schema, 0)
            for kind, schema in self.world.schemas.items()
            if kind in (main, other)
        }
        kinds = [main, main, main, other]
        count = self.chance.randint(4, 14)
        self._present = set()
        requests = [self._noted(self._request(self.chance.choice(kinds))) for _ in range(count)]
        labels = self.chance.choice(["", "color=red", "color!=red", "color in (red,blue)", "!color"])
        return Sequence(tuple(requests), (main, labels))

    # Requests.

    def _request(self, kind: str) -> Request:
        verb = self.chance.choices(list(_VERBS), list(_VERBS.values()))[0]
        present = sorted(name for of, name in self._present if of == kind)
        if not present and verb not in _MAKES and self.chance.random() < 0.85:
            verb = self.chance.choice(["create", "apply"])
        name = self.chance.choice(_NAMES[: 2 if self.chance.random() < 0.8 else 3])
        if present and verb != "create" and self.chance.random() < 0.85:
            name = self.chance.choice(present)
        manager = self.chance.choice(_MANAGERS)
        common: Object = {"kind": kind, "name": name, "manager": manager}
        is_strict = self.chance.random() < 0.2
        draw: dict[str, Callable[[Object], Request]] = {
            "create": self._create,
            "apply": self._apply,
            "update": self._update,
            "merge": lambda said: Request(verb="merge", **said, body=self._change(kind), strict=is_strict),
            "json": lambda said: Request(verb="json", **said, body=self._operations(kind), strict=is_strict),
            "delete": self._delete,
            "get": lambda said: Request(verb="get", **said),
            "list": lambda said: Request(verb="list", kind=said["kind"], selection=self._selection()),
            "status": self._status,
            "owned": self._owned,
            "odd": self._odd,
            "finalizers": self._finalizers,
        }
        return draw[verb](common)

    def _create(self, common: Object) -> Request:
        return Request(verb="create", **common, body=self._body(common["kind"]), strict=self.chance.random() < 0.2)

    def _update(self, common: Object) -> Request:
        version = self.chance.choice(["", "", "", "", CURRENT, OTHER, NONE])
        uid = self.chance.choice(["", "", "", "", OTHER])
        return Request(
            verb="update",
            **common,
            body=self._change(common["kind"]),
            version=version,
            uid=uid,
            strict=self.chance.random() < 0.2,
        )

    def _noted(self, request: Request) -> Request:
        """Remember what there is likely to be after a request."""
        place = (request.kind, request.name)
        if request.verb in _MAKES and not request.subresource:
            self._present.add(place)
        elif request.verb == "delete" and self.chance.random() < 0.5:
            self._present.discard(place)
        return request

    def _apply(self, common: Object, subresource: str = "") -> Request:
        choice = self.chance.choice(["", "", "", "", "", CURRENT, OTHER])
        uid, version = (choice, "") if self.chance.random() < 0.5 else ("", choice)
        body = self._body(common["kind"])
        if subresource:
            body = {name: part for name, part in body.items() if name == "status" or self.chance.random() < 0.2}
        force = self.chance.random() < 0.4
        return Request(
            verb="apply", **common, body=body, force=force, subresource=subresource, uid=uid, version=version
        )

    def _status(self, common: Object) -> Request:
        kind = common["kind"]
        if kind not in self.world.schemas:
            return Request(verb="merge", **common, body=self._change(kind))
        verb = self.chance.choice(["apply", "apply", "merge", "update"])
        if verb == "apply":
            return self._apply(common, "status")
        body = {"status": self._change(kind).get("status", {})}
        return Request(verb=verb, **common, body=body, subresource="status")

    def _delete(self, common: Object) -> Request:
        policies = ["", "", "Background", "Foreground", "Orphan"]
        if common["kind"] not in _COLLECTED and not self.collects:
            policies = ["", "Background"]
        uid = self.chance.choice(["", "", "", CURRENT, OTHER])
        version = self.chance.choice(["", "", "", CURRENT, OTHER])
        propagation = self.chance.choice(policies)
        return Request(verb="delete", **common, propagation=propagation, uid=uid, version=version)

    def _owned(self, common: Object) -> Request:
        """Return a request that gives an object an owner, or takes it."""
        if common["kind"] not in _COLLECTED and not self.collects:
            return Request(verb="merge", **common, body=self._change(common["kind"]))
        owners = [self._owner() for _ in range(self.chance.choice([1, 1, 2]))]
        verb = self.chance.choice(["merge", "apply", "create"])
        body: Object = {"metadata": {"ownerReferences": owners}}
        if verb != "merge":
            body = {**self._body(common["kind"]), **body}
        return Request(verb=verb, **common, body=body, force=verb == "apply")

    def _owner(self) -> Object:
        kind = self.chance.choice(sorted(self.world.resources) if self.collects else _COLLECTED)
        name = self.chance.choice(_NAMES)
        reference: Object = {"apiVersion": self.world.resources[kind].api_version, "kind": kind, "name": name}
        reference["uid"] = f"$uid:{kind}/{name}"
        if self.chance.random() < 0.6:
            reference["blockOwnerDeletion"] = True
        return reference

    def _finalizers(self, common: Object) -> Request:
        finalizers = self.chance.choice([["x.dev/a"], ["x.dev/a", "x.dev/b"], ["x.dev/b"], [], [], None, ["bad name"]])
        return Request(verb="merge", **common, body={"metadata": {"finalizers": finalizers}})

    def _odd(self, common: Object) -> Request:
        """Return a request that few clients send."""
        body = self._body(common["kind"])
        metadata = body.get("metadata") or {}
        entries: Any = self.chance.choice([[], [{}], None, [{"manager": "m1", "operation": "Nothing"}]])
        odds: list[tuple[str, Object]] = [
            ("create", {"name": "Bad_Name"}),
            ("create", {"namespace": "elsewhere"}),
            ("create", {"resourceVersion": "1"}),
            ("create", {"labels": {"bad key": "x"}}),
            ("create", {"labels": {"k": "bad value"}}),
            ("create", {"annotations": {"Bad/Key/": "x"}}),
            ("apply", {"name": "other"}),
            ("apply", {"managedFields": []}),
            ("apply", {"labels": {"color": "x" * 64}}),
            ("update", {"managedFields": entries}),
            ("merge", {"managedFields": entries}),
            ("merge", {"managedFields": entries}),
            ("update", {"generation": 9, "creationTimestamp": None}),
            ("merge", {"generation": 9, "deletionGracePeriodSeconds": 7}),
            ("merge", {"uid": "00000000-0000-4000-8000-000000000000"}),
            ("merge", {"resourceVersion": "1"}),
            ("merge", {"unknown": "x"}),
            ("merge", {"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "x", "uid": "x"}]}),
        ]
        verb, odd = self.chance.choice(odds)
        return Request(verb=verb, **common, body={**body, "metadata": {**metadata, **odd}})

    def _selection(self) -> Object:
        labels = self.chance.choice(["", "", "color=red", "color!=red", "color", "!color", "color notin (red)"])
        fields = self.chance.choice(["", "", "", "metadata.name=a", "metadata.name!=a", "spec.size=1"])
        made = {"labels": labels, "fields": fields, "limit": self.chance.choice([0, 0, 1, 2])}
        made["metadata_only"] = self.chance.random() < 0.2
        return {name: value for name, value in made.items() if value}

    # Bodies.

    def _metadata(self) -> Object:
        made: Object = {}
        if self.chance.random() < 0.4:
            made["labels"] = {"color": self.chance.choice(["red", "blue"])}
        if self.chance.random() < 0.2:
            made["annotations"] = {self.chance.choice(["k", "x.dev/k"]): self.chance.choice(TEXTS)}
        if self.chance.random() < 0.1:
            made["finalizers"] = [self.chance.choice(["x.dev/a", "x.dev/b"])]
        return made

    def _body(self, kind: str) -> Object:
        metadata = self._metadata()
        body: Object = {"metadata": metadata} if metadata else {}
        if kind in self._schemas:
            for name in ("spec", "status"):
                part = self._schemas[kind]["properties"].get(name)
                if part is not None and (name == "spec" or self.chance.random() < 0.3):
                    body[name] = self._values.value(part, 1)
            return body
        return body | self._built_in(kind)

    def _built_in(self, kind: str) -> Object:
        texts = {key: self.chance.choice(TEXTS) for key in ("k", "l", "m") if self.chance.random() < 0.5}
        if kind == "Lease":
            spec: Object = {"holderIdentity": self.chance.choice(TEXTS)}
            if self.chance.random() < 0.6:
                spec["leaseDurationSeconds"] = self.chance.choice([15, 30, 0])
            if self.chance.random() < 0.4:
                spec["renewTime"] = self.chance.choice(["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:01.500000Z"])
            return {"spec": spec}
        if kind == "ConfigMap":
            made: Object = {"data": texts} if texts or self.chance.random() < 0.2 else {}
            return made | ({"immutable": True} if self.chance.random() < 0.05 else {})
        values = {key: self.chance.choice(["eA==", "eQ==", ""]) for key in ("k", "l") if self.chance.random() < 0.5}
        made = {"data": values} if values else {}
        made |= {"stringData": texts} if texts and self.chance.random() < 0.5 else {}
        return made | ({"type": self.chance.choice(["Opaque", "x.dev/y"])} if self.chance.random() < 0.2 else {})

    def _change(self, kind: str) -> Object:
        """Return a merge patch."""
        body = self._body(kind)
        return {name: self._values.with_nulls(part) for name, part in body.items()}

    def _operations(self, kind: str) -> list[Object]:
        operations = []
        for _ in range(self.chance.choice([1, 1, 2])):
            paths = list(_paths(self._body(kind), ""))
            path, value = self.chance.choice(paths) if paths else ("/metadata/labels", {"color": "red"})
            name = self.chance.choice(["add", "add", "replace", "remove", "test"])
            operations.append({"op": name, "path": path} | ({} if name == "remove" else {"value": value}))
        return operations


def _paths(value: Any, at: str) -> Any:
    """Yield all places of a body as JSON pointers, with what is there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        path = f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield path, part
        if isinstance(part, dict | list):
            yield from _paths(part, path)
