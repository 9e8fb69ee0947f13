"""What to do about a password: made, proven by a login, published, rotated, put back, switched off. Pure.

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
LENGTH = 32
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
class PasswordView:
    """All that the decision looks at.

    `logins` are the names that alternate, or twice the administrator's where there is no other; `given` a user's own
    password ("" when passwords are made here); `published` tells whether a password was ever handed out; `recovered` is
    one taken back from the connection Secret. `delivery` says what became of the pending one, `pending_login` what a
    login with it did; `foreign` tells that the Secret also holds what somebody else wrote, which is not in `kept`;
    `administrator` is a login of the cloud's own making that was published before there were two: its password is reset
    by nobody but who asks for it;
    `elsewhere` that another keeper of passwords took the login over; `superseded` that a password was sent after the
    published one, and may count by now; `ca_renewed` that the Secret holds another authority than servers have now.
    """

    logins: tuple[str, str]
    kept: Kept | None
    published: bool
    login: Login
    token: str = ""
    done_token: str | None = None
    given: str = ""
    recovered: str = ""
    published_login: str = ""
    retiring: str = ""
    administrator: str = ""
    retire_at: datetime | None = None
    in_grace: bool = False  # The login that a rotation would take shall work by its former password until `retire_at`.
    delivery: Delivery = Delivery.NONE
    pending_login: Login = Login.NOT_TRIED
    foreign: bool = False
    elsewhere: bool = False
    superseded: bool = False
    ca_renewed: bool = False

    @property
    def is_rotation_waiting(self) -> bool:
        """Whether a rotation is asked for that would take the login whose grace is not over."""
        return self.in_grace and self.kept is not None and bool(self.kept.current) and _is_another(self, self.kept)

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
    """Give `username` the password: the pending one, or a new one (`password` empty: to be made)."""

    username: str
    password: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class PutBack:
    """The published login was refused: give it the published password again."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Await:
    """The cloud accepted the password and has not finished: old and new may both be refused or both work.

    `unproven`: it has finished, and only a login that proves it is missing. `closely`: a login shows when it counts,
    and from then on nobody gets in by the former one.
    """

    unproven: bool = False
    closely: bool = False


@dataclass(frozen=True, slots=True)
class Confirm:
    """The cloud shows that the pending password counts: publish it; `replaces` tells that another was published."""

    username: str
    password: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """Write the credentials Secret anew: it was lost or changed by somebody else, and the password is known."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Retire:
    """Switch off the former login: its grace is over."""

    username: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Nobody knows the password; only the rotation token makes a new one. `refused`: one is known and fails."""

    refused: bool = False


PasswordStep: TypeAlias = Keep | Introduce | PutBack | Await | Confirm | Restore | Retire | Missing


def delivery_of(answer: Login, *, sent: bool, settled: bool, again: bool, required: bool) -> Delivery:
    """Judge a pending password.

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
    view: PasswordView, now: datetime
) -> PasswordStep:
    """Choose the one step about the password; every branch is a row of the test table."""
    kept = view.kept
    if kept is None or not (kept.current or kept.pending):
        return _lost(view)
    if kept.pending:
        return _pending(view, kept)
    if view.elsewhere or _rotation_asked(view, kept):
        return Introduce(other(view.logins, kept.username), view.given, replaces=kept.username)
    if view.login is Login.REFUSED:
        # The administrator's password is not set back behind the back of whoever changed it.
        is_ours = view.alternates and kept.username != view.administrator
        return PutBack(kept.username, kept.current) if is_ours else Missing(refused=True)
    if view.foreign or view.ca_renewed:
        return Restore(kept.username, kept.current)
    if view.retiring in view.retirable and view.retire_at is not None and now >= view.retire_at:
        return Retire(view.retiring)
    return Keep()


def _pending(view: PasswordView, kept: Kept) -> PasswordStep:
    target = other(view.logins, kept.username) if kept.current else (kept.username or view.logins[0])
    former = kept.username if kept.current else view.published_login
    replaces = former if kept.current or former != target else ""
    match view.delivery:
        case Delivery.PROVEN:
            return Confirm(target, kept.pending, replaces)
        case Delivery.REFUSED | Delivery.NONE | Delivery.UNPROVEN if view.given and view.given != kept.pending:
            return Introduce(target, view.given, replaces)
        case Delivery.UNDER_WAY | Delivery.UNPROVEN:
            closely = view.pending_login is Login.REFUSED and bool(kept.current) and not view.alternates
            return Await(unproven=view.delivery is Delivery.UNPROVEN, closely=closely)
        case Delivery.REFUSED if _rotation_asked(view, kept) and not view.given:
            return Introduce(target, "", replaces)
        case Delivery.REFUSED:
            return Missing(refused=True)
        case Delivery.NONE:
            return Introduce(target, kept.pending, replaces)
        case never:
            assert_never(never)


def _rotation_asked(view: PasswordView, kept: Kept) -> bool:
    return not view.in_grace and _is_another(view, kept)


def _is_another(view: PasswordView, kept: Kept) -> bool:
    if view.given:
        return view.given != kept.current
    return bool(view.token) and view.done_token is not None and view.token != view.done_token


def _lost(view: PasswordView) -> PasswordStep:
    if not view.published:
        return Introduce(view.logins[0], view.given)
    doomed = view.elsewhere or view.superseded
    if view.recovered and not doomed:
        return Restore(view.published_login or view.logins[0], view.recovered)
    if doomed or view.given or (view.token and view.token != (view.done_token or "")):
        return Introduce(other(view.logins, view.published_login), view.given, replaces=view.published_login)
    return Missing(refused=view.login is Login.REFUSED)


def in_grace(
    logins: tuple[str, str], retiring: str, retire_at: datetime | None, now: datetime, *, administrator: str = ""
) -> bool:
    """Tell whether the former one of two logins that alternate still works by its former password."""
    is_former = bool(retiring) and retiring in {*logins, administrator}
    return logins[0] != logins[1] and is_former and retire_at is not None and now < retire_at


def waiting_text(view: PasswordView) -> str:
    """Return what to say of a rotation that waits for the grace of the one before."""
    until = "" if view.retire_at is None else f" until {view.retire_at:%Y-%m-%dT%H:%M:%SZ}"
    return (
        f"the next rotation waits{until}: login {view.retiring} of the one before works until then;"
        " passwordRotation.force ends it at once"
    )


def unproven_text(where: str) -> str:
    """Return what to say of a password that counts as far as can be seen, where a login has to show it."""
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
    """Tell whether a made password has all classes of characters that clouds ask for."""
    return all(
        any(character in kind for character in password)
        for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    )


def own_password(key: bytes, whose: str) -> str:
    """Return a password for a login that nobody is given: it follows from the provider's key, and is stored nowhere.

    HMAC-SHA-256 as a pseudorandom function (RFC 2104), told apart from the other uses of the key by its first words.
    """
    for number in range(1000):
        digest = hmac.new(key, f"administrator's password {number}\0{whose}".encode(), hashlib.sha256).digest()
        password = "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest)
        if well_mixed(password):
            return password
    raise AssertionError("no password of 32 letters and digits is well mixed")


def keyed_hash(key: bytes, password: str) -> str:
    """Return an HMAC that changes with the password and tells nothing without the key (RFC 2104, SHA-256)."""
    return hmac.new(key, password.encode(), hashlib.sha256).hexdigest()[:32]
