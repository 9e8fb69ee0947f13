"""Which logins a server has, the administrator's or two by turns, and what keeps these true. Pure."""

from __future__ import annotations

from dataclasses import replace

from providers.azure.models import DISABLED, FlexibleServerParameters
from providers.azure.servers.facts import Facts
from providers.external.client import Target
from providers.external.observation import Change, Observed
from providers.external.sql import alternating

Where = Target[FlexibleServerParameters]
ADMINISTRATOR = "administrator"
_PATH = (ADMINISTRATOR, "password")


def logins(target: Where) -> tuple[str, str]:
    """Return the logins that alternate, or twice the administrator where it is the only one."""
    spec = target.spec
    version = (spec.version or "").partition(".")[0]
    is_new_enough = not version.isdigit() or int(version) >= alternating.OLDEST_MAJOR
    may_alternate = is_new_enough and spec.password_auth != DISABLED
    return alternating.logins_of(target, spec.administrator_login, may_alternate=may_alternate)


def alternates(target: Where) -> bool:
    """Return whether two logins take turns, or the one is about to give way to them."""
    first, second = logins(target)
    return first != second


def own_password(target: Where) -> str:
    """Return the password of the administrator where applications have logins of their own; nobody is given it.

    Azure refuses one that contains the administrator's name (`PasswordNotComplex`): no two letters stand together.
    """
    return ".".join(target.own_password)


def wanted(target: Where, database: str, *, setting: str = "") -> alternating.Wanted:
    """Return what is to be true of a server's roles; `setting` is the login whose password is being set."""
    return alternating.wanted_of(target, target.spec.administrator_login, database, setting=setting)


def differences(target: Where, seen: Observed[FlexibleServerParameters, Facts]) -> tuple[Change, ...]:
    """Return what differs about the roles; nothing where no session could read them."""
    facts = seen.facts
    if facts.administrator_refused:
        return (Change(_PATH, "the provider's own", "another one"),)
    if facts.roles is None:
        return ()
    database = "" if facts.database_missing else seen.endpoint.database
    changes = alternating.broken(wanted(target, database), facts.roles)
    return tuple(replace(change, first=facts.rights_awaited) for change in changes)


def is_of_logins(change: Change) -> bool:
    """Return whether a change is about roles or the administrator's password, and no field of a server."""
    return alternating.is_of_roles(change) or change.path == _PATH


def sets_administrator(change: Change) -> bool:
    """Return whether a change is the administrator's password, which a PATCH sets."""
    return change.path == _PATH
