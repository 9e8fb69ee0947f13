"""The connection Secret: from what a child publishes to the keys an application reads. Pure.

Keys by the Service Binding specification 1.1 (Well-known Secret Entries), and database, sslmode, jdbc-url beside them.
Secret values come in after the render; no template ever sees one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from composer import names
from composer.hashes import digest
from composer.reasons import Cause, cause
from runtime.objects import Key, Object, labels_of, metadata

SECRET_TYPE = "servicebinding.io/postgresql"  # noqa: S105 - a type, no secret
_CREDENTIALS_TYPE = "fairlead.dev/credentials"


class SecretRef(msgspec.Struct, frozen=True):
    """Where a value is kept, in the claim's namespace; `kind` Secret or ConfigMap. `hash` changes with the value."""

    name: str
    key: str
    kind: str = "Secret"
    hash: str = ""


class Published(msgspec.Struct, frozen=True, rename="camel"):
    """What a child says of how it is reached (its `status.connection`)."""

    host: str
    port: int
    database: str
    username: str
    sslmode: str
    password_ref: SecretRef
    ca_ref: SecretRef | UnsetType = UNSET


class Wanted(msgspec.Struct, frozen=True):
    """The Secret to be: where its values come from, and `hash` of all that decides its content but the values."""

    key: Key
    published: Published
    provider: str
    overrides: Mapping[str, str]
    identity: str
    owner: Object | None
    hash: str = ""


def published(source: Object) -> Published | Cause:
    """Read a child's `status.connection`; a Cause says which part is missing."""
    raw = (source.get("status") or {}).get("connection") or {}
    what = f"{source['kind']} {metadata(source)['name']}"
    try:
        found = msgspec.convert(raw, Published)
    except msgspec.ValidationError as error:
        return cause("ConnectionIncomplete", f"{what} has not published its whole connection yet: {error}")
    if not found.password_ref.hash:
        return cause("ConnectionIncomplete", f"{what} has not published a proven password yet")
    return found


def wanted(claim: Object, connection: Mapping[str, Any], source: Object, found: Published, secret: Secretly) -> Wanted:
    """Say what the connection Secret is to be."""
    overrides = {name: str(value) for name, value in connection.items() if name not in ("from", "secretRef")}
    unhashed = Wanted(
        key=secret.key,
        published=found,
        provider=str(source["apiVersion"]).partition(".")[0],
        overrides=overrides,
        identity=secret.identity,
        owner=_owner(claim) if secret.owned else None,
    )
    return msgspec.structs.replace(unhashed, hash=digest(msgspec.to_builtins(unhashed)))


class Secretly(msgspec.Struct, frozen=True):
    """Name, identity and whether the Secret goes with the claim (under Orphan it stays)."""

    key: Key
    identity: str
    owned: bool


def _owner(claim: Object) -> Object:
    return {
        "apiVersion": claim["apiVersion"],
        "kind": claim["kind"],
        "name": metadata(claim)["name"],
        "uid": metadata(claim)["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def entries(want: Wanted, password: str, certificates: str) -> dict[str, str]:
    """Compute all keys; `certificates` is empty where the system's roots serve."""
    found = want.published
    fields = {
        "type": "postgresql",
        "provider": want.provider,
        "host": found.host,
        "port": str(found.port),
        "database": found.database,
        "username": found.username,
        "sslmode": found.sslmode,
        **want.overrides,
        "password": password,
    }
    user, secret, database = (quote(fields[name], safe="") for name in ("username", "password", "database"))
    host = f"[{fields['host']}]" if ":" in fields["host"] else fields["host"]
    place = f"{host}:{fields['port']}/{database}"
    mode = quote(fields["sslmode"], safe="")
    fields["uri"] = f"postgresql://{user}:{secret}@{place}?sslmode={mode}"
    fields["jdbc-url"] = f"jdbc:postgresql://{place}?sslmode={mode}&user={user}&password={secret}"
    if certificates:
        fields["certificates"] = certificates
    return fields


def secret_object(want: Wanted, fields: Mapping[str, str]) -> Object:
    """Build the Secret."""
    meta: Object = {
        "name": want.key.name,
        "namespace": want.key.namespace,
        "labels": {names.CLAIM_LABEL: want.identity},
    }
    if want.owner:
        meta["ownerReferences"] = [want.owner]
    data = {name: base64.b64encode(value.encode()).decode() for name, value in fields.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": SECRET_TYPE, "data": data}


def is_ours(secret: Object, identity: str) -> bool:
    """Tell whether a Secret is this claim's."""
    return labels_of(secret).get(names.CLAIM_LABEL) == identity and secret.get("type") == SECRET_TYPE


def replacement(stored: Object, fresh: Object) -> Object | None:
    """Return what to PUT so that the stored Secret becomes the fresh one, or None when it already is.

    Labels and annotations of others are kept.
    """
    meta = metadata(stored)
    ours = metadata(fresh)
    kept = {**meta, "labels": {**(meta.get("labels") or {}), **ours["labels"]}}
    kept.pop("managedFields", None)
    kept.pop("ownerReferences", None)
    if "ownerReferences" in ours:
        kept["ownerReferences"] = ours["ownerReferences"]
    before = {name: value for name, value in meta.items() if name != "managedFields"}
    if kept == before and stored.get("data") == fresh["data"]:
        return None
    return {**fresh, "metadata": kept}


def is_of_another_login(holder: Object, username: str) -> bool:
    """Tell whether a provider's credentials have gone on to a login that its status does not name yet."""
    named = value_of(holder, "username") if holder.get("type") == _CREDENTIALS_TYPE else None
    return named is not None and named != username


def value_of(holder: Object, key: str) -> str | None:
    """Read one key of a Secret or ConfigMap as text; None when it is absent or empty."""
    raw = (holder.get("data") or {}).get(key)
    if not raw:
        return None
    return base64.b64decode(raw).decode() if holder.get("kind", "Secret") == "Secret" else str(raw)
