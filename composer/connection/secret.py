"""The connection Secret: from what a child publishes to the keys an application reads. Pure.

Keys by the Service Binding specification 1.1 (Well-known Secret Entries), and database, sslmode, jdbc-url beside them.
Secret values come in after the render; no template ever sees one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UnsetType

from apis import connection, names
from apis.connection import Connection, SecretRef
from composer.causes import Cause, cause
from composer.hashes import digest
from runtime import secrets
from runtime.objects import Key, Object, is_subdomain, key_of, labels_of, metadata, status_of

STRUCTURED = frozenset({"from", "secretRef", "caRef"})
"""What under `connection` is not a single key."""
POSTGRESQL_KEYS = ("host", "port", "database", "username", "password", "sslmode")

LEADING_KEYS = ("host", "port", "sslmode", "sslrootcert", "certificates", "uri", "jdbc-url")
"""The keys that decide where an application sends its password, and how it verifies the server."""

SYSTEM_ROOTS = "system"
"""`sslrootcert` of a server with a certificate of a public authority: libpq's word, from version 16 on."""
_JDBC_SYSTEM_ROOTS = "sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory"

_TYPES = "servicebinding.io/"
_OF_A_CHILD = frozenset({*POSTGRESQL_KEYS, "sslrootcert", "certificates"})
_FOLLOWING = frozenset({"password", "uri", "jdbc-url"})
_OF_CA_REF = "the platform team, whose Composition names it under connection.caRef"


class Origin(msgspec.Struct, frozen=True):
    """What the keys are made of: plain texts, and references to the values that no template sees."""

    plain: dict[str, str]
    kept: dict[str, SecretRef]


class Wanted(msgspec.Struct, frozen=True):
    """The desired Secret: where its values come from, and the `hash` of all that decides its content but the values.

    `makers` says of each key that is kept elsewhere who makes what holds it, for whoever misses it. `source_version`:
    of the object of another operator that it is made from; a change of it may mean other values. `source_created`: when
    the object of a provider of ours was created (RFC 3339), empty for another operator's.
    """

    key: Key
    claim: Key
    plain: Mapping[str, str]
    kept: Mapping[str, SecretRef]
    identity: str
    owner: Object | None
    hash: str = ""
    makers: Mapping[str, str] = {}
    source_version: str = ""
    source_created: str = ""

    @property
    def state(self) -> str:
        """Text that differs between two states which may have different values."""
        return f"{self.hash}/{self.source_version}"


def published(source: Object) -> Connection | Cause:
    """Return a child's `status.connection`, or the cause that names the part that is missing."""
    subject = f"{source['kind']} {metadata(source)['name']}"
    try:
        stored = connection.load(status_of(source))
    except msgspec.ValidationError as error:
        return cause("ConnectionIncomplete", f"{subject} has not published its whole connection yet: {error}")
    if not stored.password_ref.hash:
        return cause("ConnectionIncomplete", f"{subject} has not published a proven password yet")
    return stored


def of_contract(stored: Connection) -> Origin:
    """Return the keys that a child of our providers publishes.

    A name that is verified without certificates is verified by the system's roots.
    """
    plain = {name: str(getattr(stored, name)) for name in ("host", "port", "database", "username", "sslmode")}
    if stored.sslmode == "verify-full" and isinstance(stored.ca_ref, UnsetType):
        plain["sslrootcert"] = SYSTEM_ROOTS
    ca = {} if isinstance(stored.ca_ref, UnsetType) else {"certificates": stored.ca_ref}
    return Origin(plain, {"password": stored.password_ref, **ca})


def of_foreign(declared: Mapping[str, Any]) -> Origin | Cause:
    """Return the keys that come from the Secret of a foreign kind, by `connection.secretRef`."""
    named = declared["secretRef"]
    name = str(named.get("name", ""))
    origin = Origin({}, {ours: SecretRef(name, str(theirs)) for ours, theirs in (named.get("keys") or {}).items()})
    return _misnamed("connection.secretRef.name", name, "Secret") or origin


def _misnamed(path: str, name: str, kind: str) -> Cause | None:
    if is_subdomain(name):
        return None
    return cause("InvalidValue", f"{path}: {name[:63]!r} is no name of a {kind}")


def misnamed(declared: Mapping[str, Any], origin: Origin, secret: str) -> Cause | None:
    """Return the cause of a Secret or ConfigMap of a connection with an impossible name; None where all are possible.

    The names come from expressions, from statuses of children and from the claim; `secret` is the one to be written.
    """
    kept = dict(origin.kept)
    if declared.get("caRef"):
        try:
            kept["certificates"] = msgspec.convert(declared["caRef"], SecretRef)
        except msgspec.ValidationError as error:
            return cause("InvalidValue", f"connection.caRef: {error}")
    named = ((f"connection: the {ref.kind} of {name}", ref.name, ref.kind) for name, ref in sorted(kept.items()))
    chosen = ("spec.connectionSecretName", secret, "Secret")
    return next(filter(None, (_misnamed(*reference) for reference in (chosen, *named))), None)


