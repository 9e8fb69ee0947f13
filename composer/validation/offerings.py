"""What claims may ask for by a Composition, computed by rendering claims with one field more. Pure.

The schema of the claims says what there is, the Composition's `offers` what is left of it, and the render of the
smallest claim with each value what becomes of it. A field that no expression reads changes nothing, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from composer.models import FieldOffering, OfferedField, OfferedValue, Offerings
from composer.render import environments
from composer.render.compiler import Compiled, compile_composition
from composer.render.errors import UNSUPPORTED_VALUE, CompositionError, Problem
from composer.render.offerings import narrowed, texts_of
from composer.render.schema import Schema, step
from composer.validation.groups import Trial
from composer.validation.offered_fields import BY_THE_COMPOSER
from composer.validation.samples import Sample, claim_with, samples, values_of
from composer.validation.trials import CHILDREN_OF_TRIALS, Trials
from composer.validation.validate import CheckRequest, claim_facts, claim_reads
from runtime.text import readable

__all__ = ["Offerings", "bounded", "offerings"]

_UNREAD: Final = "changes nothing: the Composition does not read it"
_NO_RESTORE: Final = "the Composition restores no backup"
_POLICY = "deletionPolicy"
_MOST_FIELDS, _MOST_VALUES, _MOST_REGIONS = 128, 256, 16
_TEXT, _LONG_TEXT, _SHORT_TEXT = 256, 400, 64
_PLACES = ("location", "region")


def offerings(request: CheckRequest) -> Offerings:
    """Return what claims may ask for by a Composition. Raises CompositionError where it is not right."""
    compiled = compile_composition(request.composition)
    claim = claim_facts(compiled, request.catalog)
    if isinstance(claim, Problem):
        raise CompositionError(claim)
    whole = step(claim.schema or {}, "spec") or {}
    trials = Trials(request.composition, compiled, claim, request.catalog, request.environments)
    return bounded(_Search(compiled, whole, trials, environments.read(request.environments)).run())


def bounded(whole: Offerings) -> Offerings:
    """Return offerings that a status has room for."""
    fields = tuple(_bounded(offered) for offered in whole.fields[:_MOST_FIELDS])
    regions = tuple(dict.fromkeys(readable(region, _SHORT_TEXT) for region in whole.regions))
    return Offerings(readable(whole.hash, _SHORT_TEXT), fields, regions[:_MOST_REGIONS])


def _bounded(offered: OfferedField) -> OfferedField:
    values = {readable(item.value, 253): readable(item.means, _TEXT) for item in offered.values[:_MOST_VALUES]}
    return msgspec.structs.replace(
        offered,
        path=readable(offered.path, 253),
        type=readable(offered.type, 16),
        default=readable(offered.default, _TEXT),
        values=tuple(OfferedValue(value, means) for value, means in values.items()),
        note=readable(offered.note, _LONG_TEXT),
        refused=readable(offered.refused, _LONG_TEXT),
    )


@dataclass(slots=True)
class _Search:
    """The trials of one Composition: `children` is how many more they may make."""

    compiled: Compiled
    schema: Schema
    trials: Trials
    settings: Mapping[str, Mapping[str, Any]]
    children: int = CHILDREN_OF_TRIALS
    notes: list[str] = field(default_factory=list)

    def run(self) -> Offerings:
        declared = self.compiled.spec.offerings
        schema = narrowed(self.schema, declared)
        reads = claim_reads(self.compiled)
        fields: list[OfferedField] = []
        for path, leaf, required in _leaves(self.schema):
            name = ".".join(path)
            if path[0] in BY_THE_COMPOSER and name != _POLICY:
                continue
            default = ", ".join(texts_of(leaf["default"])) if "default" in leaf else ""
            plain = OfferedField(name, str(leaf.get("type", "")), required, default)
            fields.append(self._field(plain, path, schema, reads))
        named = [name for name in declared if not any(_is_within(known.path, name) for known in fields)]
        fields += [_of_map(name, declared[name]) for name in named]
        # An API server has them by name: here first those that every claim has, then those with a table.
        fields.sort(key=lambda field: (not field.required, not any(item.means for item in field.values)))
        return Offerings(fields=tuple(fields), regions=self._regions(schema))

    def _field(
        self, plain: OfferedField, path: tuple[str, ...], schema: Schema, reads: frozenset[tuple[str | None, ...]]
    ) -> OfferedField:
        if plain.path == _POLICY:
            return _with_values(plain, self.compiled.spec.deletion_policies)
        refused = _refused(path, self.compiled.spec.offerings)
        if not refused and path[0] == "restoreFrom" and not _is_read(path[:1], reads):
            refused = _NO_RESTORE
        if refused:
            return msgspec.structs.replace(plain, refused=refused)
        if not _is_read(path, reads):
            return msgspec.structs.replace(plain, note=_UNREAD)
        leaf = _at(schema, path)
        declared = self.compiled.spec.offerings.get(plain.path, FieldOffering())
        offered = self._tried(_with_values(plain, declared.values), path, leaf, schema)
        note = next((note for note in self.notes if _concerns(note, plain.path)), "")
        self.notes.clear()
        return msgspec.structs.replace(offered, note=offered.note or note)

    def _tried(self, plain: OfferedField, path: tuple[str, ...], leaf: Schema, schema: Schema) -> OfferedField:
        outcomes = {_text(value): (value, self._trial(schema, path, value)) for value in values_of(leaf)}
        good = [value for value, trial in outcomes.values() if not _faults(trial)]
        bad = [_faults(trial) for _, trial in outcomes.values() if _faults(trial)]
        if not bad:
            listed = [_text(value) for value in leaf.get("enum") or ()]
            return self._ranged(self._listed(plain, listed), leaf.get("minimum"), leaf.get("maximum"))
        sentence = bad[0][0].message
        is_number = leaf.get("type") == "integer" and "enum" not in leaf
        if is_number and good:
            least, most = self._range(schema, path, leaf, good[0])
            return self._ranged(plain, least, most)
        if not good and ("enum" in leaf or is_number or bad[0][0].reason == UNSUPPORTED_VALUE):
            return msgspec.structs.replace(plain, values=(), refused=sentence)
        if leaf.get("type") in ("boolean", "string") and good:
            return msgspec.structs.replace(self._listed(plain, [_text(value) for value in good]), note=sentence)
        return msgspec.structs.replace(plain, note=f"not every value: {sentence}")

    def _trial(self, schema: Schema, path: tuple[str, ...], value: Any) -> Trial | None:
        """Try the smallest claim with a value; None where no such claim is allowed, or no time is left."""
        spec = claim_with(schema, path, value)
        if not spec or self.children <= 0:
            return None
        trial = self.trials.tried(Sample(".".join(path), spec))
        if trial.rendered is not None:
            self.children -= len(trial.rendered.children)
            notes = trial.rendered.status.get("notes")
            self.notes += [str(note) for note in notes] if isinstance(notes, list) else []
        return trial

    def _range(self, schema: Schema, path: tuple[str, ...], leaf: Schema, good: int) -> tuple[int, int]:
        """Return the least and the largest number that is served, from one that is."""
        ends = []
        for limit in (leaf.get("minimum", good), leaf.get("maximum", good)):
            served, refused = good, limit
            if not _faults(self._trial(schema, path, limit)):
                served = limit
            while abs(refused - served) > 1:
                middle = (served + refused) // 2
                if _faults(self._trial(schema, path, middle)):
                    refused = middle
                else:
                    served = middle
            ends.append(served)
        return ends[0], ends[1]

    def _listed(self, plain: OfferedField, values: Sequence[str]) -> OfferedField:
        """Return a field with its values, and the row of each in a table of the Composition or its environments."""
        if plain.values or not values:
            return plain
        trees = [
            *self.compiled.spec.variables.values(),
            *(table for data in self.settings.values() for table in data.values()),
        ]
        tables = (tree for tree in trees if isinstance(tree, Mapping))
        table = next((tree for tree in tables if all(isinstance(tree.get(value), Mapping) for value in values)), {})
        means = {value: _in_words(table.get(value) or {}) for value in values}
        return msgspec.structs.replace(plain, values=tuple(OfferedValue(value, means[value]) for value in values))

    def _ranged(self, plain: OfferedField, least: Any, most: Any) -> OfferedField:
        limits = {"minimum": least, "maximum": most}
        return msgspec.structs.replace(
            plain, **{name: limit for name, limit in limits.items() if isinstance(limit, int)}
        )

    def _regions(self, schema: Schema) -> tuple[str, ...]:
        """Return the regions that the children of the plainest claim name."""
        drafts = samples(schema)
        trial = self.trials.tried(next((draft for draft in drafts if draft.is_plain), drafts[0]))
        children = trial.rendered.children if trial.rendered else ()
        return tuple(sorted({place for child in children for place in _places(child.object.get("spec"))}))


def _leaves(
    schema: Schema, above: tuple[str, ...] = (), *, required: bool = True
) -> Iterator[tuple[tuple[str, ...], Schema, bool]]:
    """Yield each field that holds no fields, with its path, its schema and whether every claim has it."""
    for name, below in (schema.get("properties") or {}).items():
        is_required = required and name in (schema.get("required") or ())
        if below.get("properties"):
            yield from _leaves(below, (*above, name), required=is_required)
        else:
            yield (*above, name), below, is_required


def _at(schema: Schema, path: Sequence[str]) -> Schema:
    for name in path:
        schema = step(schema, name) or {}
    return schema


def _is_read(path: tuple[str, ...], reads: Iterable[tuple[str | None, ...]]) -> bool:
    """Return whether an expression reads the field, something in it, or something that it is in."""
    return any(
        all(mine == theirs or theirs is None for mine, theirs in zip(path, read, strict=False)) for read in reads
    )


def _refused(path: Sequence[str], declared: Mapping[str, FieldOffering]) -> str:
    above = (".".join(path[: count + 1]) for count in range(len(path)))
    return next((declared[name].refused for name in above if name in declared and declared[name].refused), "")


def _of_map(path: str, declared: FieldOffering) -> OfferedField:
    """Return what a Composition says of one name in a map."""
    offered = _with_values(OfferedField(path, "string", refused=declared.refused), declared.values)
    return msgspec.structs.replace(offered, minimum=declared.minimum, maximum=declared.maximum)


def _with_values(plain: OfferedField, values: Iterable[str]) -> OfferedField:
    return msgspec.structs.replace(plain, values=tuple(OfferedValue(value) for value in values))


def _faults(trial: Trial | None) -> tuple[Problem, ...]:
    return () if trial is None else (*trial.wrong, *trial.failed)


def _concerns(note: str, path: str) -> bool:
    """Return whether a note of a Composition begins with a field, or with one that it is in."""
    subject = note.split(" ", maxsplit=1)[0].rstrip(".:")
    return _is_within(path, subject)


def _is_within(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")


def _in_words(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value}"
        for name, value in row.items()
        if isinstance(value, int | float | str) and "{{" not in str(value)
    )


def _text(value: Any) -> str:
    return ", ".join(texts_of(value))


def _places(tree: Any) -> Iterator[str]:
    """Yield the texts of fields that are called a region or a location."""
    if isinstance(tree, Mapping):
        for name, item in tree.items():
            if name in _PLACES and isinstance(item, str):
                yield item
            yield from _places(item)
