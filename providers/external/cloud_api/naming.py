"""Names in a cloud made by rule, where letters, digits and single dashes are allowed. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from providers.external.ownership import Identity
from providers.external.provider import Naming

_CLAIM_LENGTH = 30
_BY_RULE = re.compile(r"-([a-z2-7]{10})")
_TAIL = 11  # a dash and the hash


def name_of(identity: Identity, prefix: str) -> str:
    """Return `<prefix><claim, 30>-<hash>`: at most 41 characters behind the prefix, lower-case, no dash last.

    It begins with the prefix, which the ProviderConfig's schema lets begin with a letter.
    """
    claim = re.sub(r"[^a-z0-9]+", "-", identity.claim_name.lower())[:_CLAIM_LENGTH].strip("-")
    return f"{prefix}{claim}-{identity.hash}" if claim else f"{prefix}{identity.hash}"


def hash_in(name: str) -> str:
    """Return the hash that a name by rule ends in, empty for any other name."""
    match = _BY_RULE.fullmatch(name[-_TAIL:])
    return match[1] if match else ""


NAMING: Final[Naming[Any]] = Naming(
    name=lambda _spec, identity, prefix: name_of(identity, prefix), hash_in=lambda _spec, name: hash_in(name)
)
"""Of a kind whose names follow from identity and prefix alone."""
