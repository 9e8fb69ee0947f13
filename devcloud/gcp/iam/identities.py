"""Who there is: service accounts with keys, pools of foreign identities, what each may in which project."""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from devcloud.gcp.iam.permissions import ROLES
from devcloud.simulator.rest import Grant, Tokens

TOKEN_LIFE = timedelta(hours=1)
TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_KEY_BITS = 2048


class AccountKey(msgspec.Struct, frozen=True, kw_only=True):
    """The public half of a service account's key.

    Attributes:
        id: As the `kid` of what it signs.
        email: Whose it is.
        public_pem: What its signatures are verified with.
    """

    id: str
    email: str
    public_pem: str


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider of a workload identity pool.

    Attributes:
        audience: `//iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/ID`.
        issuer: The `iss` of its tokens.
        allowed_audience: The `aud` of its tokens.
        impersonates: The service account that each subject may become, by subject.
    """

    audience: str
    issuer: str
    allowed_audience: str
    impersonates: dict[str, str] = {}


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The roles of a member in a project, in place of those before.

    Attributes:
        project: Its id.
        member: An e-mail address, or a principal of a pool.
        roles: Predefined ones, or custom ones by name.
    """

    project: str
    member: str
    roles: tuple[str, ...]


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was given out."""

    token: str
    grant: Grant

    def __repr__(self) -> str:
        return f"Issued({self.grant.principal})"


class SavedIdentities(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the process."""

    accounts: tuple[str, ...]
    keys: tuple[AccountKey, ...]
    pools: tuple[Pool, ...]
    bindings: tuple[Binding, ...]
    roles: dict[str, tuple[str, ...]]
    tokens: tuple[Issued, ...]


class Identities:
    """All of them.

    Attributes:
        tokens: The access tokens that were given out.
        accounts: The e-mail addresses of the service accounts.
        keys: By id.
        pools: By audience.
        metadata_account: Whose token the metadata server gives; empty closes it.
        changes: How often something changed.
    """

    def __init__(self) -> None:
        self.tokens = Tokens()
        self.accounts: set[str] = set()
        self.keys: dict[str, AccountKey] = {}
        self.pools: dict[str, Pool] = {}
        self.metadata_account = ""
        self.changes = 0
        self._roles: dict[str, tuple[str, ...]] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}

    def allows(self, principal: str, project: str, permission: str) -> bool:
        """Return whether somebody has a permission in a project."""
        binding = self._bindings.get((project, principal))
        return binding is not None and any(permission in self._held(role) for role in binding.roles)

    def bind(self, binding: Binding) -> None:
        """Give somebody roles in a project, in place of those before."""
        self.changes += 1
        self._bindings[binding.project, binding.member] = binding

    def define_role(self, name: str, permissions: Iterable[str]) -> None:
        """Have a custom role."""
        self.changes += 1
        self._roles[name] = tuple(sorted(permissions))

    def issue(self, principal: str, now: datetime, *, life: timedelta = TOKEN_LIFE) -> str:
        """Return a new access token for somebody."""
        self.changes += 1
        expired = [token for token, grant in self.tokens.grants.items() if grant.expires_at and grant.expires_at <= now]
        for token in expired:
            del self.tokens.grants[token]
        return self.tokens.issue(Grant(principal=principal, account="", expires_at=now + life))

    def new_key(self, email: str, project: str) -> dict[str, Any]:
        """Return a new key of a service account, which is made when absent, as the JSON that Google gives out."""
        self.changes += 1
        self.accounts.add(email)
        private = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        public = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        key = AccountKey(id=secrets.token_hex(20), email=email, public_pem=public.decode())
        self.keys[key.id] = key
        return {
            "type": "service_account",
            "project_id": project,
            "private_key_id": key.id,
            "private_key": pem.decode(),
            "client_email": email,
            "client_id": str(secrets.randbelow(10**21)),
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": TOKEN_URI,
            "universe_domain": "googleapis.com",
        }

    def drop_key(self, key_id: str) -> bool:
        """Have a key no more; return whether there was one."""
        self.changes += 1
        return self.keys.pop(key_id, None) is not None

    def add_pool(self, pool: Pool) -> None:
        """Have a provider of foreign identities."""
        self.changes += 1
        self.pools[pool.audience] = pool

    def saved(self) -> SavedIdentities:
        """Return what outlives the process."""
        return SavedIdentities(
            accounts=tuple(sorted(self.accounts)),
            keys=tuple(self.keys.values()),
            pools=tuple(self.pools.values()),
            bindings=tuple(self._bindings.values()),
            roles=self._roles,
            tokens=tuple(Issued(token=token, grant=grant) for token, grant in self.tokens.grants.items()),
        )

    def restore(self, saved: SavedIdentities) -> None:
        """Have what a former process kept."""
        self.accounts = set(saved.accounts)
        self.keys = {key.id: key for key in saved.keys}
        self.pools = {pool.audience: pool for pool in saved.pools}
        self._bindings = {(binding.project, binding.member): binding for binding in saved.bindings}
        self._roles = dict(saved.roles)
        self.tokens.grants = {issued.token: issued.grant for issued in saved.tokens}

    def _held(self, role: str) -> Iterable[str]:
        return ROLES.get(role) or self._roles.get(role, ())
