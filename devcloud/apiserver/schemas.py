"""Shapes of custom resources: what is defaulted, what is dropped; after apiextensions' pruning and defaulting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from devcloud.apiserver.objects.atoms import Schema
from runtime.objects import dumps, loads

T = TypeVar("T")
_ROOTS: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(eq=False, slots=True)
class Shape:
    """What a value of a schema keeps and what it gets."""

    fields: dict[str, Shape] = field(default_factory=dict)
    more: Shape | None = None
    items: Shape | None = None
    keeps_unknown: bool = False
    is_nullable: bool = False
    default: bytes = b""
    is_plain: bool = False
    _defaults: tuple[tuple[str, Shape], ...] = ()

    def complete(self, value: Any) -> Any:
        """Return a copy of a value with its defaults, without what is unknown, and without nulls."""
        if isinstance(value, dict):
            return self._complete_fields(value)
        if isinstance(value, list):
            if self.items is None:
                return [NO_FIELDS.complete(part) for part in value] if not self.keeps_unknown else copied(value)
            if self.items.is_plain and None not in value:
                return [part if isinstance(part, str | int | float) else self.items.complete(part) for part in value]
            return [self.items.completed_part(part) for part in value]
        return value

    def completed_part(self, value: Any) -> Any:
        """Return a part of a value, its default where it is null and must not be."""
        if value is None and not self.is_nullable:
            return self.defaulted()
        return self.complete(value)

    def _complete_fields(self, value: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, part in value.items():
            below = self.fields.get(name, self.more)
            if below is None:
                if self.keeps_unknown:
                    made[name] = copied(part) if isinstance(part, dict | list) else part
                continue
            if part is None and not below.is_nullable:
                if below.default:
                    made[name] = below.defaulted()
            elif below.is_plain and not isinstance(part, dict | list):
                made[name] = part
            else:
                made[name] = below.complete(part)
        for name, below in self._defaults:
            if name not in made and value.get(name) is None:
                made[name] = below.defaulted()
        return made

    def defaulted(self) -> Any:
        """Return the default, whole; None where there is none."""
        return self.complete(loads(self.default)["default"]) if self.default else None

    def default_into(self, value: Any) -> Any:
        """Return a value with its defaults, and with all else that it has."""
        if isinstance(value, list):
            return [part if self.items is None else self.items.default_into(part) for part in value]
        if not isinstance(value, dict):
            return value
        made = {}
        for name, part in value.items():
            below = self.fields.get(name, self.more)
            if below is None:
                made[name] = part
            elif part is None and not below.is_nullable and below.default:
                made[name] = below.defaulted()
            else:
                made[name] = below.default_into(part)
        return made | {name: below.defaulted() for name, below in self._defaults if name not in made}

    def unknown(self, value: Any, path: str = "") -> Iterator[str]:
        """Yield the paths of what would be dropped as unknown."""
        if isinstance(value, list):
            for index, part in enumerate(value):
                yield from (self.items or NO_FIELDS).unknown(part, f"{path}[{index}]")
        elif isinstance(value, dict):
            for name, part in value.items():
                below, at = self.fields.get(name, self.more), f"{path}.{name}" if path else name
                if below is not None:
                    yield from below.unknown(part, at)
                elif not self.keeps_unknown and not (path == "" and name in _ROOTS):
                    yield at


NO_FIELDS: Final = Shape()


def shape_of(schema: Schema) -> Shape:
    """Return the shape of a structural schema."""
    more, items = schema.get("additionalProperties"), schema.get("items")
    fields = {name: shape_of(below) for name, below in (schema.get("properties") or {}).items()}
    return Shape(
        fields,
        shape_of(more) if isinstance(more, dict) else None,
        shape_of(items) if items is not None else None,
        bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        bool(schema.get("nullable")),
        dumps({"default": schema["default"]}) if schema.get("default") is not None else b"",
        not fields and more is None and items is None,
        tuple((name, below) for name, below in fields.items() if below.default),
    )


def copied(value: T) -> T:
    """Return a copy of JSON that shares nothing."""
    copy: T = loads(dumps({"value": value}))["value"]
    return copy