def wanted(claim: Object, declared: Mapping[str, Any], source: Object, origin: Origin, secret: SecretTarget) -> Wanted:
    """Return the desired connection Secret; single keys of the composition win over those of `origin`."""
    group = str(source["apiVersion"]).rpartition("/")[0]
    ours = group.endswith(names.GROUP_SUFFIX)
    single = {name: str(value) for name, value in declared.items() if name not in STRUCTURED}
    ca = declared.get("caRef")
    more = {"certificates": msgspec.convert(ca, SecretRef)} if ca else {}
    # The resource of `from` knows its own certificate; for a Secret the Composition decides.
    kept = {**more, **origin.kept} if "from" in declared else {**origin.kept, **more}
    server = f"the {'provider' if ours else 'operator'} of {source['kind']} {metadata(source)['name']}"
    unhashed = Wanted(
        key=secret.key,
        claim=key_of(claim),
        plain={
            "type": "postgresql",
            "provider": group.partition(".")[0] if ours else group or "kubernetes",
            **origin.plain,
            **single,
        },
        kept={name: ref for name, ref in kept.items() if name not in single},
        identity=secret.identity,
        owner=_owner(claim) if secret.owned else None,
    )
    # An operator gives a recreated object another password, and its status has no hash of that.
    source_uid = [] if "from" in declared else [metadata(source).get("uid", "")]
    makers = {name: server if ref == origin.kept.get(name) else _OF_CA_REF for name, ref in unhashed.kept.items()}
    version = "" if "from" in declared else str(metadata(source).get("resourceVersion", ""))
    created = str(metadata(source).get("creationTimestamp", "")) if ours and "from" in declared else ""
    hashed = _with_hash(_without_system_roots(unhashed), *source_uid)
    return msgspec.structs.replace(hashed, makers=makers, source_version=version, source_created=created)


def _without_system_roots(want: Wanted) -> Wanted:
    """Return what is wanted without the word for the system's roots where certificates of its own say more."""
    if "certificates" not in {**want.kept, **want.plain}:
        return want
    plain = {name: value for name, value in want.plain.items() if (name, value) != ("sslrootcert", SYSTEM_ROOTS)}
    return msgspec.structs.replace(want, plain=plain)


def _with_hash(want: Wanted, *source_uid: str) -> Wanted:
    content: Object = msgspec.to_builtins(msgspec.structs.replace(want, hash=""))
    # Who makes what, and which version was read, decides nothing of the content.
    del content["makers"], content["source_version"], content["source_created"]
    return msgspec.structs.replace(want, hash=digest([content, *source_uid]))


def as_stored(stored: Object, claim: Key, identity: str) -> Wanted:
    """Return a stored connection Secret as what is wanted: every text is plain but the password and what follows."""
    texts = {name: value_of(stored, name) for name in stored.get("data") or {} if name not in _FOLLOWING}
    plain = {name: text for name, text in texts.items() if text is not None}
    plain["type"] = str(stored["type"]).removeprefix(_TYPES)
    owner = next(iter(metadata(stored).get("ownerReferences") or ()), None)
    return Wanted(key_of(stored), claim, plain, {}, identity, owner)


def with_published(before: Wanted, origin: Origin, own: Collection[str]) -> Wanted:
    """Return what was wanted, with what a child publishes now; `own` are the keys that the Composition sets itself."""
    theirs = _OF_A_CHILD - set(own)
    plain = {name: text for name, text in before.plain.items() if name not in theirs}
    kept = {name: ref for name, ref in before.kept.items() if name not in theirs}
    plain |= {name: text for name, text in origin.plain.items() if name in theirs}
    kept |= {name: ref for name, ref in origin.kept.items() if name in theirs}
    return _with_hash(_without_system_roots(msgspec.structs.replace(before, plain=plain, kept=kept)))


def missing_keys(want: Wanted) -> tuple[str, ...]:
    """Return the keys that this type of connection must have and that are missing."""
    needed = POSTGRESQL_KEYS if want.plain["type"] == "postgresql" else ()
    return tuple(name for name in needed if name not in want.plain and name not in want.kept)


class SecretTarget(msgspec.Struct, frozen=True):
    """The Secret's name, its claim's identity, and whether the claim owns it (under Orphan it does not)."""

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
    """Return all keys of the Secret; `values` are those kept elsewhere, of which empty ones are left out."""
    fields = {**want.plain, **{name: value for name, value in values.items() if value}}
    if fields["type"] != "postgresql":
        return fields
    user, secret, database = (quote(fields[name], safe="") for name in ("username", "password", "database"))
    host = f"[{fields['host']}]" if ":" in fields["host"] else fields["host"]
    place = f"{host}:{fields['port']}/{database}"
    mode = quote(fields["sslmode"], safe="")
    roots = fields.get("sslrootcert", "")
    by_file = f"&sslrootcert={quote(roots, safe='')}" if roots else ""
    by_jdbc = f"&{_JDBC_SYSTEM_ROOTS}" if roots == SYSTEM_ROOTS else by_file
    fields["uri"] = f"postgresql://{user}:{secret}@{place}?sslmode={mode}{by_file}"
    fields["jdbc-url"] = f"jdbc:postgresql://{place}?sslmode={mode}{by_jdbc}&user={user}&password={secret}"
    return fields


def secret_object(want: Wanted, fields: Mapping[str, str]) -> Object:
    """Return the Secret as an object."""
    meta: Object = {
        "name": want.key.name,
        "namespace": want.key.namespace,
        "labels": {names.CLAIM_LABEL: want.identity},
    }
    if want.owner:
        meta["ownerReferences"] = [want.owner]
    return secrets.secret_object(meta, f"{_TYPES}{fields['type']}", fields)


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
    """Return whether a provider's credentials are of a login that its status does not name yet."""
    named = value_of(holder, "username") if holder.get("type") == names.CREDENTIALS_TYPE else None
    return named is not None and named != username


def value_of(holder: Object, key: str) -> str | None:
    """Return one key of a Secret or ConfigMap as text; None when it is absent, empty or not UTF-8."""
    if holder.get("kind", "Secret") == "Secret":
        # Anybody who may write Secrets in the namespace may have written any bytes there.
        return secrets.text_of(holder, key) or None
    raw = (holder.get("data") or {}).get(key)
    return str(raw) if raw else None
