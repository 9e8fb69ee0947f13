"""Which fields of another operator's kind a Composition may set, and which values a claim may give some of them. Pure.

A kind of the table has a list of fields; what is not on it is refused, unless the platform team allows it by annotation
`fairlead.dev/composable-fields` of the kind's CRD. What an operator runs, mounts and reads it does with its own rights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from apis import names
from composer.render.errors import Problem
from runtime import kubectl
from runtime.objects import Resource


@dataclass(frozen=True, slots=True)
class Own:
    """What belongs to a claim: its namespace, and the names of its objects and of its passwords' Secrets."""

    namespace: str
    names: frozenset[str]


Judge: TypeAlias = Callable[[str, Any, Own], str]
"""Return why a field of that name may not have a value of that claim; empty where it may."""

Fields: TypeAlias = Mapping[str, Judge | None]
"""By path: what may be set, with all that is below it. A last step `*` stands for each key of a map."""

_ANNOTATIONS: Final = "metadata.annotations"
_SHOWN_CHARACTERS: Final = 64

_WHY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("sidecars", "initContainers", "template", "plugins"), "it runs containers of its own choice"),
    **dict.fromkeys(("dockerImage", "imageCatalogRef"), "it runs an image of its own choice"),
    **dict.fromkeys(("env", "envFrom"), "it reads Secrets of the namespace into a pod"),
    **dict.fromkeys(("additionalVolumes", "projectedVolumeTemplate"), "it mounts paths of the node, or any Secret"),
    **dict.fromkeys(("serviceAccountTemplate", "identity", "monitoringRoleARN"), "it takes an identity in a cloud"),
    **dict.fromkeys(("superuserSecret", "managed", "preparedDatabases"), "it makes logins with all rights"),
    **dict.fromkeys(("clone", "standby", "cloneSource", "externalClusters", "recovery"), "it copies data of others"),
}


def fields_of(
    listed: str, judged: Mapping[str, Judge] | None = None, annotations: Collection[str] = ()
) -> dict[str, Judge | None]:
    """Return a table: paths below `spec`, of which `listed` take any value and `judged` some, and `annotations`."""
    made: dict[str, Judge | None] = {f"spec.{path}": None for path in listed.split()}
    made |= {f"spec.{path}": judge for path, judge in (judged or {}).items()}
    return made | dict.fromkeys((f"{_ANNOTATIONS}.{name}" for name in annotations), None)


def widened(text: str) -> tuple[str, ...]:
    """Return the fields that an annotation of a CRD allows, sorted."""
    return tuple(sorted({entry.strip() for entry in text.split(",")} - {""}))


@dataclass(frozen=True, slots=True)
class Fence:
    """The fields of one kind that may be set: its list, None where all may, and what the platform team added."""

    resource: Resource
    fields: Fields | None
    added: tuple[str, ...] = ()

    def refusals(self, obj: Mapping[str, Any], path: str, own: Own | None) -> Iterator[Problem]:
        """Yield what of an object, or of a template (`own` is None), may not be set; `path` is that of the template."""
        if self.fields is None and not self.added:
            return
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        for name, item in annotations.items():
            if not names.is_reserved(str(name)):
                yield from self._below(item, (_ANNOTATIONS, str(name)), f"{path}.{_ANNOTATIONS}.{name}", own)
        for name, item in obj.items():
            if name not in ("apiVersion", "kind", "metadata"):
                yield from self._below(item, ("", str(name)), f"{path}.{name}", own)

    def _below(self, item: Any, place: tuple[str, str], shown: str, own: Own | None) -> Iterator[Problem]:
        parent, name = place
        at = f"{parent}.{name}" if parent else name
        if item is None or self._is_added(at, item):
            return
        listed = at if at in self._fields else f"{parent}.*"
        is_listed, is_list = listed in self._fields, isinstance(item, list)
        if is_listed and (not is_list or self._fields[listed] is None or listed.endswith("*")):
            yield from self._judged(listed, name, item, shown, own)
        elif is_list and (is_listed or self._leads_on(at)):
            for index, element in enumerate(item):
                yield from self._below(element, place, f"{shown}[{index}]", own)
        elif isinstance(item, Mapping) and self._leads_on(at):
            for key, value in item.items():
                yield from self._below(value, (at, str(key)), f"{shown}.{key}", own)
        elif not (_is_expression(item) and self._leads_on(at)):
            yield self._refused(at, name, shown)

    @property
    def _fields(self) -> Fields:
        return self.fields or {}

    def _leads_on(self, at: str) -> bool:
        return any(path.startswith(f"{at}.") for path in (*self._fields, *self.added))

    def _is_added(self, at: str, item: Any) -> bool:
        """Return whether the platform team allowed a field: as a whole, or with values that begin with a text."""
        for entry in self.added:
            path, is_bound, beginning = entry.partition("=")
            if at == path or at.startswith(f"{path}."):
                return not is_bound or (isinstance(item, str) and item.startswith(beginning))
        return False

    def _judged(self, listed: str, name: str, item: Any, shown: str, own: Own | None) -> Iterator[Problem]:
        judge = self._fields[listed]
        if judge is None or own is None or _is_expression(item):
            return
        why = judge(name, item, own)
        if why:
            at = listed.removesuffix("*") + name if listed.endswith("*") else listed
            yield Problem("InvalidValue", f"{why}; {self._how(at)}", shown)

    def _refused(self, at: str, name: str, shown: str) -> Problem:
        why = _WHY.get(name, "what it reaches beside the claim's own database is not known")
        return Problem("TemplateForbidden", f"a Composition may not set this field: {why}; {self._how(at)}", shown)

    def _how(self, at: str) -> str:
        crd = f"crd/{self.resource.plural}.{self.resource.group}"
        fields = ",".join((*self.added, at))
        command = kubectl.annotate(crd, names.COMPOSABLE_FIELDS, fields, overwrites=bool(self.added))
        return f"the platform team allows it by {command}"


def _is_expression(item: Any) -> bool:
    """Return whether a part of a template is a text with expressions, of which it is not known what they give."""
    return not isinstance(item, str | bool | int | float | list | Mapping)


def shown(value: Any) -> str:
    """Return a value as a message shows it."""
    return repr(value)[:_SHOWN_CHARACTERS]
