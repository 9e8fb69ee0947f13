"""What happens to claims, to what is composed for them, and to the cloud, as people read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from devcloud.apiserver.watching import Change
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.simulation.published import logs_in
from runtime import clock
from runtime.objects import Object, Resource, metadata, status_of

LOOK_S: Final = 5.0
"""How often logins are tried."""
_CHANGES: Final = frozenset({"create", "change", "delete", "replace"})


class Line(msgspec.Struct, frozen=True):
    """One thing that happened: after how many seconds, to what, and how it is now."""

    at: float
    subject: str
    text: str


class Step(msgspec.Struct, frozen=True):
    """What came of one act, from `began` to `ended` in seconds.

    `failed_logins` is for how many seconds the login of a claim failed that had worked, `claims` how each is then.
    """

    act: str
    began: float
    ended: float
    lines: tuple[Line, ...]
    failed_logins: dict[str, float]
    claims: dict[str, str]


@dataclass(slots=True)
class Timeline:
    """Writes down what happens on a platform; `changed_at` is when something happened last."""

    platform: Platform
    lines: list[Line] = field(default_factory=list)
    changed_at: float = 0.0
    _failed: dict[str, float] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _worked: set[str] = field(default_factory=set)
    _calls: int = 0

    def listen(self, resource: Resource, change: Change) -> None:
        """Write down how an object is, where that is new."""
        obj = change.after if change.after is not None else change.before
        if obj is None or (resource != CLAIMS and resource not in self.platform.description.resources):
            return
        subject, text = name_of(obj), "gone" if change.after is None else conditions_in_words(obj)
        if text and self._texts.get(subject) != text:
            self._texts[subject] = text
            self.changed_at = clock.monotonic()
            self.lines.append(Line(self.changed_at, subject, text))

    def look(self) -> None:
        """Write down what was changed in the cloud, and try the logins of the claims."""
        history = self.platform.cloud.history
        for call in history[self._calls :]:
            role, _, verb = call.action.partition(".")
            if verb not in _CHANGES:
                continue
            place = "/".join(dict.fromkeys(filter(None, (call.server, call.name))))
            self.lines.append(Line(call.at, "cloud", f"{verb} {role} {place}{'' if call.principal else ', by itself'}"))
            self.changed_at = max(self.changed_at, call.at)
        self._calls = len(history)
        for key, claim in self.platform.server.all_of(CLAIMS).items():
            if logs_in(self.platform, claim):
                self._worked.add(str(key))
            elif str(key) in self._worked and "deletionTimestamp" not in metadata(claim):
                self._failed[str(key)] = self._failed.get(str(key), 0.0) + LOOK_S

    def step(self, act: str, began: float) -> Step:
        """Return what came of an act, and begin with the next one."""
        claims = {str(key): conditions_in_words(claim) for key, claim in self.platform.server.all_of(CLAIMS).items()}
        lines = tuple(sorted(self.lines, key=lambda line: line.at))
        step = Step(act, began, clock.monotonic(), lines, self._failed, claims)
        self.lines, self._failed = [], {}
        return step


def name_of(obj: Object) -> str:
    """Return kind, namespace and name of an object."""
    meta = metadata(obj)
    return f"{obj['kind']} {meta.get('namespace', '')}/{meta['name']}"


def conditions_in_words(obj: Object) -> str:
    """Return whether an object is Ready, and what speaks against it first; empty before anything is known of it."""
    conditions = {item["type"]: item for item in status_of(obj).get("conditions") or ()}
    ready = conditions.get("Ready")
    if ready is None:
        return ""
    against = [conditions[name] for name in ("Stalled", "Reconciling") if name in conditions]
    against += [item for item in conditions.values() if (item["type"], item["status"]) == ("Synced", "False")]
    cause = (against or [ready])[0]
    is_ready = "Ready" if ready["status"] == "True" else "not Ready"
    stalled = ", Stalled" if "Stalled" in conditions else ""
    return f"{is_ready}{stalled}: {cause['reason']}: {cause.get('message', '')}"
