"""Which Composition `fairlead render` takes, by the composer's own rules, and what it had to assume for that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UnsetType

from composer.claim.selection import admitted, choose
from composer.composition.revision import Candidate, candidates
from composer.models import ClaimSpec
from fairlead.exits import CommandError, Exit
from fairlead.yaml_files import Document, invalid
from runtime.objects import labels_of, metadata

_PART = r"[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?"
_LABEL = re.compile(rf"([a-z0-9.-]+/)?{_PART}=({_PART})?")
OPTION = "--namespace-labels"


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen Composition, and remarks on what was assumed of the claim's namespace."""

    composition: Document
    remarks: tuple[str, ...] = ()


def labels_in(text: str) -> dict[str, str]:
    """Return the labels of `NAME=VALUE,NAME=VALUE`. Raises CommandError (usage) for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not _LABEL.fullmatch(part):
            raise CommandError(f"{OPTION}: {part!r} is no label; write cloud=aws,team=shop", exit_code=Exit.USAGE)
    return dict(part.split("=", 1) for part in parts)


def select(claim_file: Document, compositions: Sequence[Document], home: Mapping[str, str] | None) -> Selection:
    """Choose the Composition of a claim; `home` holds the labels of its namespace, None where they are not known.

    Raises CommandError (invalid input) where none serves the claim, or several do.
    """
    claim = claim_file.content
    known = candidates((composition.content for composition in compositions), claim["apiVersion"], claim["kind"])
    spec = msgspec.convert(claim.get("spec") or {}, ClaimSpec)
    namespace = str(metadata(claim).get("namespace", "default"))
    served = known if home is None else admitted(known, "", namespace, home)
    chosen = choose(spec, "", labels_of(claim), home or {}, served)
    if not isinstance(chosen, str):
        remarks = () if home is not None else _by_labels(_rivals(known, "", labels_of(claim)), namespace)
        text = "; ".join((f"{chosen.message} [{chosen.reason}]", *remarks))
        raise invalid(claim_file.place("spec.compositionRef.name"), text)
    document = next(composition for composition in compositions if metadata(composition.content)["name"] == chosen)
    if home is not None:
        return Selection(document)
    is_named = not isinstance(spec.composition_ref, UnsetType) or not isinstance(spec.composition_selector, UnsetType)
    if is_named:
        return Selection(
            document, tuple(_of_fence(next(candidate for candidate in known if candidate.name == chosen), namespace))
        )
    return Selection(document, _by_labels(_rivals(known, chosen, labels_of(claim)), namespace, chosen))


def _rivals(known: Iterable[Candidate], chosen: str, labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the other Compositions that the labels of a namespace may lead to, with the labels that each asks for."""
    rules = {candidate.name: candidate.applies_to for candidate in known if candidate.applies_to is not None}
    lowest = rules[chosen].priority if chosen in rules else None
    return [
        (name, _written(rule.namespace_selector.match_labels))
        for name, rule in rules.items()
        if name != chosen
        and rule.namespace_selector.match_labels
        and rule.claim_selector.matches(dict(labels))
        and (lowest is None or rule.priority >= lowest)
    ]


def _by_labels(rivals: Sequence[tuple[str, str]], namespace: str, chosen: str = "") -> tuple[str, ...]:
    if not rivals:
        return ()
    others = ", ".join(f"{name} ({labels})" for name, labels in rivals)
    assumed = f", which gives Composition {chosen}" if chosen else ""
    text = (
        f"the labels of namespace {namespace} are not known here and taken for none{assumed}; with labels it may be "
        f"{others}: say {OPTION} {rivals[0][1]}, or put the Namespace beside the claim"
    )
    return (text,)


def _of_fence(candidate: Candidate, namespace: str) -> Iterable[str]:
    if not candidate.admits(namespace, {}):
        yield (
            f"the labels of namespace {namespace} are not known here: whether its claims may use Composition "
            f"{candidate.name} is not checked; say {OPTION}, or put the Namespace beside the claim"
        )


def _written(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
