"""A login, its password, and what a server answers to them. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from providers.external.endpoint import Endpoint


class Login(Enum):
    """The three answers of a login; what is not clearly a refusal is unknown."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Credential:
    """A login and its password; never printed."""

    username: str
    password: str = field(repr=False)


class LoginAnswer(NamedTuple):
    """What a login was answered, with the SQLSTATE of a refusal; `code` is empty where the server gave none.

    `databases` are the server's databases with their oids, where the login listed them; None where it did not.
    """

    login: Login
    code: str = ""
    databases: tuple[tuple[str, int], ...] | None = None


NO_ANSWER = LoginAnswer(Login.UNKNOWN)
TryLogin: TypeAlias = Callable[[Endpoint, Credential], Awaitable[LoginAnswer]]
