"""Writes the connection Secret: by POST and PUT, never over another owner's, never emptied; with few reads.

What was verified once is verified again within a resync. Where a watch has the versions of the Secrets, that takes no
request: a Secret in the version that was read or written last has the content that it had then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from apis.connection import SecretRef
from composer.causes import Cause, cause
from composer.connection import secret as connection
from composer.connection.secret import Wanted
from runtime.changes import Change
from runtime.errors import AlreadyExists, NotFound
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, SECRETS, Key, Object, key_of, metadata, uid_of, version_of

VERIFY_EVERY = timedelta(minutes=10)
_SOONEST_S = 2.0


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of publishing a Secret. `changed`: it was written. `problem`: why it is not as it should be.

    `again`: it was not checked, and is to be within that time.
    """

    changed: bool = False
    problem: Cause | None = None
    again: timedelta | None = None


class WatchedSecrets(Protocol):
    """What watches have of the Secrets of namespaces."""

    def credentials(self, key: Key) -> Object | None:
        """Return a provider's Secret with its data; None where it is not watched."""

    def version(self, key: Key) -> str | None:
        """Return the resourceVersion of a Secret; None where it is not watched."""


class _Unwatched:
    def credentials(self, _key: Key) -> Object | None:
        return None

    def version(self, _key: Key) -> str | None:
        return None


