"""Which of the texts in a credentials Secret count. Pure.

The Secret lies in the tenant's namespace, so whatever it holds is input. A login counts only by a name that follows
from the resource, a password only by a keyed hash in the status, which no tenant can write; the rest was written by
somebody else and is never acted on.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from providers.credentials.passwords import Kept, keyed_hash, other, refuse_password


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the status records about a resource's passwords.

    `username` is the published login, `published` the keyed hash of its password. `coming` is the keyed hash of a login
    and its password that are on their way, `sent` that of a password which an asynchronous cloud accepted. `is_made`: a
    database was Ready before; where the hash of a published password is lost, there is none to compare with.
    """

    username: str = ""
    published: str = ""
    coming: str = ""
    sent: str = ""
    is_made: bool = False


@dataclass(frozen=True, slots=True)
class Unproven:
    """A password under `key` that no hash proves: only a login that succeeds shows that it is right."""

    key: Literal["current", "pending"]
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """What counts of a Secret; `foreign` names the keys that somebody else wrote, and `unproven` does not count yet.

    `is_either`: the only login may have the current password, or one that was on its way when the status was lost.
    """

    kept: Kept = field(repr=False)
    foreign: tuple[str, ...] = ()
    unproven: Unproven | None = None
    is_either: bool = False

    def proven(self) -> Checked:
        """Return the same once a login showed that the unproven password is right."""
        trial = self.unproven
        if trial is None:
            return self
        kept = replace(self.kept, pending=trial.password, username=self.kept.username or trial.username)
        if trial.key == "current":
            kept = replace(self.kept, current=trial.password, username=trial.username)
        return Checked(kept, tuple(name for name in self.foreign if name != trial.key))


def recorded_in(status: Mapping[str, Any], *, is_made: bool) -> Recorded:
    """Read what the status records."""
    connection, rotation = status.get("connection") or {}, status.get("rotation") or {}
    return Recorded(
        str(connection.get("username", "")),
        str((connection.get("passwordRef") or {}).get("hash", "")),
        str(rotation.get("coming", "")),
        str(rotation.get("sent", "")),
        is_made,
    )


def coming_hash(key: bytes, username: str, password: str) -> str:
    """Return the keyed hash under which the status records a password that is not published yet, and its login."""
    return hmac.new(key, f"{username}\0{password}".encode(), hashlib.sha256).hexdigest()[:32]


def still_coming(key: bytes, logins: tuple[str, str], kept: Kept, connection: Mapping[str, Any]) -> str:
    """Return the hash of what the Secret holds and the status does not publish, empty when there is nothing."""
    if kept.pending:
        return coming_hash(key, login_of_pending(logins, kept), kept.pending)
    published = (connection.get("passwordRef") or {}).get("hash", "")
    if kept.current and keyed_hash(key, kept.current) != published:
        return coming_hash(key, kept.username, kept.current)
    return ""


def login_of_pending(logins: tuple[str, str], kept: Kept) -> str:
    """Return whose password the pending one is: beside a current one the other login's."""
    return other(logins, kept.username) if kept.current else (kept.username or logins[0])


def check(kept: Kept, recorded: Recorded, logins: tuple[str, str], key: bytes) -> Checked:
    """Return what counts of a Secret's content."""
    foreign = [name for name, text in (("current", kept.current), ("pending", kept.pending)) if _is_unfit(text)]
    if kept.username and kept.username not in logins:
        foreign.append("username")
    clean = Kept(*("" if name in foreign else getattr(kept, name) for name in ("current", "pending", "username")))
    clean = replace(clean, ca=kept.ca)
    checked = _with_current(clean, tuple(foreign), recorded, logins, key)
    return _with_pending(checked, clean.pending, recorded, logins, key)


def _is_unfit(text: str) -> bool:
    return bool(text) and bool(refuse_password(text))


def _with_current(
    clean: Kept, foreign: tuple[str, ...], recorded: Recorded, logins: tuple[str, str], key: bytes
) -> Checked:
    """Check the current password and its login; the pending one is left out."""
    current = clean.current
    published_login = recorded.username if recorded.username in logins else ""
    bare = replace(clean, current="", pending="")
    if not current:
        return Checked(bare, foreign)
    if recorded.published and keyed_hash(key, current) == recorded.published:
        username = published_login or clean.username or logins[0]
        foreign_name = ("username",) if clean.username != username and "username" not in foreign else ()
        return Checked(replace(bare, current=current, username=username), foreign + foreign_name)
    for username in dict.fromkeys((clean.username or logins[0], *logins)):
        if coming_hash(key, username, current) == recorded.coming:
            return Checked(replace(bare, current=current, username=username), foreign)
    username = clean.username or published_login
    if recorded.sent and keyed_hash(key, current) == recorded.sent:
        return Checked(replace(bare, current=current, username=username or logins[0]), foreign)
    if recorded.is_made and not recorded.published and clean.username:
        # The status was lost, and with it what a password could be compared with: the login is tried soon.
        return Checked(replace(bare, current=current), foreign)
    unproven = Unproven("current", username, current) if recorded.is_made and username else None
    return Checked(replace(bare, username=published_login), (*foreign, "current"), unproven)


def _with_pending(checked: Checked, pending: str, recorded: Recorded, logins: tuple[str, str], key: bytes) -> Checked:
    """Check the pending password, which is that of the login after the current one."""
    kept, alternate = replace(checked.kept, pending=pending), logins[0] != logins[1]
    if not pending:
        return checked
    is_sent = bool(recorded.sent) and keyed_hash(key, pending) == recorded.sent
    if alternate and recorded.username in logins and not kept.current:
        # The current one is lost. What was sent is the other login's, whatever the Secret holds; of anything else the
        # login is not known: a new one is made on request.
        sent = replace(kept, username=other(logins, recorded.username))
        return replace(checked, kept=sent) if is_sent else checked
    is_coming = coming_hash(key, login_of_pending(logins, kept), pending) == recorded.coming
    if is_coming or is_sent:
        return replace(checked, kept=kept)
    # One login alone may have taken it before the status was lost; of two, the other one is given a new one.
    trial = Unproven("pending", logins[0], pending) if recorded.is_made and not alternate else None
    return Checked(checked.kept, (*checked.foreign, "pending"), checked.unproven or trial)
