"""All that a decision about a password looks at: the credentials Secret, a user's own, logins that are tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic

from providers.credentials import secret_check, secrets
from providers.credentials.passwords import (
    Delivery,
    Kept,
    PasswordView,
    Stored,
    delivery_of,
    former_login,
    in_grace,
    keyed_hash,
    refuse_password,
    waiting_text,
)
from providers.credentials.proofs import Proofs
from providers.credentials.secret_check import Checked, Unproven, login_of_pending
from providers.external.client import Logins, Target
from providers.external.credential import Credential, Login
from providers.external.observation import Phase, SpecT
from providers.external.ownership import connection_secret_of
from providers.external.provider import LoginRules
from providers.managed import record
from providers.managed.inputs import Inputs, proven_versions
from providers.managed.writes import logins_of
from providers.settings import Settings
from runtime.conditions import instant
from runtime.errors import ApiError, Forbidden, NotFound, Terminal
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, key_of, status_of
from runtime.secrets import text_of

# What a cloud accepted and refuses at every login is sent again this rarely, and so many times in all.
_SEND_AGAIN_AFTER = timedelta(minutes=10)
_MOST_SENDS = 3


class PasswordReader(Generic[SpecT]):
    """Reads what concerns a resource's password; decides nothing."""

    def __init__(self, rules: LoginRules[SpecT], kube: Kube, settings: Settings) -> None:
        self._rules = rules
        self._kube = kube
        self._settings = settings
        # The resync comes a little earlier or later.
        self._proofs = Proofs(settings.resync / 2)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of an object that is gone."""
        self._proofs.forget(key)

    async def read(self, inputs: Inputs[SpecT]) -> Inputs[SpecT]:
        """Return the inputs with credentials, the login that is published, and what its step is decided on."""
        try:
            stored = await secrets.read(self._kube, inputs.obj)
            inputs = replace(inputs, logins=self._rules.names(inputs.target))
            if stored is not None:
                inputs = self._named_by_secret(inputs, stored)
                checked = await self._checked(inputs, stored)
                stored = replace(stored, kept=checked.kept)
                target = _with_active(inputs.target, checked.kept, inputs.logins)
                inputs = replace(inputs, stored=stored, foreign=checked.foreign, target=target)
            given = await self._given(inputs)
            view = await self._password_view(inputs, given)
        except Terminal as failure:
            return replace(inputs, trouble=(failure.reason, failure.message))
        except Forbidden as error:
            denied = secrets.denied(inputs.obj, error)
            return replace(inputs, trouble=(denied.reason, denied.message))
        trouble = ("WaitingForWindow", waiting_text(view)) if view.is_rotation_waiting else None
        return replace(inputs, passwords=view, login=view.login, given=given, trouble=trouble)

    def _named_by_secret(self, inputs: Inputs[SpecT], stored: Stored) -> Inputs[SpecT]:
        """Take which of the logins by rule is in use from the Secret where the status that said so is lost."""
        target, username = inputs.target, stored.kept.username
        if target.active or username in {"", *inputs.logins, self._rules.administrator(target)}:
            return inputs
        target = replace(target, active=username)
        logins = self._rules.names(target)
        return replace(inputs, target=target, logins=logins) if username in logins else inputs

    async def _checked(self, inputs: Inputs[SpecT], stored: Stored) -> Checked:
        """Leave out of the credentials Secret what somebody else wrote."""
        status = status_of(inputs.obj)
        # What is seen was made, whatever was wiped off the object.
        is_made = bool(_published_hash(status) or inputs.marks.incarnation or inputs.observed is not None)
        recorded = secret_check.recorded_in(status, is_made=is_made)
        checked = secret_check.check(stored.kept, recorded, inputs.logins, self._settings.hash_key)
        if checked.unproven is not None and await self._is_right(inputs, checked.unproven):
            return checked.proven()
        return checked

    async def _is_right(self, inputs: Inputs[SpecT], unproven: Unproven) -> bool:
        """Try a password that no hash vouches for; where no login can be tried, the one that is in use is right."""
        answer = Login.NOT_TRIED
        if inputs.observed is not None and inputs.account is not None:
            credential = Credential(unproven.username, unproven.password)
            answer = await logins_of(inputs).login(inputs.target, credential)
        if answer in {Login.OK, Login.REFUSED} or unproven.key == "pending":
            return answer is Login.OK
        return await self._in_use(inputs.obj) == unproven.password

    async def _given(self, inputs: Inputs[SpecT]) -> str:
        reference = inputs.envelope.password_secret_ref
        if reference is None:
            return ""
        try:
            given = await secrets.users_password(
                self._kube, key_of(inputs.obj).namespace, reference.name, reference.key
            )
        except NotFound:
            raise Terminal("SecretNotFound", f"there is no Secret {reference.name} to take the password from") from None
        rule = refuse_password(given)
        if rule:
            raise Terminal("InvalidPassword", f"the password in Secret {reference.name} is not usable: {rule}")
        return given

    async def _password_view(self, inputs: Inputs[SpecT], given: str) -> PasswordView:
        status, stored = status_of(inputs.obj), inputs.stored
        connection, rotation = status.get("connection") or {}, status.get("rotation") or {}
        published_hash = _published_hash(status)
        published = bool(published_hash or (inputs.marks.incarnation and self._has_login(inputs)))
        recovered, login = "", await self._login(inputs)
        sent = rotation.get("sent") or rotation.get("coming", "")
        alternates = inputs.logins[0] != inputs.logins[1]
        if published and (stored is None or not (stored.kept.current or stored.kept.pending)):
            recovered = await self._recovered(inputs.obj, published_hash)
        if recovered and not alternates and await self._tried_recovered(inputs, recovered) is Login.REFUSED:
            recovered, login = "", Login.REFUSED
        delivery, pending_login = await self._delivery(inputs)
        retire_at = instant(rotation.get("retireAt", ""))
        token, done_token = inputs.envelope.password_rotation.token or "", rotation.get("token")
        if former_login(connection.get("username", ""), stored.kept if stored is not None else None):
            # What the token asked for was done before a crash; only the report of it is missing.
            done_token = token
        return PasswordView(
            logins=inputs.logins,
            kept=stored.kept if stored is not None else None,
            published=published,
            login=login,
            token=token,
            done_token=done_token,
            given=given,
            recovered=recovered,
            published_login=connection.get("username", ""),
            retiring=rotation.get("retiring", ""),
            administrator=self._rules.administrator(inputs.target),
            in_grace=not inputs.envelope.password_rotation.force
            and in_grace(
                inputs.logins,
                rotation.get("retiring", ""),
                retire_at,
                inputs.now,
                administrator=self._rules.administrator(inputs.target),
            ),
            retire_at=retire_at,
            delivery=delivery,
            pending_login=pending_login,
            foreign=bool(inputs.foreign),
            elsewhere=inputs.observed is not None and inputs.observed.password_elsewhere,
            ca_renewed=_is_ca_renewed(inputs),
            superseded=not alternates and bool(sent) and sent != published_hash,
        )

    def _has_login(self, inputs: Inputs[SpecT]) -> bool:
        """Tell whether a login by rule may be in use: of two that are both absent none is, as after an adoption."""
        observed, logins = inputs.observed, inputs.logins
        if observed is None or logins[0] == logins[1]:
            return True
        return not self._rules.versions(observed).keys().isdisjoint(logins)

    async def _recovered(self, obj: Object, published_hash: str) -> str:
        """Take the password back from the claim's connection Secret when its hash is the published one."""
        found = await self._in_use(obj) if published_hash else ""
        return found if found and keyed_hash(self._settings.hash_key, found) == published_hash else ""

    async def _tried_recovered(self, inputs: Inputs[SpecT], password: str) -> Login:
        """Try what was taken back: that of the only login is worth nothing once the server refuses it."""
        if inputs.observed is None or inputs.account is None or not inputs.observed.usable:
            return Login.NOT_TRIED
        credential = Credential(inputs.target.active or inputs.logins[0], password)
        return await logins_of(inputs).login(inputs.target, credential)

    async def _in_use(self, obj: Object) -> str:
        """Return the password in the claim's connection Secret, which its tenant may write; empty without one."""
        name = connection_secret_of(obj)
        if not secrets.is_secret_name(name):
            return ""
        try:
            secret = await self._kube.get(SECRETS, Key(key_of(obj).namespace, name))
        except ApiError:
            return ""
        return text_of(secret, "password")

    async def _delivery(self, inputs: Inputs[SpecT]) -> tuple[Delivery, Login]:
        """Tell what became of the pending password of a cloud that takes its time over it, and what its login said.

        A login proves it, from the first look after it was sent; where none can be tried, and none is required, that
        the cloud reports nothing under way once it has settled.
        """
        observed, stored, account = inputs.observed, inputs.stored, inputs.account
        if observed is None or stored is None or account is None or not stored.kept.pending:
            return Delivery.NONE, Login.NOT_TRIED
        if not inputs.eventual:
            return Delivery.NONE, Login.NOT_TRIED
        rotation, now = status_of(inputs.obj).get("rotation") or {}, self._settings.now()
        sent = rotation.get("sent", "") == keyed_hash(self._settings.hash_key, stored.kept.pending)
        sent_at = instant(rotation.get("sentAt", ""))
        answer, is_under_way = Login.NOT_TRIED, observed.phase is not Phase.READY or observed.password_pending
        if observed.usable and not observed.password_elsewhere:
            credential = Credential(login_of_pending(inputs.logins, stored.kept), stored.kept.pending)
            answer = await logins_of(inputs).login(inputs.target, credential)
        if is_under_way and answer is not Login.OK:
            return (Delivery.UNDER_WAY if sent else Delivery.NONE), answer
        settled = sent and (sent_at is None or now - sent_at >= self._settings.settle)
        rested = sent_at is None or now - sent_at >= _SEND_AGAIN_AFTER
        again = rested and int(rotation.get("sends", 1)) < _MOST_SENDS
        judged = Login.REFUSED if observed.password_elsewhere else answer
        return delivery_of(judged, sent=sent, settled=settled, again=again, required=account.login_required), answer

    async def _login(self, inputs: Inputs[SpecT]) -> Login:
        """Try the published login where the server's row for it changed since it was last proven, or a look is due."""
        observed, stored, account = inputs.observed, inputs.stored, inputs.account
        if observed is not None and not observed.usable:
            # Whoever worked on it may have changed its logins: they are tried as soon as it takes them again.
            self._proofs.doubt(key_of(inputs.obj))
        if observed is None or stored is None or account is None or not stored.kept.current or not observed.usable:
            return Login.NOT_TRIED
        name = stored.kept.username
        credential = Credential(name, stored.kept.current)
        if self._rules.versions(observed).get(name, "absent") != proven_versions(inputs.obj).get(name):
            return await logins_of(inputs).login(inputs.target, credential)
        if self._rules.shows_passwords:
            return Login.NOT_TRIED
        return await self._proven_anew(inputs, logins_of(inputs), credential)

    async def _proven_anew(self, inputs: Inputs[SpecT], logins: Logins[SpecT], credential: Credential) -> Login:
        """Try a proven login where nothing else would show a password that somebody else set."""
        key, now = key_of(inputs.obj), self._settings.now()
        in_doubt = _is_reset_by_others(inputs)
        if in_doubt:
            self._proofs.doubt(key)
        if not self._proofs.is_due(key, now) and not record.asked_anew(inputs.obj):
            return Login.NOT_TRIED
        with self._proofs.slot() as is_free:
            if not is_free:
                return Login.NOT_TRIED
            answer = await logins.login(inputs.target, credential)
        if answer is Login.REFUSED:
            # A pass looks again before it acts, and the login is as dead then.
            self._proofs.doubt(key)
        elif not in_doubt:
            self._proofs.note(key, now, is_answered=answer is not Login.UNKNOWN)
        return answer