class Publisher:
    """Keeps connection Secrets up to date; remembers which it has verified lately."""

    def __init__(
        self,
        kube: Kube,
        *,
        monotonic: Callable[[], float],
        manager: str,
        resync: timedelta = VERIFY_EVERY,
        watched: WatchedSecrets | None = None,
    ) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._manager = manager
        self._resync = resync.total_seconds()
        self._watched = watched or _Unwatched()
        self._verified: dict[Key, tuple[str, float]] = {}
        # By connection Secret: it and the Secrets that it is made of, in the versions in which they were verified.
        self._versions: dict[Key, dict[Key, str]] = {}
        self._looked: dict[Key, float] = {}
        self._incomplete: dict[Key, float] = {}
        self._written: dict[Key, str] = {}
        self._wants: dict[Key, Wanted] = {}
        self._readers: dict[Key, set[Key]] = {}
        self._by_claim: dict[Key, Key] = {}

    async def publish(
        self, want: Wanted, *, known_hash: str, is_requested: bool, was_not_owned: bool = False
    ) -> Publication:
        """Create or update the Secret. `known_hash` is that of the last publication, empty before the first.

        With nothing changed and a recent look at it, no request is made; `is_requested` looks in any case, and so does
        a change of another operator's object. From one look to the next it is one resync at most. `was_not_owned`:
        another owner's Secret had its name at the last pass: it is read before it is written.
        """
        verified = self._verified.get(want.key)
        is_seen = verified is not None and verified[0] == want.state
        if is_seen and want.hash == known_hash and not is_requested:
            since = self._since(want)
            if since < min(VERIFY_EVERY.total_seconds(), self._resync):
                return Publication(again=timedelta(seconds=self._resync - since))
        self._note(want)
        self._versions[want.key] = {}
        is_first = not known_hash and not was_not_owned
        values = await self._values(want, is_first=is_first)
        if isinstance(values, Cause):
            return Publication(problem=values, again=self._look_again(want.key))
        self._incomplete.pop(want.key, None)
        fresh = connection.secret_object(want, connection.entries(want, values))
        publication = await self._store(want, fresh, is_first=is_first)
        if publication.problem is None:
            self._verified[want.key] = (want.state, self._monotonic())
        return publication

    def _since(self, want: Wanted) -> float:
        """Return how long ago a Secret was verified, in seconds; it is so now where a watch has it unchanged."""
        now, (_, verified_at) = self._monotonic(), self._verified[want.key]
        if now - verified_at >= min(VERIFY_EVERY.total_seconds(), self._resync) and self._is_unchanged(want):
            self._verified[want.key] = (want.state, now)
            return 0.0
        return now - verified_at

    def _is_unchanged(self, want: Wanted) -> bool:
        """Return whether a watch has the connection Secret and all that it is made of as they were verified."""
        if any(ref.kind != "Secret" for ref in want.kept.values()):
            return False
        versions = self._versions.get(want.key, {})
        is_whole = {want.key, *(Key(want.key.namespace, ref.name) for ref in want.kept.values())} == versions.keys()
        return is_whole and all(self._watched.version(key) == version for key, version in versions.items())

    def _saw(self, want: Wanted, secret: Key, stored: Object) -> None:
        self._versions.setdefault(want.key, {})[secret] = version_of(stored)

    def _look_again(self, key: Key) -> timedelta:
        """Return when to check again what a Secret is made of: no watch sees what a provider restores."""
        waited = self._monotonic() - self._incomplete.setdefault(key, self._monotonic())
        return timedelta(seconds=min(max(_SOONEST_S, waited), self._resync))

    async def look(self, key: Key, identity: str, *, is_requested: bool) -> Cause | None:
        """Return why a published Secret cannot be used, None where it can; one request a resync at most.

        Raises Forbidden.
        """
        now, verified = self._monotonic(), self._verified.get(key)
        seen_at = max(verified[1] if verified else -math.inf, self._looked.get(key, -math.inf))
        if now - seen_at < min(VERIFY_EVERY.total_seconds(), self._resync) and not is_requested:
            return None
        self._verified.pop(key, None)
        self._looked.pop(key, None)
        try:
            stored = await self._kube.get(SECRETS, key)
        except NotFound:
            return _deleted(key)
        if not connection.is_ours(stored, identity):
            return _not_owned(key)
        self._looked[key] = now
        return None

    async def last_wanted(self, key: Key, claim: Key, identity: str) -> Wanted | Cause:
        """Return what a published Secret was made of last, after a start as it is stored; the cause where it is lost.

        Raises Forbidden.
        """
        if key in self._wants:
            return self._wants[key]
        try:
            stored = await self._kube.get(SECRETS, key)
        except NotFound:
            return _deleted(key)
        return (
            connection.as_stored(stored, claim, identity) if connection.is_ours(stored, identity) else _not_owned(key)
        )

    async def disown(self, key: Key, identity: str, *, keep: bool, collected_with: str) -> bool:
        """Delete a claim's Secret, or keep it without owner; one owned by uid `collected_with` is collected with it.

        Returns whether it was deleted. One that is to be kept, and was seen lately as it was wanted, without an owner,
        is left as it is without a request.
        """
        is_kept_already = keep and self._has_no_owner(key)
        self.forget(key)
        if is_kept_already:
            return False
        try:
            stored = await self._kube.get(SECRETS, key)
            if not connection.is_ours(stored, identity):
                return False
            owners = {owner["uid"] for owner in metadata(stored).get("ownerReferences") or ()}
            if not keep:
                if collected_with in owners:
                    return False
                await self._kube.delete(SECRETS, key, uid=uid_of(stored), resource_version=version_of(stored))
                return True
            if owners:
                kept = {name: value for name, value in metadata(stored).items() if name not in _DROPPED}
                await self._kube.replace(SECRETS, {**stored, "metadata": kept}, manager=self._manager)
        except NotFound:
            return False
        return False

    def _has_no_owner(self, key: Key) -> bool:
        """Return whether a Secret was written or seen without an owner, as recently as its next look allows."""
        want, verified = self._wants.get(key), self._verified.get(key)
        if want is None or want.owner is not None or verified is None or verified[0] != want.state:
            return False
        return self._monotonic() - verified[1] < min(VERIFY_EVERY.total_seconds(), self._resync)

    def forget_claim(self, claim: Key) -> None:
        """Drop what is remembered of the connection Secret of a claim that is gone."""
        secret = self._by_claim.get(claim)
        if secret is not None:
            self.forget(secret)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a connection Secret."""
        self._verified.pop(key, None)
        self._looked.pop(key, None)
        self._incomplete.pop(key, None)
        self._written.pop(key, None)
        self._versions.pop(key, None)
        want = self._wants.pop(key, None)
        if want and self._by_claim.get(want.claim) == key:
            del self._by_claim[want.claim]
        for source in _sources(want) if want else ():
            self._readers[source].discard(key)
            if not self._readers[source]:
                del self._readers[source]

    def concerned(self, change: Change) -> tuple[Key, ...]:
        """Return the claims whose connection Secret must be looked at, since a Secret of its namespace changed."""
        if change.initial or (change.after and change.after.version == self._written.get(change.key)):
            return ()
        readers = sorted(self._readers.get(change.key, ()))
        for key in readers:
            self._verified.pop(key, None)
            self._looked.pop(key, None)
        return tuple(self._wants[key].claim for key in readers)

    def _note(self, want: Wanted) -> None:
        """Remember which Secrets a connection Secret is made of, and itself, so that their changes wake its claim."""
        if self._wants.get(want.key) == want:
            return
        self.forget(want.key)
        self._wants[want.key] = want
        self._by_claim[want.claim] = want.key
        for source in _sources(want):
            self._readers.setdefault(source, set()).add(want.key)

    async def _values(self, want: Wanted, *, is_first: bool) -> dict[str, str] | Cause:
        """Return the values that are kept in Secrets and ConfigMaps, or the cause for which one is missing."""
        values: dict[str, str] = {}
        holders = self._new_credentials(want) if is_first else {}
        for name, ref in sorted(want.kept.items()):
            holder = await self._holder(want.key.namespace, ref, holders)
            if holder and ref.kind == "Secret":
                self._saw(want, Key(want.key.namespace, ref.name), holder)
            value = connection.value_of({"kind": ref.kind, **holder}, ref.key)
            if value is None:
                problem = f"has no key {ref.key!r} with a text to copy" if holder else "does not exist"
                maker = want.makers.get(name, "whoever makes it")
                return cause("SecretNotFound", f"{ref.kind} {ref.name} {problem}; it is to be written by {maker}")
            values[name] = value
        password = want.kept.get("password")
        holder = holders.get((password.kind, password.name), {}) if password else {}
        if connection.is_of_another_login(holder, want.plain.get("username", "")):
            # Its status follows in a moment, and wakes the claim: half of each would be a Secret that does not log in.
            text = f"{password.kind} {password.name} holds" if password else "it holds"
            return cause("ConnectionIncomplete", f"{text} the next login's password already")
        return values

    def _new_credentials(self, want: Wanted) -> dict[tuple[str, str], Object]:
        """Return the provider's Secret as the watch has it, for the first connection Secret; nothing where it is older.

        A password in a Secret that was made for this very child was accepted by its login: a provider writes it there
        after that. What an earlier child left may be out of date, and is read.
        """
        password = want.kept.get("password")
        if password is None or password.kind != "Secret" or not want.source_created:
            return {}
        holder = self._watched.credentials(Key(want.key.namespace, password.name))
        if holder is None or str(metadata(holder).get("creationTimestamp", "")) < want.source_created:
            return {}
        place = (password.kind, password.name)
        keys = (ref.key for ref in want.kept.values() if (ref.kind, ref.name) == place)
        return {place: holder} if all(connection.value_of(holder, key) is not None for key in keys) else {}

    async def _holder(self, namespace: str, ref: SecretRef, holders: dict[tuple[str, str], Object]) -> Object:
        """Return the Secret or ConfigMap of a reference, read once for all its keys; empty where there is none."""
        place = (ref.kind, ref.name)
        if place not in holders:
            resource = SECRETS if ref.kind == "Secret" else CONFIG_MAPS
            try:
                holders[place] = await self._kube.get(resource, Key(namespace, ref.name))
            except NotFound:
                holders[place] = {}
        return holders[place]

    async def _store(self, want: Wanted, fresh: Object, *, is_first: bool) -> Publication:
        if is_first:
            try:
                self._wrote(want, await self._kube.create(SECRETS, fresh, manager=self._manager))
            except AlreadyExists:
                return await self._update(want, await self._kube.get(SECRETS, want.key), fresh)
            return Publication(changed=True)
        try:
            stored = await self._kube.get(SECRETS, want.key)
        except NotFound:
            self._wrote(want, await self._kube.create(SECRETS, fresh, manager=self._manager))
            return Publication(changed=True)
        return await self._update(want, stored, fresh)

    async def _update(self, want: Wanted, stored: Object, fresh: Object) -> Publication:
        if not connection.is_ours(stored, want.identity):
            return Publication(problem=_not_owned(want.key))
        replacement = connection.replacement(stored, fresh)
        if replacement is None:
            self._saw(want, want.key, stored)
            return Publication()
        self._wrote(want, await self._replace(stored, replacement))
        return Publication(changed=True)

    async def _replace(self, stored: Object, replacement: Object) -> Object:
        if not stored.get("immutable"):
            return await self._kube.replace(SECRETS, replacement, manager=self._manager)
        # Somebody made it immutable: that keeps its data from being changed, not the Secret from being made again.
        await self._kube.delete(SECRETS, key_of(stored), uid=uid_of(stored), resource_version=version_of(stored))
        meta = {name: value for name, value in metadata(replacement).items() if name not in _OF_THE_SERVER}
        return await self._kube.create(SECRETS, {**replacement, "metadata": meta}, manager=self._manager)

    def _wrote(self, want: Wanted, made: Object) -> None:
        self._written[want.key] = version_of(made)
        self._saw(want, want.key, made)


def _deleted(key: Key) -> Cause:
    text = f"the connection Secret {key.name} was deleted; it is written again once the claim is carried out"
    return cause("SecretNotFound", text)


def _not_owned(key: Key) -> Cause:
    text = f"Secret {key.name} exists and is not this claim's; remove it or set spec.connectionSecretName"
    return cause("SecretNotOwned", text)


def _sources(want: Wanted) -> frozenset[Key]:
    names = {want.key.name, *(ref.name for ref in want.kept.values() if ref.kind == "Secret")}
    return frozenset(Key(want.key.namespace, name) for name in names)


_DROPPED = frozenset({"ownerReferences", "managedFields"})
_OF_THE_SERVER = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"})
