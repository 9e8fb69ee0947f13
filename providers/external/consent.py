"""What a person agreed to in annotations, and which of it was used already. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apis.names import ADOPT, CONSENT
from runtime.objects import Object, annotations_of, status_of

USED_CONSENTS = "usedConsents"

MOST_CONSENTS = 50
SERVER_ENTRY = "server"
"""The path of a consent that names a server of others: it counts for as long as it is there, and is never used up."""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the platform agreed to, in annotations; `used` are entries that are still there and count no more."""

    values: tuple[tuple[str, str], ...] = ()
    adopt: str = ""
    used: tuple[tuple[str, str], ...] = ()

    def to(self, path: str, value: str) -> bool:
        """Return whether `path=value` was consented to."""
        return (path, value) in self.values

    def again(self, path: str, value: str) -> str:
        """Return what to add to a request for a consent that was given and used before, else nothing."""
        if (path, value) not in self.used:
            return ""
        return " (the one that is there was used already: take it away, and give it again)"

    def of(self, path: str) -> tuple[str, ...]:
        """Return the values that were consented to for a path."""
        return tuple(value for known, value in self.values if known == path)


NONE_GIVEN = Consent()


def consent_of(obj: Object) -> Consent:
    """Read what the platform agreed to and was not used yet; entries without `=` are ignored."""
    entries, used = consents_given(obj), used_consents(obj)
    values = tuple(entry for entry in entries if entry[0] != "adopt" and entry not in used)
    adopt = next((value for path, value in entries if path == "adopt" and (path, value) not in used), "")
    return Consent(values, adopt, tuple(entry for entry in entries if entry in used))


def consents_given(obj: Object) -> tuple[tuple[str, str], ...]:
    """Return all entries of the annotations, used or not; `adopt` is one of them."""
    annotations = annotations_of(obj)
    pairs = (entry.strip().partition("=") for entry in annotations.get(CONSENT, "").split(","))
    values = [
        (path.strip(), value.strip()) for path, separator, value in pairs if separator and path.strip() != "adopt"
    ]
    adopt = annotations.get(ADOPT, "")
    return (*values, ("adopt", adopt)) if adopt else tuple(values)


def used_consents(obj: Object) -> tuple[tuple[str, str], ...]:
    """Return the entries that the status says were used."""
    pairs = (str(entry).partition("=") for entry in status_of(obj).get(USED_CONSENTS) or ())
    return tuple((path, value) for path, _, value in pairs)


def adopts(value: str, incarnation: str) -> bool:
    """Return whether a value of the annotation `adopt` names an incarnation, with a hash behind it or without."""
    return value == incarnation or value.startswith(f"{incarnation}/")


def written_consents(obj: Object, used: Iterable[tuple[str, str]]) -> list[str]:
    """Return what the status says of used consents: those that are still in the annotations, and no others."""
    known = {*used, *used_consents(obj)}
    return sorted(f"{path}={value}" for path, value in consents_given(obj) if (path, value) in known)[:MOST_CONSENTS]
