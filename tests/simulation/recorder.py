"""Writes a life down: it listens to the API server, and looks at all there is each minute."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from apis import names
from apis.teardown import instruction_of
from devcloud.apiserver.watching import Change
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.simulation.published import connection_of, decoded, logs_in, secret_of
from runtime import clock
from runtime.objects import CRDS, EVENTS, SECRETS, Key, Object, Resource, dumps
from tests.simulation.cloud_acts import acts_in
from tests.simulation.history import CONNECTION, FORCED, PERSON, Ended, History, Sample, Statement

_CREDENTIALS: Final = "fairlead.dev/credentials"
_SHORTEST: Final = 16
# Parts of credentials that are no secret.
_OPEN: Final = frozenset({"ca.crt", "username"})
_KIND_DELETED: Final = "Detach, as its kind is deleted"
_ORPHAN: Final = "Orphan"
_ADMINISTRATORS: Final = "postgres"


class Recorder:
    """Writes a life down."""

    def __init__(self, platform: Platform) -> None:
        self.history = History(calls=platform.cloud.history)
        self._platform = platform
        self._about = platform.description
        self._acts = acts_in(self._about.name)
        self._passwords: set[str] = set()
        self._admitted: set[str] = set()
        platform.server.listeners.append(self._listen)

    async def run(self) -> None:
        """Look at all there is each minute."""
        while True:
            await asyncio.sleep(60)
            self.history.samples += self._samples()
            self.history.rollouts += self._rollouts()
            self.history.going += self._going()

    def end(self) -> History:
        """Return the history, with what is left in the cloud."""
        self.history.left |= self._platform.cloud.left()
        self.history.overlaps += [Statement(at, who, f"{holder} leads") for at, who, holder in self._platform.overlaps]
        self.history.until = clock.monotonic()
        return self.history

    def _listen(self, resource: Resource, change: Change) -> None:
        now, before, after = clock.monotonic(), change.before, change.after
        obj = after if after is not None else before
        assert obj is not None
        if resource in self._about.roles:
            self._note_end(now, resource, obj, is_gone=after is None)
        if resource == CLAIMS and after is None and FORCED not in (obj["metadata"].get("labels") or {}):
            self.history.claims[obj["metadata"]["uid"]] = _policy(obj)
        if resource in (CLAIMS, *self._about.roles):
            self._note_keepers(now, resource, obj)
        if resource == EVENTS:
            self._note_warning(now, obj)
        elif resource in (*self._about.resources, CLAIMS, SECRETS, names.COMPOSITIONS):
            self.history.writes.append(Statement(now, name_of(resource, obj), _writer(obj)))
        if before is not None and after is not None and 0 <= _observed(after) < _observed(before):
            self.history.backwards.append(
                Statement(now, name_of(resource, obj), f"{_observed(before)} {_observed(after)}")
            )
        self._listen_for_passwords(now, resource, obj)
        if resource == SECRETS and after is not None and after.get("type") == CONNECTION:
            self._note_login(now, before, after)

    def _note_end(self, now: float, resource: Resource, obj: Object, *, is_gone: bool) -> None:
        external = self._external(resource, obj)
        if is_gone:
            policy = _KIND_DELETED if self._goes(resource) else _policy(obj)
            self.history.ended.append(Ended(now, name_of(resource, obj), external, policy))
        if external and "deletionTimestamp" in obj["metadata"]:
            self.history.dying.setdefault(external, now)

    def _note_keepers(self, now: float, resource: Resource, obj: Object) -> None:
        meta, owners = obj["metadata"], _owners(obj)
        is_deleted = "deletionTimestamp" in meta and obj["spec"].get("deletionPolicy", _ORPHAN) != _ORPHAN
        if names.CONSENT in (meta.get("annotations") or {}) or (is_deleted and not owners):
            self.history.given_up.setdefault(meta["uid"], now)
        external = "" if resource == CLAIMS else self._external(resource, obj)
        if external:
            self.history.keepers.setdefault(external, set()).update({meta["uid"], *owners})

    def _note_login(self, now: float, before: Object | None, secret: Object) -> None:
        """Note a login that is published anew while its server refuses it; what a person writes is no login of ours."""
        if _writer(secret) == PERSON or _login_in(before) == _login_in(secret):
            return
        host, user, password, database = _login_in(secret)
        server = self._about.server_at(host)
        cloud = self._platform.cloud
        if not cloud.runs(server):
            return
        if cloud.admits(server, user, password, database):
            self._admitted.add(password)
        elif password not in self._admitted:
            # One that was the server's once is put back while another is on its way.
            self.history.unproven.append(Statement(now, f"{server}/{user}", name_of(SECRETS, secret)))

    def _goes(self, resource: Resource) -> bool:
        """Return whether a kind is being deleted: what is in the cloud is released with it."""
        crd = self._platform.server.find(CRDS, Key("", f"{resource.plural}.{resource.group}"))
        return crd is None or "deletionTimestamp" in crd["metadata"]

    def _external(self, resource: Resource, obj: Object) -> str:
        status, annotations = obj.get("status") or {}, obj["metadata"].get("annotations") or {}
        external = status.get("externalName") or annotations.get(names.EXTERNAL_NAME) or _target_of(status)
        return self._about.place_of(resource, str(external))

    def _note_warning(self, now: float, event: Object) -> None:
        if event.get("type") == "Warning":
            about = event.get("regarding") or {}
            name = f"{about.get('kind')} {about.get('namespace')}/{about.get('name')} {about.get('uid')}"
            self.history.warnings.append((now, f"{name}: {event.get('note', '')}"))

    def _listen_for_passwords(self, now: float, resource: Resource, obj: Object) -> None:
        if resource == SECRETS:
            if obj.get("type") == _CREDENTIALS:
                texts = {decoded(value) for name, value in (obj.get("data") or {}).items() if name not in _OPEN}
                self._passwords |= {text for text in texts if len(text) >= _SHORTEST}
            return
        text = dumps(obj).decode() if self._passwords else ""
        if any(password in text for password in self._passwords):
            self.history.exposed.append(Statement(now, name_of(resource, obj)))

    def _samples(self) -> Iterator[Sample]:
        for resource in (CLAIMS, *self._about.resources):
            for obj in self._platform.server.all_of(resource).values():
                yield self._sample(resource, obj)

    def _sample(self, resource: Resource, obj: Object) -> Sample:
        serves, incarnation = self._truth(resource, obj)
        ready = next((item["status"] for item in _conditions(obj) if item["type"] == "Ready"), "")
        return Sample(
            at=clock.monotonic(),
            name=name_of(resource, obj),
            external=self._login_of(obj) if resource == CLAIMS else self._external(resource, obj),
            ready=ready == "True",
            serves=serves,
            policy=_policy(obj),
            leaving="deletionTimestamp" in obj["metadata"],
            incarnation=incarnation,
            says=_said(obj),
            size=self._other_size(resource, obj),
            role=self._about.roles.get(resource, ""),
        )

    def _rollouts(self) -> Iterator[Statement]:
        for obj in self._platform.server.all_of(names.COMPOSITIONS).values():
            for item in _conditions(obj):
                if (item["type"], item["reason"]) == ("Synced", "RollingOut"):
                    yield Statement(clock.monotonic(), name_of(names.COMPOSITIONS, obj), item["message"])

    def _going(self) -> Iterator[Statement]:
        for key, crd in self._platform.server.all_of(CRDS).items():
            if "deletionTimestamp" in crd["metadata"]:
                plural = key.name.partition(".")[0]
                resource = next(resource for resource in self._about.resources if resource.plural == plural)
                present = sorted(self._platform.server.all_of(resource).items())
                waits = "; ".join(f"{of}: {_said(obj)}" for of, obj in present)
                yield Statement(clock.monotonic(), f"CRD {key.name}", waits)

    def _truth(self, resource: Resource, obj: Object) -> tuple[bool, int]:
        if resource == CLAIMS:
            return logs_in(self._platform, obj), 0
        external = self._external(resource, obj)
        server, _, inner = external.partition("/")
        if not self._platform.cloud.runs(server):
            return False, 0
        if self._about.roles[resource] == "databases":
            number = self._platform.cloud.number_of(server, inner)
            return number > 0 and (resource != self._about.login or self._logs_in(server, obj)), number
        if resource == self._about.login:
            return self._logs_in(server, obj), 0
        return external in self._platform.cloud.left(), 0

    def _other_size(self, resource: Resource, obj: Object) -> str:
        """Return what a spec asks of its size and what there is, where the two differ."""
        if resource == CLAIMS:
            children = self._platform.server.all_of(self._about.server).values()
            # In Azure a standby asks for a larger class.
            size = "" if obj["spec"].get("highAvailability") else obj["spec"].get("size", "")
            uid, wanted = obj["metadata"]["uid"], self._acts.sizes.get(size)
            present = [child["spec"]["forProvider"].get(self._acts.size) for child in children if uid in _owners(child)]
        else:
            server, _, inner = self._external(resource, obj).partition("/")
            place = f"{server}/{inner}" if inner else server
            is_there = resource == self._about.server and place in self._platform.cloud.left()
            wanted = obj["spec"]["forProvider"].get(self._acts.size)
            present = [self._platform.cloud.size_of(server, inner)] if is_there else []
        return "" if wanted in {None, *present} or not present else f"{wanted} is asked for, {present[0]} is there"

    def _logs_in(self, server: str, obj: Object) -> bool:
        """Return whether the login of an object is taken, a server's own by the database that every server has."""
        connection: Any = (obj.get("status") or {}).get("connection")
        if not connection:
            return False
        secret = secret_of(self._platform, obj, connection["passwordRef"]["name"])
        password = secret.get(connection["passwordRef"]["key"], "")
        database = "" if self._about.roles[self._about.login] == "servers" else connection.get("database")
        return self._platform.cloud.admits(server, connection["username"], password, database or _ADMINISTRATORS)

    def _login_of(self, claim: Object) -> str:
        secret = connection_of(self._platform, claim)
        return f"{self._about.server_at(secret.get('host', ''))}/{secret.get('username', '')}"


