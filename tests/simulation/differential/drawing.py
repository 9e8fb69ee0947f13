"""Values of a schema by chance: mostly such as fit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from runtime.objects import Object
from tests.simulation.differential.patterns import matching

TEXTS: Final = ("x", "y", "zz")


@dataclass
class Drawing:
    """Draws values."""

    chance: random.Random

    def narrowed(self, schema: Object, depth: int) -> Object:
        """Return a schema with some of its fields, so that requests meet in them."""
        made = dict(schema)
        if "properties" in schema:
            required = schema.get("required") or ()
            share = 0.9 if depth < 2 else 0.35
            made["properties"] = {
                name: self.narrowed(part, depth + 1)
                for name, part in schema["properties"].items()
                if name in required or self.chance.random() < share
            }
        if isinstance(schema.get("items"), dict):
            made["items"] = self.narrowed(schema["items"], depth + 1)
        return made

    def with_nulls(self, value: Any) -> Any:
        """Return some of a value, some of it null, as a merge patch has it."""
        if not isinstance(value, dict):
            return value
        made = {}
        for name, part in value.items():
            draw = self.chance.random()
            if draw < 0.3:
                continue
            made[name] = None if draw < 0.4 else self.with_nulls(part)
        return made

    def value(self, schema: Object, depth: int) -> Any:  # noqa: PLR0911 - a table of types
        """Return a value of a schema: mostly one that fits."""
        draw = self.chance.random()
        if draw < 0.006:
            return self.chance.choice([7, "text", True, ["l"], {"m": 1}])
        if schema.get("enum"):
            return self.chance.choice(schema["enum"]) if draw < 0.97 else "Nothing"
        if schema.get("x-kubernetes-int-or-string"):
            return self.chance.choice([1, "one"])
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._text(schema)
            case "integer" | "number":
                least = schema.get("minimum", 0)
                return self.chance.choice([least, least + 1, least + 1, least + 2] + ([100000] if draw > 0.95 else []))
            case "boolean":
                return self.chance.random() < 0.5
            case _:
                return self.chance.choice([{"a": 1}, [1, 2], "free"])

    def _object(self, schema: Object, depth: int) -> Object:
        required, made = schema.get("required") or (), {}
        for name, part in (schema.get("properties") or {}).items():
            keep = 0.97 if name in required else 0.45
            if self.chance.random() < keep:
                made[name] = self.value(part, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            made |= {key: self.value(more, depth + 1) for key in ("k", "l", "m", "n") if self.chance.random() < 0.35}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            made |= self.chance.choice([{}, {"deep": {"er": 1}}, {"deep": {"er": 2, "est": [1]}}, {"size": 1}])
        elif self.chance.random() < 0.015:
            made["unknown"] = 1
        return made

    def _array(self, schema: Object, depth: int) -> list[Any]:
        items = [
            self.value(schema.get("items") or {}, depth + 1) for _ in range(self.chance.choice([0, 1, 1, 2, 2, 3]))
        ]
        if schema.get("x-kubernetes-list-type") == "set" and self.chance.random() < 0.95:
            return [item for index, item in enumerate(items) if item not in items[:index]]
        return items

    def _text(self, schema: Object) -> str:
        if schema.get("format") == "date-time":
            return self.chance.choice(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00", "yesterday"])
        if "pattern" in schema and self.chance.random() < 0.97:
            return matching(schema["pattern"], self.chance)
        return self.chance.choice([*TEXTS, "x" if schema.get("minLength") else ""])