def _is_reset_by_others(inputs: Inputs[Any]) -> bool:
    """Tell whether the cloud is at work on a password that was not sent from here."""
    observed, stored = inputs.observed, inputs.stored
    sent = (status_of(inputs.obj).get("rotation") or {}).get("sent")
    pending = stored is not None and stored.kept.pending
    return observed is not None and observed.password_pending and not sent and not pending


def _is_ca_renewed(inputs: Inputs[Any]) -> bool:
    """Tell whether the Secret holds another authority than the one that the ProviderConfig names now."""
    if inputs.observed is None or inputs.stored is None or inputs.account is None:
        return False
    endpoint = inputs.endpoint
    return bool(endpoint.host) and bool(endpoint.ca) and endpoint.ca != inputs.stored.kept.ca


def _with_active(target: Target[SpecT], kept: Kept, logins: tuple[str, str]) -> Target[SpecT]:
    """Return the target with the login that the Secret shows to be in use, where the status does not say so yet."""
    coming = login_of_pending(logins, kept) if kept.pending else ""
    if kept.current:
        retiring = former_login(target.active, kept) or target.retiring
        return replace(target, active=kept.username, published=kept.current, retiring=retiring, coming=coming)
    if kept.pending and not target.active:
        return replace(target, active=coming, coming=coming)
    return replace(target, coming=coming)


def _published_hash(status: Object) -> str:
    return str(((status.get("connection") or {}).get("passwordRef") or {}).get("hash", ""))
