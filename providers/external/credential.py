"""A login, its password, and what a server answers to them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


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
