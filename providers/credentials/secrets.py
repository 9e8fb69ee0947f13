"""The Secrets that a provider reads and writes: each resource's credentials, a user's own password, the HMAC's key.

No Secret is listed outside the provider's own namespace, none has an ownerRef (the collector would take it after a
restore), and one that is not ours is never overwritten.
"""

from __future__ import annotations

from apis import names
from apis.identity import CA_KEY, credentials_secret_key
from providers.credentials.passwords import Kept, Stored
from providers.external.ownership import identity_of
from runtime import secret_rights
from runtime.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, Terminal
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, deleting, is_subdomain, key_of, labels_of, uid_of, version_of
from runtime.secrets import secret_object, text_of


class SecretsDenied(Terminal):
    """The credentials' namespace does not let us use Secrets; nothing is begun without a place for a password."""


def denied(owner: Object, error: Forbidden) -> SecretsDenied:
    """Return the error to raise where the API server refuses a Secret of `owner`."""
    cloud, namespace = _cloud(owner), key_of(owner).namespace
    remedy = (
        f"kubectl apply -n {namespace} -k deploy/kustomize/clouds/{cloud}/claim-namespace (on the platform of"
        f" `fairlead up`: fairlead prepare {namespace})"
    )
    text = secret_rights.refusal(f"provider {cloud}", namespace, error, remedy=remedy)
    return SecretsDenied(secret_rights.REASON, text)


def _cloud(owner: Object) -> str:
    """Return which cloud a managed resource is of: its group is `<cloud>.fairlead.dev`."""
    return str(owner["apiVersion"]).partition(".")[0]


def _ours(secret: Object, owner: Object) -> bool:
    return (
        secret.get("type") == names.CREDENTIALS_TYPE
        and labels_of(secret).get(names.CLAIM_LABEL) == identity_of(owner).uid
    )


async def read(kube: Kube, owner: Object) -> Stored | None:
    """Read a resource's credentials; raises Terminal SecretNotOwned when another's Secret has the name."""
    key = credentials_secret_key(key_of(owner))
    try:
        secret = await kube.get(SECRETS, key)
    except NotFound:
        return None
    if not _ours(secret, owner):
        raise Terminal(
            "SecretNotOwned", f"Secret {key.name} exists and is not Fairlead's; rename or delete it, then it is written"
        )
    kept = Kept(*(text_of(secret, name) for name in ("current", "pending", "username", CA_KEY)))
    return Stored(kept, uid_of(secret), version_of(secret))


async def write(kube: Kube, owner: Object, kept: Kept, before: Stored | None, *, manager: str) -> Stored:
    """Write the credentials: a POST when there were none, else a PUT of exactly the version that was read.

    Raises SecretsDenied where the namespace does not allow it.
    """
    key = credentials_secret_key(key_of(owner))
    values = {"current": kept.current, "pending": kept.pending, "username": kept.username, CA_KEY: kept.ca}
    meta: Object = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {names.CLAIM_LABEL: identity_of(owner).uid, names.CLOUD_LABEL: _cloud(owner)},
    }
    body = secret_object(meta, names.CREDENTIALS_TYPE, {name: value for name, value in values.items() if value})
    try:
        if before is None:
            secret = await kube.create(SECRETS, body, manager=manager)
        else:
            secret = await _replaced(kube, body, before, manager=manager)
    except AlreadyExists as error:
        raise Conflict("the credentials Secret appeared meanwhile; looking again") from error
    except Forbidden as error:
        raise denied(owner, error) from None
    return Stored(kept, uid_of(secret), version_of(secret))


async def _replaced(kube: Kube, body: Object, before: Stored, *, manager: str) -> Object:
    versioned = body["metadata"] | {"uid": before.uid, "resourceVersion": before.version}
    try:
        return await kube.replace(SECRETS, {**body, "metadata": versioned}, manager=manager)
    except Invalid:
        # Somebody made it immutable, which keeps it from being changed, not from being created again.
        await kube.delete(SECRETS, key_of(body), uid=before.uid, resource_version=before.version)
        return await kube.create(SECRETS, body, manager=manager)


async def delete(kube: Kube, owner: Object, namespace: Object) -> None:
    """Delete a resource's credentials; one that is not ours, or already gone, is left.

    Raises SecretsDenied where the owner's `namespace` (empty when it is gone) does not allow it and stays.
    """
    key = credentials_secret_key(key_of(owner))
    try:
        stored = await read(kube, owner)
        if stored is not None:
            await kube.delete(SECRETS, key, uid=stored.uid, resource_version=stored.version)
    except Forbidden as error:
        # A namespace that ends takes its RoleBindings before us, and its Secrets as well.
        if namespace and not deleting(namespace):
            raise denied(owner, error) from None


async def users_password(kube: Kube, namespace: str, name: str, key: str) -> str:
    """Read a user's own password.

    Raises:
        NotFound: There is no such Secret.
        Terminal: `InvalidValue` when the name can be none of a Secret, `InvalidPassword` when the key is missing.
    """
    if not is_subdomain(name):
        raise Terminal("InvalidValue", f"passwordSecretRef.name {name[:100]!r} can be no Secret's name; correct it")
    secret = await kube.get(SECRETS, Key(namespace, name))
    password = text_of(secret, key)
    if not password:
        raise Terminal("InvalidPassword", f"Secret {name} has no text under key {key}")
    return password
