"""The connection Secret: from what a child publishes to the keys an application reads. Pure.

Keys by the Service Binding specification 1.1 (Well-known Secret Entries), and database, sslmode, jdbc-url beside them.
Secret values come in after the render; no template ever sees one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UnsetType

from apis import connection, names
from apis.connection import Connection, SecretRef
from composer.causes import Cause, cause
from composer.hashes import digest
from runtime.objects import Key, Object, key_of, labels_of, metadata, status_of

STRUCTURED = frozenset({"from", "secretRef", "caRef"})
"""What is no single key under `connection`."""
POSTGRESQL_KEYS = ("host", "port", "database", "username", "password", "sslmode")

LEADING_KEYS = ("host", "port", "sslmode", "certificates", "uri", "jdbc-url")
"""What says where an application sends its password, and how it knows that it is there."""

_TYPES = "servicebinding.io/"
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Origin(msgspec.Struct, frozen=True):
    """What the keys are made of: plain texts, and where the values are kept that no template sees."""

    plain: dict[str, str]
    kept: dict[str, SecretRef]


class Wanted(msgspec.Struct, frozen=True):
    """The Secret to be: where its values come from, and `hash` of all that decides its content but the values."""

    key: Key
    claim: Key
    plain: Mapping[str, str]
    kept: Mapping[str, SecretRef]
    identity: str
    owner: Object | None
    hash: str = ""


def published(source: Object) -> Connection | Cause:
    """Read a child's `status.connection`; a Cause says which part is missing."""
    what = f"{source['kind']} {metadata(source)['name']}"
    try:
        found = connection.load(status_of(source))
    except msgspec.ValidationError as error:
        return cause("ConnectionIncomplete", f"{what} has not published its whole connection yet: {error}")
    if not found.password_ref.hash:
        return cause("ConnectionIncomplete", f"{what} has not published a proven password yet")
    return found


def of_contract(found: Connection) -> Origin:
    """Take the keys out of what a child publishes of itself."""
    plain = {name: str(getattr(found, name)) for name in ("host", "port", "database", "username", "sslmode")}
    ca = {} if isinstance(found.ca_ref, UnsetType) else {"certificates": found.ca_ref}
    return Origin(plain, {"password": found.password_ref, **ca})


def of_foreign(declared: Mapping[str, Any]) -> Origin | Cause:
    """Take the keys out of the Secret of a foreign kind, as `connection.secretRef` says."""
    named = declared["secretRef"]
    name = str(named.get("name", ""))
    found = Origin({}, {ours: SecretRef(name, str(theirs)) for ours, theirs in (named.get("keys") or {}).items()})
    return _misnamed("connection.secretRef.name", name, "Secret") or found


def _misnamed(path: str, name: str, kind: str) -> Cause | None:
    if _OBJECT_NAME.fullmatch(name):
        return None
    return cause("InvalidValue", f"{path}: {name[:63]!r} is no name of a {kind}")


def misnamed(declared: Mapping[str, Any], found: Origin, secret: str) -> Cause | None:
    """Say which Secret or ConfigMap of a connection can have no such name; None when each can.

    The names come from expressions, from statuses of children and from the claim; `secret` is the one to be written.
    """
    kept = dict(found.kept)
    if declared.get("caRef"):
        try:
            kept["certificates"] = msgspec.convert(declared["caRef"], SecretRef)
        except msgspec.ValidationError as error:
            return cause("InvalidValue", f"connection.caRef: {error}")
    named = ((f"connection: the {ref.kind} of {name}", ref.name, ref.kind) for name, ref in sorted(kept.items()))
    chosen = ("spec.connectionSecretName", secret, "Secret")
    return next(filter(None, (_misnamed(*each) for each in (chosen, *named))), None)


def wanted(claim: Object, declared: Mapping[str, Any], source: Object, found: Origin, secret: Secretly) -> Wanted:
    """Say what the connection Secret is to be; single keys of the composition go before what was found."""
    group = str(source["apiVersion"]).rpartition("/")[0]
    ours = group.endswith(names.GROUP_SUFFIX)
    single = {name: str(value) for name, value in declared.items() if name not in STRUCTURED}
    ca = declared.get("caRef")
    more = {"certificates": msgspec.convert(ca, SecretRef)} if ca else {}
    # What the resource of `from` says of its own certificate counts; of a Secret the Composition knows better.
    kept = {**more, **found.kept} if "from" in declared else {**found.kept, **more}
    unhashed = Wanted(
        key=secret.key,
        claim=key_of(claim),
        plain={
            "type": "postgresql",
            "provider": group.partition(".")[0] if ours else group or "kubernetes",
            **found.plain,
            **single,
        },
        kept={name: ref for name, ref in kept.items() if name not in single},
        identity=secret.identity,
        owner=_owner(claim) if secret.owned else None,
    )
    # An operator gives an object that was made anew another password, and no status of it has a hash of that.
    source_uid = [] if "from" in declared else [metadata(source).get("uid", "")]
    return msgspec.structs.replace(unhashed, hash=digest([msgspec.to_builtins(unhashed), *source_uid]))


def lacking(want: Wanted) -> tuple[str, ...]:
    """Return the keys that this type of connection must have and nothing gives."""
    needed = POSTGRESQL_KEYS if want.plain["type"] == "postgresql" else ()
    return tuple(name for name in needed if name not in want.plain and name not in want.kept)


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


def entries(want: Wanted, values: Mapping[str, str]) -> dict[str, str]:
    """Compute all keys of the Secret; `values` are those that are kept elsewhere, without the empty ones."""
    fields = {**want.plain, **{name: value for name, value in values.items() if value}}
    if fields["type"] != "postgresql":
        return fields
    user, secret, database = (quote(fields[name], safe="") for name in ("username", "password", "database"))
    host = f"[{fields['host']}]" if ":" in fields["host"] else fields["host"]
    place = f"{host}:{fields['port']}/{database}"
    mode = quote(fields["sslmode"], safe="")
    fields["uri"] = f"postgresql://{user}:{secret}@{place}?sslmode={mode}"
    fields["jdbc-url"] = f"jdbc:postgresql://{place}?sslmode={mode}&user={user}&password={secret}"
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
    type_ = f"{_TYPES}{fields['type']}"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type_, "data": data}


def is_ours(secret: Object, identity: str) -> bool:
    """Return whether a Secret is this claim's."""
    return labels_of(secret).get(names.CLAIM_LABEL) == identity and str(secret.get("type")).startswith(_TYPES)


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
    """Return whether a provider's credentials have gone on to a login that its status does not name yet."""
    named = value_of(holder, "username") if holder.get("type") == names.CREDENTIALS_TYPE else None
    return named is not None and named != username


def value_of(holder: Object, key: str) -> str | None:
    """Read one key of a Secret or ConfigMap as text; None when it is absent, empty or no text (UTF-8)."""
    raw = (holder.get("data") or {}).get(key)
    if not raw or holder.get("kind", "Secret") != "Secret":
        return str(raw) if raw else None
    try:
        return base64.b64decode(raw).decode()
    except ValueError:
        # Whoever may write Secrets in the namespace may put any bytes there.
        return None
