"""The side effects of a password's step: pending before the cloud sees it, current once it was proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, assert_never

from apis.identity import credentials_secret_key
from providers.credentials import passwords, secrets
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
from providers.managed.outcome import Outcome, Said
from providers.managed.writes import Writing, account_of, logins_of
from runtime.errors import Transient
from runtime.objects import key_of


class Delivering(Generic[SpecT, ConfigT]):
    """Carries out what `passwords.decide_password` chose."""

    def __init__(self, kind: Kind[SpecT], writing: Writing[SpecT, ConfigT]) -> None:
        self._kind = kind
        self._writing = writing

    async def step(self, inputs: Inputs[SpecT], observed: Observed[SpecT], out: Outcome[SpecT], fence: Fence) -> None:
        """Give, put back or switch off a login; what needs no call of the cloud is left to `publish_kept`."""
        step = inputs.step
        if isinstance(step, Keep | Missing | Restore | Await | Confirm):
            return
        logins = logins_of(inputs)
        match step:
            case Introduce(replaces=replaces):
                credential = await self.pending(inputs, out)
                await logins.set_password(inputs.target, observed, credential, fence)
                if observed.password_elsewhere:
                    self._corrected(Change(("password",), "kept by Fairlead", "kept by another keeper"), out)
                if self._kind.asynchronous:
                    out.sent, out.resent = credential.password, True
                    return
                await self.prove(inputs, credential, out)
                self._rotated(credential.username, replaces, out)
            case PutBack(username=username, password=password):
                credential = Credential(username, password)
                await logins.set_password(inputs.target, observed, credential, fence)
                if await logins.login(inputs.target, credential) is Login.REFUSED:
                    raise Transient(_refused_text(username))
                self._corrected(Change(("roles", username, "password"), "the published one", "another one"), out)
            case Retire(username=username):
                await logins.disable(inputs.target, username, fence)
                out.retired = True
            case never:
                assert_never(never)

    @staticmethod
    def _corrected(change: Change, out: Outcome[SpecT]) -> None:
        out.corrected += (change,)
        text = f"{change.shown}: found {describe(change.have)}, set {describe(change.want)}"
        out.events.append(Said("Normal", "DriftCorrected", text))

    def _rotated(self, username: str, replaces: str, out: Outcome[SpecT]) -> None:
        """Note for the report that a new password counts; one login that stays the same leaves none to retire."""
        out.rotated_from = replaces if replaces != username else ""
        if replaces:
            how = f"{username} follows {replaces}" if replaces != username else f"a new password of {username} counts"
            out.events.append(Said("Normal", "PasswordRotated", how))

    async def publish_kept(self, inputs: Inputs[SpecT], out: Outcome[SpecT]) -> None:
        """Write what the credentials Secret lacks; nothing is asked of the cloud."""
        step = inputs.step
        if not isinstance(step, Restore | Confirm):
            return
        ca = inputs.endpoint.ca
        await self._writing.store_secret(inputs, Kept(step.password, "", step.username, ca), out)
        if inputs.foreign:
            name = credentials_secret_key(key_of(inputs.obj)).name
            text = f"Secret {name}: somebody else wrote {', '.join(inputs.foreign)}; what Fairlead knows is put back"
            out.events.append(Said("Normal", "DriftCorrected", text))
        if isinstance(step, Confirm):
            out.proven[step.username] = ""
            self._rotated(step.username, step.replaces, out)

    async def pending(self, inputs: Inputs[SpecT], out: Outcome[SpecT]) -> Credential:
        """Write the password, which `with_password` made, down before the cloud sees it."""
        step, kept = inputs.step, out.stored.kept if out.stored is not None else Kept()
        if not isinstance(step, Introduce):
            raise TypeError("only a password that is introduced is ever pending")
        credential = Credential(step.username, step.password)
        if kept.pending != credential.password:
            ca = inputs.endpoint.ca
            username = kept.username if kept.current else credential.username
            await self._writing.store_secret(inputs, Kept(kept.current, credential.password, username, ca), out)
        return credential

    async def prove(self, inputs: Inputs[SpecT], credential: Credential, out: Outcome[SpecT]) -> None:
        """Publish a password on proof: a login, or, where none can be tried, the call that succeeded."""
        answer = await logins_of(inputs).login(inputs.target, credential)
        if answer is Login.REFUSED:
            raise Transient(_refused_text(credential.username))
        if answer is not Login.OK and account_of(inputs).login_required:
            raise Transient(passwords.unproven_text(str(inputs.endpoint)))
        ca = inputs.endpoint.ca
        await self._writing.store_secret(inputs, Kept(credential.password, "", credential.username, ca), out)
        out.proven[credential.username] = ""


def with_password(inputs: Inputs[SpecT], step: PasswordStep) -> Inputs[SpecT]:
    """Return the inputs with that step; a password that is to be made is made, so that the intent can name it."""
    if isinstance(step, Introduce) and not step.password:
        step = replace(step, password=secrets.new_password())
    return replace(inputs, step=step)


def _refused_text(username: str) -> str:
    """Return what to say when a password that was just set is refused."""
    return (
        f"the server refuses the password that {username} was just given; where it refuses every login from here, set"
        " loginCheck to Off in the ProviderConfig"
    )
