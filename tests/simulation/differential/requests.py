"""Requests that two API servers get alike, in words that name no uid and no version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from devcloud.apiserver.json_patches import merged
from runtime.objects import Object, Resource

NO_UID: Final = "00000000-0000-4000-8000-000000000000"
CURRENT, OTHER, NONE = "current", "other", "none"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request.

    Attributes:
        verb: create, update, merge, json, apply, delete, get or list.
        kind: One of the kinds of the run.
        name: The object's name; empty for a list.
        body: What is sent: an object without what names it; of an update what changes from the object as it was last
            seen; of a patch the patch. A text `$uid:<kind>/<name>` stands for that object's uid.
        uid: The precondition: current, other, or nothing.
        version: The precondition or the object's version: current, other, none, or as the object has it.
        selection: Of a list: labels, fields, limit, metadata_only.
    """

    verb: str
    kind: str
    name: str = ""
    body: Any = None
    manager: str = "m1"
    force: bool = False
    subresource: str = ""
    strict: bool = False
    propagation: str = ""
    uid: str = ""
    version: str = ""
    selection: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the request as a table has it: what it says, and nothing else."""
        said = {name: value for name, value in vars(self).items() if value and (name, value) != ("manager", "m1")}
        return f"Request({', '.join(f'{name}={value!r}' for name, value in said.items())})"


@dataclass(frozen=True)
class Sequence:
    """Requests one after another, and the watch that sees what they do: a kind and labels."""

    requests: tuple[Request, ...]
    watched: tuple[str, str] = ("", "")


@dataclass
class Seen:
    """What one side has shown so far of the objects of a sequence, to speak of it in the next request."""

    namespace: str
    resources: dict[str, Resource]
    latest: dict[tuple[str, str], Object] = field(default_factory=dict)

    def note(self, kind: str, obj: Object) -> None:
        """Remember an object that an answer showed."""
        name = (obj.get("metadata") or {}).get("name")
        if name and obj.get("kind") == self.resources[kind].kind:
            self.latest[kind, name] = obj

    def uid(self, kind: str, name: str) -> str:
        """Return an object's uid as it was seen last."""
        known = self.latest.get((kind, name))
        return known["metadata"]["uid"] if known else NO_UID

    def resolved(self, value: Any) -> Any:
        """Return a body in which uids stand for themselves."""
        if isinstance(value, dict):
            return {name: self.resolved(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.resolved(part) for part in value]
        if isinstance(value, str) and value.startswith("$uid:"):
            kind, _, name = value.removeprefix("$uid:").partition("/")
            return self.uid(kind, name)
        return value

    def body(self, request: Request) -> Any:
        """Return what is sent."""
        body = self.resolved(request.body)
        match request.verb:
            case "create" | "apply":
                return self._versioned(request, self._named(request, body or {}))
            case "update":
                latest = self.latest.get((request.kind, request.name)) or self._named(request, {})
                return self._versioned(request, merged(latest, body or {}))
            case "merge" | "json":
                return body
            case "delete":
                return self._options(request)
            case _:
                return None

    def _named(self, request: Request, body: Object) -> Object:
        resource = self.resources[request.kind]
        names = {"name": request.name, "namespace": self.namespace}
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        return {**named, **body, "metadata": {**names, **(body.get("metadata") or {})}}

    def _versioned(self, request: Request, obj: Object) -> Object:
        metadata = dict(obj["metadata"])
        for name, choice in (("uid", request.uid), ("resourceVersion", request.version)):
            if choice == NONE:
                metadata.pop(name, None)
            elif choice:
                metadata[name] = self._choice(request, name, choice)
        return {**obj, "metadata": metadata}

    def _choice(self, request: Request, name: str, choice: str) -> str:
        known = self.latest.get((request.kind, request.name))
        if choice == CURRENT and known is not None:
            return str(known["metadata"][name])
        return NO_UID if name == "uid" else "1"

    def _options(self, request: Request) -> Object:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if request.propagation:
            options["propagationPolicy"] = request.propagation
        preconditions = {
            name: self._choice(request, name, choice)
            for name, choice in (("uid", request.uid), ("resourceVersion", request.version))
            if choice
        }
        return {**options, "preconditions": preconditions} if preconditions else options


Answer = tuple[int, Object]
Send = Callable[[Request], Answer]
