"""The side effects of a password's step: pending before the cloud sees it, current once it was proven."""

from __future__ import annotations

from typing import Any, Generic, assert_never

from apis.identity import credentials_secret_key
from apis.passwords import new_password
from providers.credentials import passwords
from providers.credentials.login import log_in
from providers.credentials.passwords import (
    Await,
    Confirm,
    Introduce,
    Keep,
    Kept,
    Missing,
    PasswordStep,
    PutBack,
    Restore,
    Retire,
)
from providers.external.client import Fence
from providers.external.credential import Credential, Login
from providers.external.observation import Change, Observed, SpecT, describe
from providers.external.provider import ConfigT, Kind
from providers.managed.inputs import Inputs
from providers.managed.outcome import Event, Outcome
from providers.managed.writes import Writer, account_of, logins_of
from runtime.errors import Transient
from runtime.objects import key_of
from runtime.replaced import replace


class PasswordSetter(Generic[SpecT, ConfigT]):
    """Executes the step that `passwords.decide_password` chose."""

    def __init__(self, kind: Kind[SpecT, Any], writer: Writer[SpecT, ConfigT]) -> None:
        self._kind = kind
        self._writer = writer

    async def step(
        self, inputs: Inputs[SpecT], observed: Observed[SpecT, Any], outcome: Outcome[SpecT], fence: Fence
    ) -> None:
        """Set, put back or disable a login; what needs no call to the cloud is left to `publish_kept`."""
        step = inputs.step
        if isinstance(step, Keep | Missing | Restore | Await | Confirm):
            return
        logins = logins_of(inputs)
        match step:
            case Introduce(replaces=replaces):
                credential = await self.pending(inputs, outcome)
                outcome.operation = await logins.set(inputs.target, observed, credential, fence)
                if observed.password_elsewhere:
                    self._corrected(Change(("password",), "kept by Fairlead", "kept by another keeper"), outcome)
                if self._kind.asynchronous or outcome.operation is not None:
                    outcome.sent, outcome.resent = credential.password, True
                    return
                await self.prove(inputs, credential, outcome)
                self._rotated(credential.username, replaces, outcome)
            case PutBack(username=username, password=password):
                credential = Credential(username, password)
                outcome.operation = await logins.set(inputs.target, observed, credential, fence)
                if outcome.operation is None and await self._login(inputs, credential) is Login.REFUSED:
                    raise Transient(_refused_text(username))
                self._corrected(Change(("roles", username, "password"), "the published one", "another one"), outcome)
            case Retire(username=username):
                outcome.operation = await logins.disable(inputs.target, observed, username, fence)
                outcome.retired = True
            case never:
                assert_never(never)

    @staticmethod
    def _corrected(change: Change, outcome: Outcome[SpecT]) -> None:
        outcome.corrected += (change,)
        text = f"{change.shown}: found {describe(change.have)}, set {describe(change.want)}"
        outcome.events.append(Event("Normal", "DriftCorrected", text))

    def _rotated(self, username: str, replaces: str, outcome: Outcome[SpecT]) -> None:
        """Record for the report that a new password counts; one login that stays the same leaves none to retire."""
        outcome.rotated_from = replaces if replaces != username else ""
        if replaces:
            text = f"{username} follows {replaces}" if replaces != username else f"a new password of {username} counts"
            outcome.events.append(Event("Normal", "PasswordRotated", text))

    async def publish_kept(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Write what the credentials Secret lacks, without a call to the cloud."""
        step, ca = inputs.step, inputs.endpoint.ca
        if not isinstance(step, Restore | Confirm):
            await self._publish_ca(inputs, outcome)
            return
        outcome.restored = outcome.stored is None
        await self._writer.store_secret(inputs, Kept(step.password, "", step.username, ca), outcome)
        if inputs.foreign:
            name = credentials_secret_key(key_of(inputs.obj)).name
            text = f"Secret {name}: somebody else wrote {', '.join(inputs.foreign)}; what Fairlead knows is put back"
            outcome.events.append(Event("Normal", "DriftCorrected", text))
        if isinstance(step, Confirm):
            outcome.proven[step.username] = ""
            self._rotated(step.username, step.replaces, outcome)

    async def _publish_ca(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> None:
        """Write the certificates that the endpoint is verified by now, beside the passwords as they are."""
        stored, ca = outcome.stored, inputs.endpoint.ca
        if inputs.is_ca_outdated and stored is not None and stored.kept.ca != ca:
            await self._writer.store_secret(inputs, replace(stored.kept, ca=ca), outcome)

    async def pending(self, inputs: Inputs[SpecT], outcome: Outcome[SpecT]) -> Credential:
        """Write the password, which `with_password` made, to the Secret before the cloud sees it."""
        step, kept = inputs.step, outcome.stored.kept if outcome.stored is not None else Kept()
        if not isinstance(step, Introduce):
            raise TypeError("only a password that is introduced is ever pending")
        credential = Credential(step.username, step.password)
        if kept.pending != credential.password:
            ca = inputs.endpoint.ca
            username = kept.username if kept.current else credential.username
            await self._writer.store_secret(inputs, Kept(kept.current, credential.password, username, ca), outcome)
        return credential

    async def prove(self, inputs: Inputs[SpecT], credential: Credential, outcome: Outcome[SpecT]) -> None:
        """Publish a password on proof: a login, or, where none can be tried, the call that succeeded."""
        answer = await self._login(inputs, credential)
        if answer is Login.REFUSED:
            raise Transient(_refused_text(credential.username))
        if answer is not Login.OK and account_of(inputs).login_required:
            raise Transient(passwords.unproven_text(str(inputs.endpoint)))
        ca = inputs.endpoint.ca
        await self._writer.store_secret(inputs, Kept(credential.password, "", credential.username, ca), outcome)
        outcome.proven[credential.username] = ""

    async def _login(self, inputs: Inputs[SpecT], credential: Credential) -> Login:
        rules = self._kind.logins
        if rules is None:
            return Login.UNKNOWN
        return await log_in(account_of(inputs), rules, inputs.target, inputs.endpoint, credential)


def with_password(inputs: Inputs[SpecT], step: PasswordStep) -> Inputs[SpecT]:
    """Return the inputs with that step; a password that is to be made is made, so that the intent can name it."""
    if isinstance(step, Introduce) and not step.password:
        step = replace(step, password=new_password())
    return replace(inputs, step=step)


def _refused_text(username: str) -> str:
    """Return the message when a password that was just set is refused."""
    return (
        f"the server refuses the password that {username} was just given; where it refuses every login from here, set"
        " loginCheck to Off in the ProviderConfig"
    )
