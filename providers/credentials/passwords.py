"""What to do about a password: create, prove by a login, publish, rotate, put back, disable. Pure.

A password is `pending` before the server sees it and `current` once it was proven. Two logins alternate in one owner
role, so that a rotation never takes the published password away before the next one was proven.
"""

from __future__ import annotations

import hashlib
import hmac
import string
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TypeAlias, assert_never

from providers.external.credential import Login

ALPHABET = string.ascii_letters + string.digits
SHORTEST, LONGEST = 8, 128


class Delivery(Enum):
    """What became of a pending password that the cloud accepted: proven, on its way, refused, or nothing is known.

    UNPROVEN: the cloud shows nothing under way any more, no login could be tried, and one is required.
    """

    NONE = "none"
    REFUSED = "refused"
    UNDER_WAY = "under way"
    UNPROVEN = "unproven"
    PROVEN = "proven"


@dataclass(frozen=True, slots=True)
class Kept:
    """The credentials Secret as it is; empty texts where a key is missing."""

    current: str = ""
    pending: str = ""
    username: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """The credentials Secret with what is needed to replace exactly this version."""

    kept: Kept = field(repr=False)
    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class PasswordInputs:
    """All that the decision reads.

    `logins` are the names that alternate, or twice the administrator's where there is no other; `user_password` is a
    user's own ("" when passwords are made here); `published`: a password was published before; `recovered` is one taken
    back from the connection Secret. `delivery` is what became of the pending one, `pending_login` the answer to a login
    with it; `foreign`: the Secret also holds what somebody else wrote, which is not in `kept`; `administrator` is a
    login of the cloud's own that was published before there were two: its password is reset only on request.
    `elsewhere`: another keeper of passwords took the login over; `superseded`: a password was sent after the published
    one, and may count by now. `former_in_use`: the claim's connection Secret still has the login whose grace is over.
    `is_either`: the current one counts, or another that was on its way, and nothing shows which. `taken_over`: the
    login was there before and nothing was published since; `user_delivery` is what a login with the user's own shows.
    """

    logins: tuple[str, str]
    kept: Kept | None
    published: bool
    login: Login
    token: str = ""
    done_token: str | None = None
    user_password: str = ""
    recovered: str = ""
    published_login: str = ""
    retiring: str = ""
    administrator: str = ""
    retire_at: datetime | None = None
    in_grace: bool = False  # The login that a rotation would take works with its former password until `retire_at`.
    delivery: Delivery = Delivery.NONE
    pending_login: Login = Login.NOT_TRIED
    foreign: bool = False
    elsewhere: bool = False
    superseded: bool = False
    former_in_use: bool = False
    is_either: bool = False
    taken_over: bool = False
    user_delivery: Delivery = Delivery.NONE

    @property
    def is_rotation_waiting(self) -> bool:
        """Whether a rotation was requested that would take the login whose grace is not over."""
        return (
            self.in_grace
            and self.kept is not None
            and bool(self.kept.current)
            and _is_rotation_requested(self, self.kept)
        )

    @property
    def retirable(self) -> frozenset[str]:
        """The logins that may be switched off: those by rule, and the administrator's where it was one of them."""
        return frozenset({*self.logins, self.administrator} - {""})

    @property
    def alternates(self) -> bool:
        """Whether two logins take turns, so that the former works on while the next is proven."""
        return self.logins[0] != self.logins[1]


@dataclass(frozen=True, slots=True)
class Keep:
    """The published password works."""


