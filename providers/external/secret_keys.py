"""The named keys of a credentials Secret; a value is never part of a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runtime.errors import Blocked, Terminal


def required(name: str, secret: Mapping[str, str], key: str) -> str:
    """Return the value of a key.

    Raises:
        Blocked: `CredentialsMissing`: there is none.
    """
    value = secret.get(key, "")
    if not value:
        raise Blocked("CredentialsMissing", f"Secret {name} has no key {key}")
    return value


def refuse_other_keys(name: str, secret: Mapping[str, str], keys: Sequence[str]) -> None:
    """Refuse a Secret with keys that are not read: an SDK's profile or file in it may name a command to run.

    Raises:
        Terminal: `CredentialsForbidden`.
    """
    others = sorted(set(secret) - set(keys))
    if others:
        raise Terminal(
            "CredentialsForbidden",
            f"Secret {name} has key {others[0]}; only {', '.join(keys)} are read, no profile and no file of the SDK",
        )


def refuse_white_space(name: str, secret: Mapping[str, str], keys: Sequence[str]) -> None:
    """Refuse values that are not printable ASCII without white space, as a line's end at the end of a file is.

    Raises:
        Terminal: `CredentialsInvalid`.
    """
    for key in keys:
        if re.search(r"[^!-~]", secret.get(key, "")):
            raise Terminal(
                "CredentialsInvalid", f"key {key} of Secret {name} holds white space or a line's end; write it without"
            )
