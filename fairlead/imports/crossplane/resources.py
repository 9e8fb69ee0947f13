"""One resource of a Crossplane Composition as a resource of ours: its base, and the patches over it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.imports.crossplane.expressions import (
    NoPlaceError,
    expression_in_form,
    formatted,
    in_form,
    joined,
    literal,
    steps_of,
    transformed,
)
from fairlead.imports.crossplane.kinds import KindRule, Place
from runtime.objects import Object

_FIELDS: Final = ("spec", "forProvider")
_EXTERNAL: Final = ("metadata", "annotations", "crossplane.io/external-name")
# The composer says these, or the claim does.
_OF_ITSELF: Final = (
    ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("spec", "deletionPolicy"),
    ("spec", "writeConnectionSecretToRef"), ("spec", "publishConnectionDetailsTo"),
)  # fmt: skip
_KEPT: Final = (("spec", "providerConfigRef", "name"), ("metadata", "labels"))


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that a claim says, as the text within the braces."""

    text: str


class Reader:
    """What patches read: the composite resource, of which a claim is left here.

    `schema` is that of the claim's spec; `statuses` are the expressions that fill a field of its status.
    """

    def __init__(self, schema: Mapping[str, Any], statuses: Mapping[tuple[str, ...], str]) -> None:
        self._schema = schema
        self._statuses = statuses

    def read(self, path: str) -> tuple[str, str]:
        """Return the expression of a path, and the path that is asked whether it is there, empty where it always is.

        Raises NoPlaceError.
        """
        match steps_of(path):
            case "spec", "claimRef", ("name" | "namespace") as name:
                return f"claim.metadata.{name}", ""
            case "metadata", "labels", ("crossplane.io/claim-name" | "crossplane.io/claim-namespace") as label:
                return f"claim.metadata.{label.rpartition('-')[2]}", ""
            case "metadata", ("name" | "namespace" | "generateName") as name:
                return f"claim.metadata.{'name' if name == 'generateName' else name}", ""
            case "metadata", ("labels" | "annotations") as place, *steps:
                text = joined(f"claim.metadata.{place}", steps)
                return text, text
            case "spec", *steps if self._is_field(steps):
                text = joined("claim.spec", steps)
                return text, "" if self._is_always_there(steps) else text
            case "status", *steps if tuple(steps) in self._statuses:
                return self._statuses[tuple(steps)], ""
            case _:
                raise NoPlaceError(f"{path} of the composite resource is nothing that a claim has here")

    def _is_field(self, steps: Sequence[str]) -> bool:
        below: Any = self._schema
        for step in steps:
            if not below.get("properties"):
                return bool(below)
            below = below["properties"].get(step)
            if below is None:
                return False
        return bool(steps)

    def _is_always_there(self, steps: Sequence[str]) -> bool:
        below: Mapping[str, Any] = self._schema
        for step in steps:
            here = (below.get("properties") or {}).get(step) or {}
            if step not in (below.get("required") or ()) and "default" not in here:
                return False
            below = here
        return True


