"""Makes the passwords that operators want to be given: each once, by POST, in a Secret that nobody can edit.

A Secret is immutable and named by rule, after the claim, the password and the rotation token: a POST that is repeated
after a crash meets the Secret that the first one made. Which are made is recorded in the claim's status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import msgspec

from apis import names
from apis.connection import PasswordRecord
from apis.passwords import new_password
from composer.causes import Cause, cause
from runtime import secrets
from runtime.errors import AlreadyExists, NotFound
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, dumps, labels_of, uid_of, version_of

VERIFY_EVERY: Final = timedelta(minutes=10)
KEY: Final = "password"
"""The key of a Secret that holds the password."""


@dataclass(frozen=True, slots=True)
class WantedPassword:
    """One password of a claim. `is_made`: its Secret was made before: it is recorded, or a child names it.

    `former`: the Secret of the rotation before, empty for none.
    """

    name: str
    secret: Key
    identity: str
    is_made: bool
    former: str = ""


@dataclass(frozen=True, slots=True)
class KeptPasswords:
    """What is recorded of a claim's passwords, and why one is not as it should be.

    `is_new`: another Secret is made. `is_denied`: the namespace does not let us use its Secrets.
    """

    records: tuple[PasswordRecord, ...] = ()
    causes: tuple[Cause, ...] = ()
    is_new: bool = False
    is_denied: bool = False


def recorded(status: Mapping[str, Any]) -> tuple[PasswordRecord, ...]:
    """Return the records of a claim's status; what has not their shape is none."""
    try:
        return msgspec.convert(status.get("passwords") or (), tuple[PasswordRecord, ...])
    except msgspec.ValidationError:
        return ()


def wanted_passwords(
    secret_names: Mapping[str, str],
    records: Iterable[PasswordRecord],
    children: Iterable[Object],
    claim: tuple[Key, str],
) -> tuple[WantedPassword, ...]:
    """Return the passwords of a claim (its key and identity) by the names of their Secrets.

    A record may be lost with the status: what a live child names was made before.
    """
    by_name = {record.name: record for record in records}
    contents = [dumps(child.get("spec")) for child in children]
    (key, identity), wanted = claim, list[WantedPassword]()
    for name, secret in secret_names.items():
        record = by_name.get(name)
        is_recorded = record is not None and record.secret == secret
        former = record.former if record and is_recorded else record.secret if record else ""
        is_named = any(f'"{secret}"'.encode() in content for content in contents)
        wanted.append(WantedPassword(name, Key(key.namespace, secret), identity, is_recorded or is_named, former))
    return tuple(wanted)


def is_ours(secret: Object, identity: str) -> bool:
    """Return whether a Secret is a password of this claim."""
    return labels_of(secret).get(names.CLAIM_LABEL) == identity and secret.get("type") == names.PASSWORD_TYPE


class PasswordKeeper:
    """Makes passwords once, sees whether they are still there, and deletes those that no rotation needs any more."""

    def __init__(
        self, kube: Kube, *, monotonic: Callable[[], float], manager: str, resync: timedelta = VERIFY_EVERY
    ) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._manager = manager
        self._resync = resync.total_seconds()
        self._seen: dict[Key, float] = {}

    async def keep(
        self, wanted: Iterable[WantedPassword], records: Iterable[PasswordRecord], *, is_requested: bool
    ) -> KeptPasswords:
        """Make what was never made, and look for what was; records of other names stay. Raises ApiError."""
        before = {record.name: record for record in records}
        kept, causes = dict(before), list[Cause]()
        for password in wanted:
            why = await self._keep(password, is_requested=is_requested)
            oldest = before[password.name].former if password.name in before else ""
            if why is None and oldest not in ("", password.former, password.secret.name):
                # Two rotations in a row: nothing names the first of three any more.
                await self.drop(Key(password.secret.namespace, oldest), password.identity)
            if why is not None:
                causes.append(why)
            if why is None or password.is_made:
                kept[password.name] = PasswordRecord(password.name, password.secret.name, password.former)
        return KeptPasswords(tuple(kept.values()), tuple(causes), is_new=kept != before)

    async def _keep(self, password: WantedPassword, *, is_requested: bool) -> Cause | None:
        """Make one password or look for it; return why it is not there."""
        now = self._monotonic()
        seen_at = self._seen.get(password.secret)
        is_recent = seen_at is not None and now - seen_at < min(VERIFY_EVERY.total_seconds(), self._resync)
        if password.is_made and is_recent and not is_requested:
            return None
        self._seen.pop(password.secret, None)
        if not password.is_made:
            try:
                await self._kube.create(SECRETS, _secret_of(password), manager=self._manager)
            except AlreadyExists:
                # An earlier pass made it and could not record that.
                return await self._look(password, now)
            self._seen[password.secret] = now
            return None
        return await self._look(password, now)

    async def _look(self, password: WantedPassword, now: float) -> Cause | None:
        """Return why the Secret of a password that was made cannot be used; None where it can."""
        name = password.secret.name
        try:
            stored = await self._kube.get(SECRETS, password.secret)
        except NotFound:
            text = (
                f"Secret {name} with password {password.name!r} is gone, and what it held is not known; no other is"
                " made in its place: restore it, or set spec.passwordRotation.token to a new value for a new password"
            )
            return cause("PasswordUnknown", text)
        if not is_ours(stored, password.identity) or not secrets.text_of(stored, KEY):
            text = f"Secret {name} exists and is not the password {password.name!r} of this claim; remove it"
            return cause("SecretNotOwned", text)
        self._seen[password.secret] = now
        return None

    async def drop(self, secret: Key, identity: str) -> None:
        """Delete the Secret of a password, if it is this claim's. Raises ApiError."""
        self._seen.pop(secret, None)
        try:
            stored = await self._kube.get(SECRETS, secret)
            if is_ours(stored, identity):
                await self._kube.delete(SECRETS, secret, uid=uid_of(stored), resource_version=version_of(stored))
        except NotFound:
            return

    def forget(self, secret: Key) -> None:
        """Look for a Secret again at the next pass: it was changed."""
        self._seen.pop(secret, None)


def _secret_of(password: WantedPassword) -> Object:
    """Return the Secret of a new password."""
    meta = {
        "name": password.secret.name,
        "namespace": password.secret.namespace,
        "labels": {names.CLAIM_LABEL: password.identity},
    }
    made = secrets.secret_object(meta, names.PASSWORD_TYPE, {KEY: new_password()})
    return {**made, "immutable": True}
