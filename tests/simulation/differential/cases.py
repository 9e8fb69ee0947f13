"""Sequences in which the API server in memory once differed from the real one, as short as they can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.differential.requests import NO_UID, Request, Sequence

_SPEC: Final = {"size": 2, "ratio": 1}

_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": NO_UID}


@dataclass(frozen=True)
class Case:
    """A sequence, the code of its last answer, and a text that this answer has."""

    words: str
    code: int
    text: str
    requests: tuple[Request, ...]
    watched: tuple[str, str] = ("", "")

    @property
    def sequence(self) -> Sequence:
        """The sequence as it is run."""
        return Sequence(self.requests, self.watched)


def _create(kind: str, name: str = "a", **body: Any) -> Request:
    return Request(verb="create", kind=kind, name=name, body=body)


def _apply(kind: str, manager: str = "m2", **body: Any) -> Request:
    return Request(verb="apply", kind=kind, name="a", manager=manager, body=body)


def _merge(kind: str, **body: Any) -> Request:
    return Request(verb="merge", kind=kind, name="a", body=body, manager="m3")


def _json(kind: str, *operations: tuple[str, str, Any]) -> Request:
    body = [{"op": op, "path": path, "value": value} for op, path, value in operations]
    return Request(verb="json", kind=kind, name="a", body=body)


CASES: Final = (
    Case(
        "a kind without a status has no status to be written",
        404,
        'plains.differential.dev \\"a\\" not found',
        (
            _create("Plain", spec=_SPEC),
            Request(verb="apply", kind="Plain", name="a", body={"spec": {"ratio": 2}}, subresource="status"),
        ),
    ),
    Case(
        "an apply of a number where a map belongs says so in Go's words",
        500,
        ".spec.names: expected map, got &{7}",
        (_apply("Thing", spec={"names": 7}),),
    ),
    Case(
        "an apply of a number where a text belongs says so in Go's words",
        500,
        ".spec.mode: expected string, got &value.valueUnstructured{Value:7}",
        (_apply("Thing", spec={"mode": 7}),),
    ),
    Case(
        "what leaves the labels of a watch is shown as it was when it was last among them",
        200,
        "red",
        (_create("Thing", spec={}), _merge("Thing", metadata={"labels": {"color": "red"}}, spec={"size": 9})),
        ("Thing", "color!=red"),
    ),
    Case(
        "a part that is always there is owned by nobody",
        201,
        '"f:spec":{"f:holderIdentity":{}}',
        (_create("Lease", spec={"holderIdentity": "x"}),),
    ),
    Case(
        "a number where a time belongs is no time",
        422,
        "must be of type date-time",
        (_create("Thing", spec={"since": 7}),),
    ),
    Case(
        "a list where a time belongs is not looked at",
        201,
        '"since":["x"]',
        (_create("Thing", spec={"since": ["x"]}),),
    ),
    Case(
        "nothing is applied to what has a list where a time belongs",
        500,
        "smd typed: .spec.since: expected any scalar, got &{[x]}",
        (_create("Thing", spec={"since": ["x"]}), _apply("Thing", spec={"size": 1})),
    ),
    Case(
        "a replacement that names a uid creates nothing",
        409,
        "Precondition failed: UID in precondition",
        (Request(verb="update", kind="Lease", name="a", body={"spec": {}}, uid="other"),),
    ),
    Case(
        "a JSON patch replaces in an object what is not there",
        200,
        '"k":"x"',
        (_create("Thing", spec={"names": {"l": "x"}}), _json("Thing", ("replace", "/spec/names/k", "x"))),
    ),
    Case(
        "a JSON patch that leaves no name is a bad request",
        400,
        "was undeterminable: name must be provided",
        (_create("Thing", spec={}), _json("Thing", ("add", "/metadata", {"labels": {}}))),
    ),
    Case(
        "a finalizer without a domain is refused by kinds of the core group",
        422,
        "neither a standard finalizer name nor is it fully qualified",
        (_create("ConfigMap"), _merge("ConfigMap", metadata={"finalizers": ["bad name"]})),
    ),
    Case(
        "a bad finalizer is refused in a change too",
        422,
        "name part must consist of alphanumeric characters",
        (_create("Thing", spec={}), _merge("Thing", metadata={"finalizers": ["bad name"]})),
    ),
    Case(
        "several fields that are not declared are one refusal",
        500,
        "field not declared in schema",
        (_apply("Plain", spec={"unknown": 1}),),
    ),
    Case(
        "an object as a key of a list is shown without its braces",
        500,
        ".status.conditions[type=m=1].type: expected string",
        (_apply("Thing", status={"conditions": [{"type": {"m": 1}}]}),),
    ),
    Case(
        "a list as a key of a list is shown with its brackets",
        500,
        '.status.conditions[type=[\\"l\\"]].type: expected string',
        (_apply("Thing", status={"conditions": [{"type": ["l"]}]}),),
    ),
    Case(
        "labels that an apply leaves empty are stored until the next write",
        200,
        '"resourceVersion":"v4"',
        (
            _create("Thing", spec={"mode": "Fast"}, metadata={"labels": {"color": "red"}}),
            Request(verb="apply", kind="Thing", name="a", body={"metadata": {"labels": {"color": "blue"}}}, force=True),
            Request(verb="apply", kind="Thing", name="a", body={"spec": {"either": 1}}),
            Request(verb="apply", kind="Thing", name="a", body={}, subresource="status"),
        ),
    ),
    Case(
        "an owner that is named twice is one owner",
        200,
        '"name":"x","uid":"00000000-0000-4000-8000-000000000000"}]',
        (
            _create("Secret"),
            _merge("Secret", metadata={"ownerReferences": [_OWNER, _OWNER]}),
        ),
    ),
    Case(
        "an empty list of managers resets those of a kind of the core group",
        200,
        '"data":{"k":"y"}',
        (_apply("ConfigMap", data={"k": "x"}), _merge("ConfigMap", data={"k": "y"}, metadata={"managedFields": []})),
    ),
    Case(
        "an empty list of managers resets nothing of a custom resource",
        200,
        '"manager":"m2"',
        (_apply("Thing", spec={"mode": "Fast"}), _merge("Thing", metadata={"managedFields": []})),
    ),
    Case(
        "one empty manager resets them",
        200,
        '"metadata"',
        (_apply("Thing", spec={"mode": "Fast"}), _merge("Thing", spec={"size": 1}, metadata={"managedFields": [{}]})),
    ),
    Case(
        "a version on a new object is refused after its values",
        422,
        "spec.mode",
        (_create("Thing", spec={"mode": 7}, metadata={"resourceVersion": "1"}),),
    ),
    Case(
        "a version on a new object is refused",
        500,
        "resourceVersion should not be set on objects to be created",
        (_create("Thing", spec={}, metadata={"resourceVersion": "1"}),),
    ),
    Case(
        "a field that is not selected by is refused in the words of its kind",
        400,
        '\\"spec.size\\" is not a known field selector',
        (Request(verb="list", kind="Lease", selection={"fields": "spec.size=1"}),),
    ),
    Case(
        "a field of a custom resource that is not selected by is refused",
        400,
        "field label not supported: spec.size",
        (Request(verb="list", kind="Thing", selection={"fields": "spec.size=1"}),),
    ),
    Case(
        "an apply that is all there already begins no time",
        200,
        '"has_time":false',
        (_create("Thing", spec={"mode": "Fast"}), _apply("Thing", spec={"mode": "Fast"})),
    ),
    Case(
        "conflicts are named by manager and by field",
        409,
        'Apply failed with 2 conflicts: conflicts with \\"m1\\" using differential.dev/v1:',
        (_create("Thing", spec={"mode": "Fast", "size": 1}), _apply("Thing", spec={"mode": "Slow", "size": 2})),
    ),
    Case(
        "a text for a Secret is owned as data where it was created and as text where it was applied",
        409,
        "conflict with",
        (
            _create("Secret", stringData={"k": "x"}),
            _apply("Secret", stringData={"l": "y"}),
            _apply("Secret", "m3", stringData={"l": "z"}, data={"k": "eQ=="}),
        ),
    ),
)
