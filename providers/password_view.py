"""All that a decision about a password looks at: the credentials Secret, a user's own, logins that are tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Generic

from providers import credentials, reading
from providers.cloud import ConfigT, Credential, Provider, Target
from providers.identity import CLAIM_NAME
from providers.managed import Phase, SpecT
from providers.passwords import (
    Delivery,
    Login,
    PasswordView,
    Stored,
    decide_password,
    delivery_of,
    former_login,
    keyed_hash,
    refuse_password,
)
from providers.reading import status_of
from providers.settings import Settings
from providers.snapshot import Snapshot, proven_versions
from runtime.errors import ApiError, NotFound, Terminal
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, annotations_of, key_of

# What a cloud accepted and refuses at every login is sent again this rarely, and so many times in all.
_SEND_AGAIN_AFTER = timedelta(minutes=10)
_MOST_SENDS = 3


class PasswordReader(Generic[SpecT, ConfigT]):
    """Reads what concerns a resource's password and says which step it needs."""

    def __init__(self, provider: Provider[SpecT, ConfigT], kube: Kube, settings: Settings) -> None:
        self._provider = provider
        self._kube = kube
        self._settings = settings

    async def read(self, snapshot: Snapshot[SpecT]) -> Snapshot[SpecT]:
        """Return the snapshot with credentials, the login that is published, and the password's next step."""
        try:
            stored = await credentials.read(self._kube, snapshot.obj)
            snapshot = replace(snapshot, stored=stored, target=_with_active(snapshot.target, stored))
            given = await self._given(snapshot)
            view = await self._password_view(snapshot, given)
        except Terminal as failure:
            return replace(snapshot, trouble=(failure.reason, failure.message))
        step = decide_password(view, snapshot.scene.now)
        return replace(snapshot, step=step, login=view.login, given=given)

    async def _given(self, snapshot: Snapshot[SpecT]) -> str:
        reference = snapshot.envelope.password_secret_ref
        if reference is None:
            return ""
        try:
            given = await credentials.users_password(
                self._kube, key_of(snapshot.obj).namespace, reference.name, reference.key
            )
        except NotFound:
            raise Terminal("SecretNotFound", f"there is no Secret {reference.name} to take the password from") from None
        rule = refuse_password(given)
        if rule:
            raise Terminal("InvalidPassword", f"the password in Secret {reference.name} is not usable: {rule}")
        return given

    async def _password_view(self, snapshot: Snapshot[SpecT], given: str) -> PasswordView:
        status, stored = status_of(snapshot.obj), snapshot.stored
        connection, rotation = status.get("connection") or {}, status.get("rotation") or {}
        published_hash = (connection.get("passwordRef") or {}).get("hash", "")
        published = bool(published_hash or snapshot.scene.marks.incarnation)
        recovered = ""
        if published and (stored is None or not (stored.kept.current or stored.kept.pending)):
            recovered = await self._recovered(snapshot.obj, published_hash)
        retire_at = reading.instant(rotation.get("retireAt", ""))
        token, done_token = snapshot.envelope.password_rotation.token or "", rotation.get("token", "")
        if former_login(connection.get("username", ""), stored.kept if stored is not None else None):
            # What the token asked for was done before a crash; only the report of it is missing.
            done_token = token
        return PasswordView(
            logins=self._provider.logins(snapshot.target),
            kept=stored.kept if stored is not None else None,
            published=published,
            login=await self._login(snapshot),
            token=token,
            done_token=done_token if rotation else None,
            given=given,
            recovered=recovered,
            published_login=connection.get("username", ""),
            retiring=rotation.get("retiring", ""),
            retire_at=retire_at,
            delivery=await self._delivery(snapshot),
        )

    async def _recovered(self, obj: Object, published_hash: str) -> str:
        """Take the password back from the claim's connection Secret when its hash is the published one."""
        claim = annotations_of(obj).get(CLAIM_NAME, "")
        if not claim or not published_hash:
            return ""
        try:
            secret = await self._kube.get(SECRETS, Key(key_of(obj).namespace, f"{claim}-connection"))
        except ApiError:
            return ""
        found = credentials.text_of(secret, "password")
        return found if found and keyed_hash(self._settings.hash_key, found) == published_hash else ""

    async def _delivery(self, snapshot: Snapshot[SpecT]) -> Delivery:
        """Tell what became of the pending password of a cloud that takes its time over it.

        A login proves it; where none can be tried, and none is required, that the cloud reports nothing under way once
        it has settled.
        """
        observed, stored, account = snapshot.observed, snapshot.stored, snapshot.account
        if observed is None or stored is None or account is None or not stored.kept.pending:
            return Delivery.NONE
        if not self._provider.slow:
            return Delivery.NONE
        rotation, now = status_of(snapshot.obj).get("rotation") or {}, self._settings.now()
        sent = rotation.get("sent", "") == keyed_hash(self._settings.hash_key, stored.kept.pending)
        sent_at = reading.instant(rotation.get("sentAt", ""))
        if observed.phase is not Phase.READY or observed.password_pending:
            return Delivery.UNDER_WAY if sent else Delivery.NONE
        username = stored.kept.username or self._provider.logins(snapshot.target)[0]
        answer = await account.cloud.login(snapshot.target, Credential(username, stored.kept.pending))
        settled = sent and (sent_at is None or now - sent_at >= self._settings.settle)
        rested = sent_at is None or now - sent_at >= _SEND_AGAIN_AFTER
        again = rested and int(rotation.get("sends", 1)) < _MOST_SENDS
        return delivery_of(answer, sent=sent, settled=settled, again=again, required=account.login_required)

    async def _login(self, snapshot: Snapshot[SpecT]) -> Login:
        """Try the published login only where the server's row for it changed since it was last proven."""
        observed, stored, account = snapshot.observed, snapshot.stored, snapshot.account
        if observed is None or stored is None or account is None or not stored.kept.current:
            return Login.NOT_TRIED
        name = stored.kept.username
        if self._provider.login_versions(observed).get(name, "absent") == proven_versions(snapshot.obj).get(name):
            return Login.NOT_TRIED
        return await account.cloud.login(snapshot.target, Credential(name, stored.kept.current))


def _with_active(target: Target[SpecT], stored: Stored | None) -> Target[SpecT]:
    if stored is None or not stored.kept.username:
        return target
    former = former_login(target.active, stored.kept)
    return replace(target, active=stored.kept.username, retiring=former or target.retiring)
