"""`status.connection`: how what stands behind a managed resource is reached. Providers write it, the composer reads it.

Pure.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from runtime.objects import Object


class SecretRef(msgspec.Struct, frozen=True):
    """Where a value is kept, in the object's namespace; `kind` Secret or ConfigMap. `hash` changes with the value."""

    name: str
    key: str
    kind: str = "Secret"
    hash: str = ""


class Connection(msgspec.Struct, frozen=True, rename="camel"):
    """Host, port, database and login of a database, and where its password and its authority's certificates are."""

    host: str
    port: int
    database: str
    username: str
    sslmode: str
    password_ref: SecretRef
    ca_ref: SecretRef | UnsetType = UNSET


def dump(connection: Connection) -> Object:
    """Return a connection as a status holds it; a password is always in a Secret, so its `kind` is left out."""
    written: Object = msgspec.to_builtins(connection)
    del written["passwordRef"]["kind"]
    return written


def load(status: Object) -> Connection:
    """Return the connection of a status; raises msgspec.ValidationError, which says what is missing."""
    return msgspec.convert(status.get("connection") or {}, Connection)


class PasswordRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A password that the composer made: the name of its Secret, and of that of the rotation before, which goes."""

    name: str
    secret: str
    former: str = ""