@dataclass(frozen=True, slots=True)
class Introduce:
    """Set the password of `username`: the pending one, or a new one (`password` empty: to be made)."""

    username: str
    password: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class PutBack:
    """The published login was refused: set the published password again."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Await:
    """The cloud accepted the password and has not finished: old and new may both be refused or both work.

    `unproven`: it has finished, and only a login that proves it is missing. `closely`: a login shows when it counts,
    and from then on the former one is refused.
    """

    unproven: bool = False
    closely: bool = False


@dataclass(frozen=True, slots=True)
class Confirm:
    """The cloud shows that the pending password counts: publish it; `replaces` is the login published before."""

    username: str
    password: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """Write the credentials Secret again: it was lost or changed by somebody else, and the password is known."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Retire:
    """Disable the former login: its grace is over."""

    username: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The password is not known; only the rotation token makes a new one. `refused`: one is known and fails."""

    refused: bool = False


PasswordStep: TypeAlias = Keep | Introduce | PutBack | Await | Confirm | Restore | Retire | Missing


def delivery_of(answer: Login, *, sent: bool, settled: bool, again: bool, required: bool) -> Delivery:
    """Return what became of a pending password.

    `sent` and accepted, `settled` as far as the cloud shows; `again`: it may be resent; `required`: only a login proves
    it.
    """
    match answer:
        case Login.OK:
            return Delivery.PROVEN
        case Login.REFUSED if settled:
            return Delivery.NONE if again else Delivery.REFUSED
        case _ if settled:
            return Delivery.UNPROVEN if required else Delivery.PROVEN
        case _:
            return Delivery.UNDER_WAY if sent else Delivery.NONE


def other(logins: tuple[str, str], username: str) -> str:
    """Return the login that is not `username`; the first when `username` is neither."""
    return logins[1] if username == logins[0] else logins[0]


def former_login(published_login: str, kept: Kept | None) -> str:
    """Return the login that the status still publishes while the credentials have gone on to the next, else nothing.

    A crash came between the two writes: the rotation is done, its report and the former login's grace are not begun.
    """
    if kept is None or not kept.current or not published_login or kept.username in ("", published_login):
        return ""
    return published_login


def decide_password(  # noqa: PLR0911 - each return is a row of the table
    inputs: PasswordInputs, now: datetime
) -> PasswordStep:
    """Choose the one step about the password; every branch is a row of the test table."""
    kept = inputs.kept
    if kept is None or not (kept.current or kept.pending):
        return _lost(inputs)
    if kept.pending:
        return _pending(inputs, kept)
    if inputs.elsewhere or inputs.is_either or _is_rotation_due(inputs, kept):
        return Introduce(other(inputs.logins, kept.username), inputs.user_password, replaces=kept.username)
    if inputs.login is Login.REFUSED:
        # The administrator's password is not put back against whoever changed it.
        is_ours = inputs.alternates and kept.username != inputs.administrator
        return PutBack(kept.username, kept.current) if is_ours else Missing(refused=True)
    if inputs.foreign:
        return Restore(kept.username, kept.current)
    is_over = inputs.retire_at is not None and now >= inputs.retire_at
    if inputs.retiring in inputs.retirable and is_over and not inputs.former_in_use:
        return Retire(inputs.retiring)
    return Keep()


def _pending(inputs: PasswordInputs, kept: Kept) -> PasswordStep:
    target = other(inputs.logins, kept.username) if kept.current else (kept.username or inputs.logins[0])
    former = kept.username if kept.current else inputs.published_login
    replaces = former if kept.current or former != target else ""
    match inputs.delivery:
        case Delivery.PROVEN:
            return Confirm(target, kept.pending, replaces)
        case Delivery.REFUSED | Delivery.NONE | Delivery.UNPROVEN if (
            inputs.user_password and inputs.user_password != kept.pending
        ):
            return Introduce(target, inputs.user_password, replaces)
        case Delivery.UNDER_WAY | Delivery.UNPROVEN:
            closely = inputs.pending_login is Login.REFUSED and bool(kept.current) and not inputs.alternates
            return Await(unproven=inputs.delivery is Delivery.UNPROVEN, closely=closely)
        case Delivery.REFUSED if _is_rotation_due(inputs, kept) and not inputs.user_password:
            return Introduce(target, "", replaces)
        case Delivery.REFUSED:
            return Missing(refused=True)
        case Delivery.NONE:
            return Introduce(target, kept.pending, replaces)
        case never:
            assert_never(never)


def _is_rotation_due(inputs: PasswordInputs, kept: Kept) -> bool:
    return not inputs.in_grace and _is_rotation_requested(inputs, kept)


def _is_rotation_requested(inputs: PasswordInputs, kept: Kept) -> bool:
    if inputs.user_password:
        return inputs.user_password != kept.current
    return bool(inputs.token) and inputs.done_token is not None and inputs.token != inputs.done_token


def _lost(inputs: PasswordInputs) -> PasswordStep:
    if not inputs.published:
        return Introduce(inputs.logins[0], inputs.user_password)
    is_stale = inputs.elsewhere or inputs.superseded
    if inputs.taken_over and inputs.user_password and not is_stale:
        return _taken_over(inputs)
    if inputs.recovered and not is_stale:
        return Restore(inputs.published_login or inputs.logins[0], inputs.recovered)
    if is_stale or inputs.user_password or (inputs.token and inputs.token != (inputs.done_token or "")):
        return Introduce(
            other(inputs.logins, inputs.published_login), inputs.user_password, replaces=inputs.published_login
        )
    return Missing(refused=inputs.login is Login.REFUSED)


def _taken_over(inputs: PasswordInputs) -> PasswordStep:
    """Publish the password with which applications come already, and never set it."""
    match inputs.user_delivery:
        case Delivery.REFUSED:
            return Missing(refused=True)
        case Delivery.UNPROVEN:
            return Await(unproven=True)
        case _:
            return Restore(inputs.logins[0], inputs.user_password)


def in_grace(
    logins: tuple[str, str], retiring: str, retire_at: datetime | None, now: datetime, *, administrator: str = ""
) -> bool:
    """Return whether the former one of two logins that alternate still works by its former password."""
    is_former = bool(retiring) and retiring in {*logins, administrator}
    return logins[0] != logins[1] and is_former and retire_at is not None and now < retire_at


def waiting_text(inputs: PasswordInputs) -> str:
    """Return the message of a rotation, or the end of one, that waits for whoever uses the login before."""
    if inputs.former_in_use:
        return (
            f"login {inputs.retiring} of the rotation before is in the claim's connection Secret still: it works until"
            " the composer has written the new one there; passwordRotation.force ends it at once"
        )
    until = "" if inputs.retire_at is None else f" until {inputs.retire_at:%Y-%m-%dT%H:%M:%SZ}"
    return (
        f"the next rotation waits{until}: login {inputs.retiring} of the one before works until then;"
        " passwordRotation.force ends it at once"
    )


def unproven_text(where: str) -> str:
    """Return the message of a password that counts as far as is known, where a login has to prove it."""
    return (
        f"the password was accepted, and no login proves it: {where} was not reached, or did not answer as a PostgreSQL"
        " that takes logins; let the provider reach it, or set loginCheck to Auto in the ProviderConfig"
    )


def refuse_password(password: str) -> str:
    """Return which rule a user's own password breaks, never the password; empty when it is fine."""
    if not SHORTEST <= len(password) <= LONGEST:
        return f"a password has {SHORTEST} to {LONGEST} characters"
    if any(not "!" <= character <= "~" for character in password):
        return "a password has printable ASCII characters only, without spaces"
    return ""


def well_mixed(password: str) -> bool:
    """Return whether a made password has all classes of characters that clouds require."""
    return all(
        any(character in kind for character in password)
        for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    )


def own_password(key: bytes, owner: str) -> str:
    """Return a password for a login that is published to nobody: it follows from the provider's key, stored nowhere.

    HMAC-SHA-256 as a pseudorandom function (RFC 2104), separated from other uses of the key by its prefix.
    """
    for number in range(1000):
        digest = hmac.new(key, f"administrator's password {number}\0{owner}".encode(), hashlib.sha256).digest()
        password = "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest)
        if well_mixed(password):
            return password
    raise AssertionError("no password of 32 letters and digits is well mixed")


def keyed_hash(key: bytes, password: str) -> str:
    """Return an HMAC that changes with the password and shows nothing without the key (RFC 2104, SHA-256)."""
    return hmac.new(key, password.encode(), hashlib.sha256).hexdigest()[:32]