@dataclass
class Template:
    """A template of ours as it grows: values and expressions by their steps."""

    rule: KindRule
    siblings: Mapping[str, str]
    """The name of the only resource of a kind of ours in the Composition."""
    leaves: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def set(self, steps: tuple[str, ...], value: Any) -> None:
        """Set what Crossplane has at these steps. Raises NoPlaceError."""
        for place, form in self._places(steps):
            self.leaves[place] = (
                Expression(expression_in_form(value.text, form))
                if isinstance(value, Expression)
                else in_form(value, form)
            )

    def patch(self, steps: tuple[str, ...], text: str, asked_of: Sequence[str]) -> None:
        """Set an expression; without a path of `asked_of`, what was set before stays. Raises NoPlaceError."""
        for place, form in self._places(steps):
            formed = expression_in_form(text, form)
            if asked_of:
                before = self._before(place)
                otherwise = before.text if isinstance(before, Expression) else literal(before)
                condition = " and ".join(f"{path} is defined" for path in dict.fromkeys(asked_of))
                formed = f"({formed} if {condition} else {otherwise})"
            self.leaves[place] = Expression(formed)

    def _before(self, place: tuple[str, ...]) -> Any:
        """Return what is set at a place so far, by itself or as part of a map."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.leaves:
                value = self.leaves[place[:length]]
                for step in place[length:]:
                    value = value.get(step) if isinstance(value, Mapping) else None
                return value
        return None

    def takes(self, steps: tuple[str, ...]) -> bool:
        """Return whether something is to be set for what Crossplane has at these steps. Raises NoPlaceError."""
        return next(self._places(steps), None) is not None

    def _places(self, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        if any(steps[: len(own)] == own for own in _OF_ITSELF):
            return
        if any(steps[: len(kept)] == kept for kept in _KEPT):
            yield steps, ""
        elif steps == _EXTERNAL and self.rule.name:
            yield (*_FIELDS, self.rule.name), ""
        elif steps[:2] == _FIELDS:
            yield from self._fields(tuple(step for step in steps[2:] if not step.isdigit()))
        elif steps[:1] != ("metadata",):
            raise NoPlaceError(f"{'.'.join(steps)} has no place in {self.rule.kind}")

    def _fields(self, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        if not steps or ".".join(steps) in self.rule.unneeded or steps[0] in self.rule.unneeded:
            return
        for length in range(len(steps), 0, -1):
            places: tuple[Place, ...] = self.rule.fields.get(".".join(steps[:length]), ())
            for place in places:
                if steps[length:] and place.form:
                    raise NoPlaceError(f"{'.'.join(steps)}: an element of a list that is a map here")
                yield (*_FIELDS, *place.path.split("."), *steps[length:]), place.form
            if places:
                return
        reference = self.rule.references.get(steps[0].removesuffix("Selector").removesuffix("Ref"))
        if reference is not None:
            self._refer(*reference)
            return
        if steps[0].endswith(("Selector", "Ref", "Refs")):
            raise NoPlaceError(
                f"{steps[0]} leads to what has no kind here: set its name or id, or read it from an environment"
            )
        raise NoPlaceError(f"{'.'.join(steps)} has no place in {self.rule.kind}")

    def _refer(self, name: str, kind: str) -> None:
        if kind not in self.siblings:
            raise NoPlaceError(f"the {kind} that it refers to is not the only one of this Composition")
        self.leaves[(*_FIELDS, name, "name")] = Expression(f"resources.{self.siblings[kind]}.metadata.name")

    def sets(self, name: str) -> bool:
        """Return whether a field of `spec.forProvider` is set."""
        return any(steps[: len(_FIELDS) + 1] == (*_FIELDS, name) for steps in self.leaves)

    def tree(self) -> Object:
        """Return the template."""
        tree: Object = {"apiVersion": self.rule.api_version, "kind": self.rule.kind, "spec": {"forProvider": {}}}
        for steps, leaf in self.leaves.items():
            below = tree
            for step in steps[:-1]:
                below = below.setdefault(step, {})
            below[steps[-1]] = f"{{{{ {leaf.text} }}}}" if isinstance(leaf, Expression) else _copied(leaf)
        return tree


def _copied(value: Any) -> Any:
    return {name: _copied(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def flattened(value: Any, rule: KindRule, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the steps and the value of each field of a base that has a place of its own; lists of one block are it."""
    of_fields = ".".join(step for step in steps[2:] if not step.isdigit())
    is_whole = steps[:2] == _FIELDS and len(steps) > len(_FIELDS) and (
        of_fields in rule.fields or steps[2] in rule.unneeded or steps[2].endswith(("Selector", "Ref"))
    )  # fmt: skip
    if is_whole or not value:
        yield from [(steps, value)] if steps else []
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from flattened(item, rule, (*steps, str(name)))
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        yield from flattened(value[0], rule, (*steps, "0"))
    else:
        yield steps, value


def patched(template: Template, patch: Mapping[str, Any], reader: Reader) -> None:
    """Put one patch from the composite resource into a template. Raises NoPlaceError."""
    combine = patch.get("combine") or {}
    paths = [str(variable["fromFieldPath"]) for variable in combine.get("variables") or [patch]]
    target = steps_of(str(patch.get("toFieldPath") or paths[0]))
    if not template.takes(target):
        return
    reads = [reader.read(path) for path in paths]
    text = reads[0][0]
    if combine:
        text = formatted(str((combine.get("string") or {}).get("fmt", "")), [text for text, _ in reads])
    is_required = (patch.get("policy") or {}).get("fromFieldPath") == "Required"
    asked_of = [] if is_required else [path for _, path in reads if path]
    template.patch(target, transformed(text, patch.get("transforms") or ()), asked_of)
