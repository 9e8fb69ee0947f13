"""Answers, objects and events without what no two servers have in common: uids, versions, times, chance orders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.objects import Object, dumps, loads
from tests.simulation.differential.requests import Answer

_TIMES: Final = frozenset({"creationTimestamp", "deletionTimestamp"})
_VERSIONS: Final = re.compile(r"\((\d+)\)")
_STORE_KEY: Final = re.compile(r"Key: \S+,")


@dataclass
class Normal:
    """What one side has shown so far: the n-th uid of a name is `<name>#n`, the n-th version of an object `v<n>`."""

    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[tuple[str, str], str] = field(default_factory=dict)

    def answer(self, answer: Answer) -> Object:
        """Return an answer."""
        code, body = answer
        if "pages" in body:
            pages = [[_untyped(self.object(item)) for item in page] for page in body["pages"]]
            return {"code": code, "pages": pages}
        if body.get("kind") != "Status":
            return {"code": code, "object": self.object(body)}
        return {"code": code, "status": self._status(body)}

    def _status(self, body: Object) -> Object:
        details = body.get("details") or {}
        causes = [self._text(dumps(_brief(cause)).decode()) for cause in details.get("causes") or ()]
        message = "" if body.get("reason") == "Invalid" and causes else body.get("message", "")
        if "field not declared in schema" in message:
            # Which one of several is named, and what else is, is chance.
            message = f"{message.partition('): ')[0]}): field not declared in schema"
        lines = sorted(self._text(message).split("\n"))
        named = {name: details.get(name, "") for name in ("name", "group", "kind")}
        uid = self.uids.get(details.get("uid", ""), "")
        return {"reason": body.get("reason", ""), "message": lines, "causes": sorted(set(causes)), **named, "uid": uid}

    def _text(self, text: str) -> str:
        for uid, name in self.uids.items():
            text = text.replace(uid, name)
        return _STORE_KEY.sub("Key: <key>,", _VERSIONS.sub("(<version>)", text))

    def object(self, obj: Object) -> Object:
        """Return an object."""
        metadata = obj.get("metadata") or {}
        name = f"{obj.get('kind', '')}/{metadata.get('name', '')}"
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        if uid and uid not in self.uids:
            count = sum(1 for known in self.uids.values() if known.startswith(f"{name}#"))
            self.uids[uid] = f"{name}#{count + 1}"
        self.versions.setdefault((uid, version), f"v{sum(1 for known, _ in self.versions if known == uid) + 1}")
        shown = {part: self._value(part, value) for part, value in metadata.items()}
        shown |= {"uid": self.uids.get(uid, uid), "resourceVersion": self.versions[uid, version]}
        if "managedFields" in shown:
            entries = [self._entry(entry) for entry in metadata["managedFields"]]
            shown["managedFields"] = sorted(entries, key=lambda entry: [*entry.values()][:4])
        return {**obj, "metadata": shown}

    def _value(self, name: str, value: Any) -> Any:
        if name in _TIMES:
            return "<time>"
        if name == "ownerReferences":
            return [{**owner, "uid": self.uids.get(owner["uid"], owner["uid"])} for owner in value]
        return value

    def _entry(self, entry: Object) -> Object:
        text = dumps({"fields": entry.get("fieldsV1") or {}}).decode()
        for uid, name in self.uids.items():
            text = text.replace(uid, name)
        order = ("manager", "operation", "apiVersion", "subresource")
        return {
            **{name: entry.get(name, "") for name in order},
            "has_time": "time" in entry,
            "fields": loads(text.encode()),
        }

    def events(self, events: list[Object]) -> dict[str, list[Object]]:
        """Return events by the object that they are of."""
        by_name: dict[str, list[Object]] = {}
        for event in events:
            name = event["object"]["metadata"]["name"]
            by_name.setdefault(name, []).append({"type": event["type"], "object": self.object(event["object"])})
        return by_name


def _brief(cause: Object) -> Object:
    """Return a cause without the whole object that a refused patch is quoted as."""
    if cause.get("field") != "patch":
        return cause
    return {**cause, "message": cause["message"].rpartition("strict decoding error: ")[2]}


def _untyped(obj: Object) -> Object:
    """Return an object of a list without its kind: of some kinds the list alone says it."""
    return {name: part for name, part in obj.items() if name not in ("apiVersion", "kind")}


def differences(left: Any, right: Any, at: str = "") -> list[str]:
    """Return where two values differ, a line each."""
    if isinstance(left, dict) and isinstance(right, dict):
        lines = []
        for name in sorted(left | right):
            if name not in left or name not in right:
                side = "memory" if name in left else "real"
                lines.append(f"{at}.{name}: only {side} has {(left | right)[name]!r}")
            else:
                lines += differences(left[name], right[name], f"{at}.{name}")
        return lines
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            line
            for index, (part, other) in enumerate(zip(left, right, strict=True))
            for line in differences(part, other, f"{at}[{index}]")
        ]
    if left == right and isinstance(left, bool) == isinstance(right, bool):
        return []
    return [f"{at}: memory {left!r}, real {right!r}"]
