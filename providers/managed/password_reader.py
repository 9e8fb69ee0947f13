"""All that a decision about a password reads: the credentials Secret, a user's own, logins that are tried."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Generic

from providers.credentials import secret_check, secrets
from providers.credentials.login import log_in
from providers.credentials.passwords import (
    Delivery,
    Kept,
    PasswordInputs,
    Stored,
    delivery_of,
    former_login,
    in_grace,
    keyed_hash,
    refuse_password,
    waiting_text,
)
from providers.credentials.proofs import Proofs
from providers.credentials.secret_check import Checked, login_of_pending
from providers.external.client import Target
from providers.external.credential import Credential, Login
from providers.external.observation import Phase, SpecT
from providers.external.ownership import connection_secret_of
from providers.external.provider import LoginRules
from providers.managed import record
from providers.managed.inputs import Inputs, proven_versions
from providers.managed.writes import account_of
from providers.settings import Settings
from runtime.conditions import instant
from runtime.errors import Forbidden, NotFound, Terminal
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, is_subdomain, key_of, status_of
from runtime.replaced import replace
from runtime.secrets import text_of

# What a cloud accepted and refuses at every login is sent again this rarely, and so many times in all.
_SEND_AGAIN_AFTER = timedelta(minutes=10)
_MOST_SENDS = 3


class PasswordReader(Generic[SpecT]):
    """Reads what concerns a resource's password; decides nothing."""

    def __init__(self, rules: LoginRules[SpecT, Any], kube: Kube, settings: Settings) -> None:
        self._rules = rules
        self._kube = kube
        self._settings = settings
        # The resync comes a little earlier or later.
        self._proofs = Proofs(settings.resync / 2)

    def applies(self, spec: SpecT) -> bool:
        """Return whether a spec asks for a login with a password."""
        return self._rules.applies(spec)

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._proofs.forget(key)

    async def read(self, inputs: Inputs[SpecT]) -> Inputs[SpecT]:
        """Return the inputs with the credentials, the published login, and what the password's step is decided on."""
        try:
            stored, is_either = await secrets.read(self._kube, inputs.obj), False
            inputs = replace(inputs, logins=self._rules.names(inputs.target))
            if stored is not None:
                inputs = self._named_by_secret(inputs, stored)
                checked = await self._checked(inputs, stored)
                stored, is_either = replace(stored, kept=checked.kept), checked.is_either
                target = _with_active(inputs.target, checked.kept, inputs.logins)
                inputs = replace(inputs, stored=stored, foreign=checked.foreign, target=target)
            user_password = await self._user_password(inputs)
            password_inputs = replace(await self._password_inputs(inputs, user_password), is_either=is_either)
        except Terminal as failure:
            return replace(inputs, password_problem=(failure.reason, failure.message))
        except Forbidden as error:
            denied = secrets.denied(inputs.obj, error)
            return replace(inputs, password_problem=(denied.reason, denied.message))
        is_waiting = password_inputs.is_rotation_waiting or password_inputs.former_in_use
        problem = ("WaitingForWindow", waiting_text(password_inputs)) if is_waiting else None
        return replace(
            inputs,
            passwords=password_inputs,
            login=password_inputs.login,
            user_password=user_password,
            password_problem=problem,
        )

    def _named_by_secret(self, inputs: Inputs[SpecT], stored: Stored) -> Inputs[SpecT]:
        """Take the login in use from the Secret where the status that names it is lost."""
        target, username = inputs.target, stored.kept.username
        if target.active or username in {"", *inputs.logins, self._rules.administrator(target)}:
            return inputs
        target = replace(target, active=username)
        logins = self._rules.names(target)
        return replace(inputs, target=target, logins=logins) if username in logins else inputs

    async def _checked(self, inputs: Inputs[SpecT], stored: Stored) -> Checked:
        """Leave out of the credentials Secret what somebody else wrote."""
        status = status_of(inputs.obj)
        # What is observed was made, whatever was wiped off the object.
        is_made = bool(_published_hash(status) or inputs.external_ref.incarnation or inputs.observed is not None)
        recorded = secret_check.recorded_in(status, is_made=is_made)
        checked = secret_check.check(stored.kept, recorded, inputs.logins, self._settings.hash_key)
        unproven = checked.unproven
        if unproven is None:
            return checked
        answer = Login.NOT_TRIED
        if inputs.observed is not None and inputs.account is not None:
            credential = Credential(unproven.username, unproven.password)
            answer = await self._tried(inputs, credential)
        is_known = answer in {Login.OK, Login.REFUSED}
        if unproven.key == "pending" and not is_known:
            return replace(checked, is_either=bool(checked.kept.current) and not recorded.published)
        # Where no login can be tried, the one in use is right.
        is_right = answer is Login.OK if is_known else await self._in_use(inputs.obj) == unproven.password
        return checked.proven() if is_right else checked

    async def _user_password(self, inputs: Inputs[SpecT]) -> str:
        reference = inputs.envelope.password_secret_ref
        if reference is None:
            return ""
        try:
            user_password = await secrets.users_password(
                self._kube, key_of(inputs.obj).namespace, reference.name, reference.key
            )
        except NotFound:
            raise Terminal("SecretNotFound", f"there is no Secret {reference.name} to take the password from") from None
        rule = refuse_password(user_password)
        if rule:
            raise Terminal("InvalidPassword", f"the password in Secret {reference.name} is not usable: {rule}")
        return user_password

    async def _password_inputs(self, inputs: Inputs[SpecT], user_password: str) -> PasswordInputs:
        status, stored = status_of(inputs.obj), inputs.stored
        connection, rotation = status.get("connection") or {}, status.get("rotation") or {}
        published_hash = _published_hash(status)
        published = bool(published_hash or (inputs.external_ref.incarnation and self._has_login(inputs)))
        recovered, login = "", await self._login(inputs)
        sent = rotation.get("sent") or rotation.get("coming", "")
        alternates = inputs.logins[0] != inputs.logins[1]
        published_login = connection.get("username", "")
        if published and (stored is None or not (stored.kept.current or stored.kept.pending)):
            published_login, recovered = await self._recovered(inputs, published_login, published_hash)
        if recovered and not alternates and await self._tried_recovered(inputs, recovered) is Login.REFUSED:
            recovered, login = "", Login.REFUSED
        delivery, pending_login = await self._delivery(inputs)
        retire_at = instant(rotation.get("retireAt", ""))
        token, done_token = inputs.envelope.password_rotation.token or "", rotation.get("token")
        if former_login(connection.get("username", ""), stored.kept if stored is not None else None):
            # The rotation of this token was done before a crash; only its report is missing.
            done_token = token
        former_in_use = await self._is_former_in_use(inputs, retire_at)
        administrator = self._rules.administrator(inputs.target)
        is_in_grace = in_grace(
            inputs.logins, rotation.get("retiring", ""), retire_at, inputs.now, administrator=administrator
        )
        is_in_grace = former_in_use or (is_in_grace and not inputs.envelope.password_rotation.force)
        is_taken_over = published and not (published_hash or alternates or recovered or rotation or stored)
        return PasswordInputs(
            taken_over=is_taken_over,
            user_delivery=await self._user_delivery(inputs, user_password if is_taken_over else ""),
            logins=inputs.logins,
            kept=stored.kept if stored is not None else None,
            published=published,
            login=login,
            token=token,
            done_token=done_token,
            user_password=user_password,
            recovered=recovered,
            published_login=published_login,
            retiring=rotation.get("retiring", ""),
            administrator=administrator,
            in_grace=is_in_grace,
            former_in_use=former_in_use,
            retire_at=retire_at,
            delivery=delivery,
            pending_login=pending_login,
            foreign=bool(inputs.foreign),
            elsewhere=inputs.observed is not None and inputs.observed.password_elsewhere,
            superseded=not alternates and bool(sent) and sent != published_hash,
        )

    async def _user_delivery(self, inputs: Inputs[SpecT], user_password: str) -> Delivery:
        """Try a user's own password at a login that was there before; nothing where there is none to try."""
        observed, account = inputs.observed, inputs.account
        if not user_password or observed is None or account is None:
            return Delivery.NONE
        answer = Login.NOT_TRIED
        if observed.usable:
            answer = await self._tried(inputs, Credential(inputs.logins[0], user_password))
        return delivery_of(answer, sent=True, settled=True, again=False, required=account.login_required)

    async def _is_former_in_use(self, inputs: Inputs[SpecT], retire_at: datetime | None) -> bool:
        """Return whether applications still read the login whose grace is over.

        The composer may be away, or the claim paused: whoever reads the connection Secret then is not shut out, unless
        the rotation was forced.
        """
        rotation = status_of(inputs.obj).get("rotation") or {}
        is_over = retire_at is not None and inputs.now >= retire_at
        if not rotation.get("retiring") or not is_over or inputs.envelope.password_rotation.force:
            return False
        secret = await self._connection_secret(inputs.obj)
        login = {key: text_of(secret, key) for key in ("host", "username")}
        return login == {"host": inputs.endpoint.host, "username": rotation["retiring"]}

    def _has_login(self, inputs: Inputs[SpecT]) -> bool:
        """Return whether a login by rule may be in use: of two that are both absent none is, as after an adoption."""
        observed, logins = inputs.observed, inputs.logins
        if observed is None or logins[0] == logins[1]:
            return True
        return not self._rules.versions(observed).keys().isdisjoint(logins)

    async def _recovered(self, inputs: Inputs[SpecT], published_login: str, published_hash: str) -> tuple[str, str]:
        """Return the published login with the password that the claim's connection Secret has, empty where it is none.

        The hash that was published proves it. A resource that was made again has lost it with its status: then a login
        by one of the resource's own names proves it.
        """
        secret = await self._connection_secret(inputs.obj)
        username, password = text_of(secret, "username"), text_of(secret, "password")
        if not password:
            return published_login, ""
        if published_hash:
            is_published = keyed_hash(self._settings.hash_key, password) == published_hash
            return published_login, password if is_published else ""
        if username not in inputs.logins or inputs.account is None or inputs.observed is None:
            return published_login, ""
        answer = await self._tried(inputs, Credential(username, password))
        return (username, password) if answer is Login.OK else (published_login, "")

    async def _tried_recovered(self, inputs: Inputs[SpecT], password: str) -> Login:
        """Try what was taken back: that of the only login is worth nothing once the server refuses it."""
        if inputs.observed is None or inputs.account is None or not inputs.observed.usable:
            return Login.NOT_TRIED
        credential = Credential(inputs.target.active or inputs.logins[0], password)
        return await self._tried(inputs, credential)

    async def _tried(self, inputs: Inputs[SpecT], credential: Credential) -> Login:
        """Return what a login with these is answered now."""
        return await log_in(account_of(inputs), self._rules, inputs.target, inputs.endpoint, credential)

    async def _in_use(self, obj: Object) -> str:
        """Return the password in the claim's connection Secret, which its tenant may write; empty without one."""
        return text_of(await self._connection_secret(obj), "password")

    async def _connection_secret(self, obj: Object) -> Object:
        """Return the claim's connection Secret, which its tenant may write; empty without one."""
        name = connection_secret_of(obj)
        if not is_subdomain(name):
            return {}
        try:
            return await self._kube.get(SECRETS, Key(key_of(obj).namespace, name))
        except (NotFound, Forbidden):
            return {}

    async def _delivery(self, inputs: Inputs[SpecT]) -> tuple[Delivery, Login]:
        """Return what became of the pending password of an asynchronous cloud, and the answer to a login with it.

        A login proves it, from the first observation after it was sent; where none can be tried, and none is required,
        it is enough that the cloud reports nothing under way once it has settled.
        """
        observed, stored, account = inputs.observed, inputs.stored, inputs.account
        if observed is None or stored is None or account is None or not stored.kept.pending:
            return Delivery.NONE, Login.NOT_TRIED
        if not inputs.eventual and account.clients.operations is None:
            return Delivery.NONE, Login.NOT_TRIED
        rotation, now = status_of(inputs.obj).get("rotation") or {}, self._settings.now()
        sent = rotation.get("sent", "") == keyed_hash(self._settings.hash_key, stored.kept.pending)
        sent = sent and inputs.operation_failed is None
        sent_at = instant(rotation.get("sentAt", ""))
        answer, is_under_way = Login.NOT_TRIED, observed.phase is not Phase.READY or observed.password_pending
        if observed.usable and not observed.password_elsewhere:
            credential = Credential(login_of_pending(inputs.logins, stored.kept), stored.kept.pending)
            answer = await self._tried(inputs, credential)
        if is_under_way and answer is not Login.OK:
            return (Delivery.UNDER_WAY if sent else Delivery.NONE), answer
        # An operation that ended has carried it out; what has none takes its time.
        settled = sent and (not inputs.eventual or sent_at is None or now - sent_at >= self._settings.settle)
        is_due = sent_at is None or now - sent_at >= _SEND_AGAIN_AFTER
        again = is_due and int(rotation.get("sends", 1)) < _MOST_SENDS
        effective = Login.REFUSED if observed.password_elsewhere else answer
        return delivery_of(effective, sent=sent, settled=settled, again=again, required=account.login_required), answer

    async def _login(self, inputs: Inputs[SpecT]) -> Login:
        """Try the published login where the server's row for it changed since it was last proven, or a try is due."""
        observed, stored, account = inputs.observed, inputs.stored, inputs.account
        is_lost = bool(_published_hash(status_of(inputs.obj))) and (stored is None or not stored.kept.current)
        if is_lost or (observed is not None and not observed.usable):
            # Its logins may have changed meanwhile: they are tried as soon as that can be done again.
            self._proofs.doubt(key_of(inputs.obj))
        if observed is None or stored is None or account is None or not stored.kept.current or not observed.usable:
            return Login.NOT_TRIED
        name = stored.kept.username
        credential = Credential(name, stored.kept.current)
        if self._rules.versions(observed).get(name, "absent") != proven_versions(inputs.obj).get(name):
            return await self._tried(inputs, credential)
        if self._rules.shows_passwords:
            return Login.NOT_TRIED
        return await self._proven_again(inputs, credential)

    async def _proven_again(self, inputs: Inputs[SpecT], credential: Credential) -> Login:
        """Try a proven login where nothing else would show a password that somebody else set."""
        key, now = key_of(inputs.obj), self._settings.now()
        in_doubt = _is_reset_by_others(inputs)
        if in_doubt:
            self._proofs.doubt(key)
        if not self._proofs.is_due(key, now) and not record.is_reconcile_requested(inputs.obj):
            return Login.NOT_TRIED
        async with self._proofs.slot() as is_free:
            if not is_free:
                return Login.NOT_TRIED
            answer = await self._tried(inputs, credential)
        if answer is Login.REFUSED:
            # A pass observes again before it acts, and the login is refused then as well.
            self._proofs.doubt(key)
        elif not in_doubt:
            self._proofs.record(key, now, is_answered=answer is not Login.UNKNOWN)
        return answer


def _is_reset_by_others(inputs: Inputs[Any]) -> bool:
    """Return whether the cloud is at work on a password that was not sent from here."""
    observed, stored = inputs.observed, inputs.stored
    sent = (status_of(inputs.obj).get("rotation") or {}).get("sent")
    pending = stored is not None and stored.kept.pending
    return observed is not None and observed.password_pending and not sent and not pending


def _with_active(target: Target[SpecT], kept: Kept, logins: tuple[str, str]) -> Target[SpecT]:
    """Return the target with the login that the Secret shows to be in use, where the status does not show it yet."""
    coming = login_of_pending(logins, kept) if kept.pending else ""
    if kept.current:
        retiring = former_login(target.active, kept) or target.retiring
        return replace(target, active=kept.username, published=kept.current, retiring=retiring, coming=coming)
    if kept.pending and not target.active:
        return replace(target, active=coming, coming=coming)
    return replace(target, coming=coming)


def _published_hash(status: Object) -> str:
    return str(((status.get("connection") or {}).get("passwordRef") or {}).get("hash", ""))
