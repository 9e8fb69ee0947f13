"""Changes of somebody else's in tables, a row for each mutable field of a kind: what becomes of each by its class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from providers.external.observation import Change, Class
from tests.architecture.tree import CRDS
from tests.support import yaml_texts


class Answer(Enum):
    """What becomes of a change of somebody else's."""

    CORRECTED = auto()
    """Put back at once, for it interrupts nobody."""
    HELD = auto()
    """Reported, and put back in the window."""
    LOSS = auto()
    """Reported; to put it back wants a consent."""
    IMPOSSIBLE = auto()
    """Reported; the cloud never takes it back."""
    LEFT = auto()
    """The cloud may do it by itself."""


_BY_CLASS = {
    Class.ONLINE: Answer.CORRECTED, Class.RESTART: Answer.HELD, Class.LOCKOUT: Answer.HELD, Class.LOSS: Answer.LOSS
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A field of the spec with its value, what somebody makes of it in the cloud's answer, and what becomes of that.

    `needs` are other fields without which the cloud would not take it.
    """

    path: str
    spec: Any
    theirs: Mapping[str, Any]
    answer: Answer = Answer.CORRECTED
    needs: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.path}={self.spec} {self.answer.name}"


def merged(body: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer, in which some values are others; members of an object that are not named stay."""
    for name, value in change.items():
        is_object = isinstance(value, Mapping) and isinstance(body.get(name), dict)
        body[name] = merged(body[name], value) if is_object else deepcopy(value)
    return body


def answer_to(path: str, changes: Iterable[Change], tolerated: Iterable[Change]) -> Answer:
    """Return what becomes of the change of one field; raises AssertionError where another field differs, too."""
    by_field = {change.path[0]: change for change in changes}
    change = by_field.pop(path, None)
    assert by_field == {}
    if change is None:
        assert path in {left.path[0] for left in tolerated}
        return Answer.LEFT
    return _BY_CLASS[change.kind] if change.veto is None else Answer.IMPOSSIBLE


def mutable_fields(crd: str, *, unfixed: Iterable[str] = (), elsewhere: Iterable[str] = ()) -> set[str]:
    """Return the fields of `forProvider` that the CRD's rules let an edit change, without those that are `elsewhere`.

    `unfixed` are fields that a rule names and lets change in one way.
    """
    spec = yaml_texts.load(CRDS / f"{crd}.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][
        "spec"
    ]
    rules = " ".join(rule["rule"] for rule in spec["x-kubernetes-validations"])
    fixed = set(re.findall(r"oldSelf\.forProvider\.(\w+)", rules)) - set(unfixed)
    return set(spec["properties"]["forProvider"]["properties"]) - fixed - set(elsewhere)
