"""Who calls: access keys, roles, and the temporary credentials that STS gives out."""

import base64
import binascii
import secrets
import string
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from devcloud.aws.iam.policies import ALLOW_ALL
from devcloud.simulator.messages import Refusal

ACCOUNT = "123456789012"
ACCESS_KEY = "AKIAFAIRLEADDEVCLOUD"
SECRET_KEY = "devcloud-secret-key-of-nobody-000000000"  # noqa: S105 - of an account that is nobody's
ROLE = "fairlead-provider"
_ALPHABET = string.ascii_uppercase + "234567"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An access key and whose it is.

    Attributes:
        access_key_id: `AKIA...` of a user, `ASIA...` of a session.
        secret_access_key: What signs.
        account: The account, twelve digits.
        principal: `user/NAME`, or `assumed-role/ROLE/SESSION`.
        policy: What it may do; None is everything.
        expires_at: When it ends.
        session_token: What temporary credentials carry beside the key.
    """

    access_key_id: str
    secret_access_key: str
    account: str = ACCOUNT
    principal: str = "user/fairlead"
    policy: dict[str, Any] | None = None
    expires_at: datetime | None = None
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Key({self.access_key_id}, {self.arn})"

    @property
    def arn(self) -> str:
        """Its ARN, as GetCallerIdentity returns it."""
        service = "sts" if self.principal.startswith("assumed-role/") else "iam"
        return f"arn:aws:{service}::{self.account}:{self.principal}"


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Who may assume a role: accounts, and subjects of web identity tokens as patterns."""

    accounts: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    external_id: str | None = None


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """An IAM role."""

    name: str
    account: str = ACCOUNT
    policy: dict[str, Any] | None = None
    trust: Trust = Trust()

    @property
    def arn(self) -> str:
        """Its ARN."""
        return f"arn:aws:iam::{self.account}:role/{self.name}"


class Principals:
    """The keys and roles of all accounts."""

    def __init__(self, *keys: Key) -> None:
        self.keys = {key.access_key_id: key for key in keys}
        self.roles: dict[str, Role] = {}

    def add_role(self, role: Role) -> None:
        """Add a role, or replace the one of that name."""
        self.roles[role.arn] = role

    def caller(self, access_key_id: str, session_token: str | None, now: datetime) -> Key:
        """Return whose key it is.

        Raises:
            Refusal: `InvalidClientTokenId` or `ExpiredToken`.
        """
        key = self.keys.get(access_key_id)
        if key is None or key.session_token != session_token:
            raise Refusal("InvalidClientTokenId", "The security token included in the request is invalid.")
        if key.expires_at is not None and key.expires_at <= now:
            raise Refusal("ExpiredToken", "The security token included in the request is expired")
        return key

    def session(self, role: Role, name: str, until: datetime) -> Key:
        """Give out temporary credentials of a role."""
        key = Key(
            access_key_id="ASIA" + "".join(secrets.choice(_ALPHABET) for _ in range(16)),
            secret_access_key=secrets.token_urlsafe(30),
            session_token=secrets.token_urlsafe(120),
            account=role.account,
            principal=f"assumed-role/{role.name}/{name}",
            policy=role.policy,
            expires_at=until,
        )
        self.keys[key.access_key_id] = key
        return key


def default_world(account: str, access_key_id: str, secret_access_key: str) -> Principals:
    """Return one user with all rights, and a role that its account and every web identity may assume."""
    principals = Principals(
        Key(access_key_id=access_key_id, secret_access_key=secret_access_key, account=account, policy=ALLOW_ALL)
    )
    trust = Trust(accounts=(account,), subjects=("*",))
    principals.add_role(Role(name=ROLE, account=account, policy=ALLOW_ALL, trust=trust))
    return principals


def subject_of(token: str, now: datetime) -> str:
    """Return the `sub` of a web identity token (RFC 7519); its issuer's signature is nobody's here and not checked.

    Raises:
        Refusal: `InvalidIdentityToken` or `ExpiredTokenException`.
    """
    try:
        _, claims, _ = token.split(".")
        payload = msgspec.json.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)), type=dict[str, Any])
    except (ValueError, binascii.Error, msgspec.DecodeError, msgspec.ValidationError):
        raise Refusal("InvalidIdentityToken", "The web identity token that was passed is not a JWT.") from None
    if float(payload.get("exp", 0)) <= now.timestamp():
        raise Refusal("ExpiredTokenException", "The web identity token that was passed is expired.")
    return str(payload.get("sub", ""))


def trusts_account(role: Role, caller: Key, external_id: str | None) -> bool:
    """Return whether a role may be assumed by a caller of an account."""
    return caller.account in role.trust.accounts and role.trust.external_id in {None, external_id}


def trusts_subject(role: Role, subject: str) -> bool:
    """Return whether a role may be assumed by the subject of a web identity token."""
    return any(fnmatchcase(subject, pattern) for pattern in role.trust.subjects)