def _target_of(status: Object) -> str:
    """Return what the calls of an intent go to, which is known before any of them is sent."""
    calls = (status.get("intent") or {}).get("calls") or ()
    return str(calls[0].get("target", "")) if calls else ""


def name_of(resource: Resource, obj: Object) -> str:
    """Return what the history calls an object."""
    meta = obj["metadata"]
    return f"{resource.kind} {meta.get('namespace', '')}/{meta['name']} {meta['uid']}"


def _owners(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


def _login_in(secret: Object | None) -> tuple[str, ...]:
    data = (secret or {}).get("data") or {}
    return tuple(decoded(data.get(part, "")) for part in ("host", "username", "password", "database"))


def _policy(obj: Object) -> str:
    return str(instruction_of(obj) or obj["spec"].get("deletionPolicy", ""))


def _conditions(obj: Object) -> list[Object]:
    return sorted((obj.get("status") or {}).get("conditions") or (), key=lambda item: str(item["type"]))


def _said(obj: Object) -> str:
    items = _conditions(obj)
    return "; ".join(f"{item['type']} {item['status']} {item['reason']}: {item.get('message', '')}" for item in items)


def _observed(obj: Object) -> int:
    return int((obj.get("status") or {}).get("observedGeneration", -1))


def _writer(obj: Object) -> str:
    entries = obj["metadata"].get("managedFields") or ()
    latest: Object = max(entries, key=lambda entry: str(entry.get("time", "")), default={})
    return str(latest.get("manager", ""))
