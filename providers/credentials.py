"""The Secrets that a provider reads and writes: each resource's credentials, a user's own password, the HMAC's key.

No Secret is listed outside the provider's own namespace, none has an ownerRef (the collector would take it after a
restore), and one that is not ours is never overwritten.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from providers.identity import CA, LABEL_CLAIM, credentials_key, identity_of
from providers.passwords import ALPHABET, LENGTH, Kept, Stored, well_mixed
from runtime.errors import AlreadyExists, Conflict, NotFound, Terminal
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, key_of, labels_of, uid_of, version_of

TYPE = "fairlead.dev/credentials"
HASH_KEY = "fairlead-hash-key"
_HASH_KEY_BYTES = 32


def new_password() -> str:
    """Make a password of 32 letters and digits with all classes in it."""
    while True:
        password = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
        if well_mixed(password):
            return password


def text_of(secret: Object, key: str) -> str:
    """Decode one key of a Secret, empty when it is missing or no text."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def decoded(secret: Object) -> dict[str, str]:
    """Decode all keys of a Secret."""
    return {key: text_of(secret, key) for key in secret.get("data") or {}}


def _ours(secret: Object, owner: Object) -> bool:
    return secret.get("type") == TYPE and labels_of(secret).get(LABEL_CLAIM) == identity_of(owner).uid


async def read(kube: Kube, owner: Object) -> Stored | None:
    """Read a resource's credentials; raises Terminal SecretNotOwned when another's Secret has the name."""
    key = credentials_key(key_of(owner))
    try:
        secret = await kube.get(SECRETS, key)
    except NotFound:
        return None
    if not _ours(secret, owner):
        raise Terminal(
            "SecretNotOwned", f"Secret {key.name} exists and is not Fairlead's; rename or delete it, then it is written"
        )
    kept = Kept(*(text_of(secret, one) for one in ("current", "pending", "username", CA)))
    return Stored(kept, uid_of(secret), version_of(secret))


async def write(kube: Kube, owner: Object, kept: Kept, before: Stored | None, *, manager: str) -> Stored:
    """Write the credentials: a POST when there were none, else a PUT of exactly the version that was read."""
    key = credentials_key(key_of(owner))
    values = {"current": kept.current, "pending": kept.pending, "username": kept.username, CA: kept.ca}
    meta: Object = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {LABEL_CLAIM: identity_of(owner).uid},
    }
    body: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": TYPE,
        "metadata": meta,
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items() if value},
    }
    if before is None:
        try:
            secret = await kube.create(SECRETS, body, manager=manager)
        except AlreadyExists as error:
            raise Conflict("the credentials Secret appeared meanwhile; looking again") from error
    else:
        body["metadata"] = meta | {"uid": before.uid, "resourceVersion": before.version}
        secret = await kube.replace(SECRETS, body, manager=manager)
    return Stored(kept, uid_of(secret), version_of(secret))


async def delete(kube: Kube, owner: Object) -> None:
    """Delete a resource's credentials; one that is not ours, or already gone, is left."""
    stored = await read(kube, owner)
    if stored is not None:
        await kube.delete(SECRETS, credentials_key(key_of(owner)), uid=stored.uid)


async def hash_key(kube: Kube, namespace: str, *, manager: str) -> bytes:
    """Return the key of the HMACs, made once in the provider's own namespace."""
    key = Key(namespace, HASH_KEY)
    try:
        secret = await kube.get(SECRETS, key)
    except NotFound:
        made = base64.b64encode(secrets.token_bytes(_HASH_KEY_BYTES)).decode()
        body: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "data": {"key": made},
        }
        secret = await kube.create(SECRETS, body, manager=manager)
    return base64.b64decode(secret["data"]["key"])


async def users_password(kube: Kube, namespace: str, name: str, key: str) -> str:
    """Read a user's own password; raises NotFound, or Terminal InvalidPassword when the key is missing."""
    secret = await kube.get(SECRETS, Key(namespace, name))
    found = text_of(secret, key)
    if not found:
        raise Terminal("InvalidPassword", f"Secret {name} has no text under key {key}")
    return found
