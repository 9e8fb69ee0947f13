"""Who we are to AWS: exactly what the ProviderConfig says, never whatever the SDK would find by itself.

No profile, no shared-credentials file (its `credential_process` runs a command), no variables of static keys, no
metadata service of the node. Read are: a Secret's named keys; what EKS puts into a Pod for IAM roles for service
accounts (a projected token, exchanged by AssumeRoleWithWebIdentity) and for Pod Identity (an agent on a fixed
address); and the roles of the chain, each assumed with the credentials before it.

Impure: it holds the SDK's session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from botocore.credentials import (
    ContainerProvider,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.credentials import Credentials as SdkCredentials

from providers.aws.config import Credentials, Role
from providers.external import secret_keys
from runtime.errors import Blocked, Terminal

KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_REQUIRED = KEYS[:2]
ROLE = "AWS_ROLE_ARN"
TOKEN_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"  # noqa: S105 - a variable's name
AGENT = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
AGENT_TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - a variable's name
_SESSION = "fairlead-provider-aws"
# https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html: the agent's link-local addresses.
AGENT_HOSTS = frozenset({"169.254.170.23", "fd00:ec2::23"})


@dataclass(frozen=True, slots=True)
class StaticKeys:
    """An access key out of a Secret; never printed."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class WebIdentity:
    """A role that trusts the Pod's service account; the token is read anew each time, as it rotates."""

    role_arn: str
    token_file: Path


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The agent of EKS Pod Identity on this node."""

    url: str
    token_file: Path


Source: TypeAlias = StaticKeys | WebIdentity | PodIdentity


def source_of(
    config: Credentials, secrets: Mapping[str, Mapping[str, str]], environ: Mapping[str, str], *, agents: frozenset[str]
) -> Source:
    """Return where the first credentials come from; `agents` are the hosts at which Pod Identity may be asked.

    Raises:
        Blocked: `CredentialsMissing`: a Secret's key, or what EKS should have put into the Pod.
        Terminal: `CredentialsForbidden` for a Secret with other keys, `CredentialsInvalid` for a broken value.
    """
    match config.source:
        case "Secret":
            name = "" if config.secret_ref is None else config.secret_ref.name
            return _static(name, secrets.get(name, {}))
        case "WebIdentity":
            role = config.role_arn or environ.get(ROLE, "")
            file = environ.get(TOKEN_FILE, "")
            if not role or not file:
                raise _unset("WebIdentity", TOKEN_FILE if not file else f"{ROLE}, and spec.credentials no roleARN")
            return WebIdentity(role, Path(file))
        case "PodIdentity":
            url, file = environ.get(AGENT, ""), environ.get(AGENT_TOKEN_FILE, "")
            if not url or not file:
                raise _unset("PodIdentity", AGENT if not url else AGENT_TOKEN_FILE)
            if urlsplit(url).hostname not in agents:
                raise Terminal("EndpointNotAllowed", f"{AGENT} leads to no Pod Identity agent; nothing was sent")
            return PodIdentity(url, Path(file))


def _unset(source: str, variable: str) -> Blocked:
    return Blocked(
        "CredentialsMissing",
        f"credentials.source is {source} and the process has no {variable}; associate a role with its service account"
        " and restart it",
    )


def _static(name: str, secret: Mapping[str, str]) -> StaticKeys:
    secret_keys.refuse_other_keys(name, secret, KEYS)
    for key in _REQUIRED:
        secret_keys.required(name, secret, key)
    secret_keys.refuse_white_space(name, secret, KEYS)
    return StaticKeys(*(secret.get(key, "") for key in KEYS))


class Given(CredentialProvider):  # type: ignore[misc]  # the SDK ships no types
    """Hands one set of credentials to an SDK session, instead of the chain of places that it would search."""

    METHOD = "fairlead"

    def __init__(self, credentials: SdkCredentials) -> None:
        super().__init__()
        self._credentials = credentials

    def load(self) -> SdkCredentials:
        """Return the credentials."""
        return self._credentials


def only(credentials: SdkCredentials) -> CredentialResolver:
    """Return a resolver that knows these credentials and no other place."""
    return CredentialResolver([Given(credentials)])


StsFor: TypeAlias = Callable[[SdkCredentials | None], Any]
"""Makes an STS client that signs with some credentials; None for a call that is not signed."""


def first(source: Source, sts: StsFor) -> SdkCredentials:
    """Return the first credentials; those that expire renew themselves in the thread that signs."""
    match source:
        case StaticKeys(access_key_id, secret_access_key, session_token):
            return SdkCredentials(access_key_id, secret_access_key, session_token or None)
        case WebIdentity():
            return _web_identity(source, sts(None))
        case PodIdentity(url, token_file):
            environ = {AGENT: url, AGENT_TOKEN_FILE: str(token_file)}
            return ContainerProvider(environ=environ).load()


def _web_identity(source: WebIdentity, sts: Any) -> DeferredRefreshableCredentials:
    def renew() -> dict[str, str]:
        try:
            token = source.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise Blocked("CredentialsMissing", f"the projected token cannot be read ({error.strerror})") from None
        answer = sts.assume_role_with_web_identity(
            RoleArn=source.role_arn, RoleSessionName=_SESSION, WebIdentityToken=token
        )
        return _parts(answer)

    return DeferredRefreshableCredentials(renew, "assume-role-with-web-identity")


def assumed(role: Role, sts: Any) -> DeferredRefreshableCredentials:
    """Return the credentials of a role that is assumed with those which `sts` signs with."""

    def renew() -> dict[str, str]:
        external = {} if role.external_id is None else {"ExternalId": role.external_id}
        return _parts(sts.assume_role(RoleArn=role.role_arn, RoleSessionName=role.session_name, **external))

    return DeferredRefreshableCredentials(renew, "assume-role")


def _parts(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return what the SDK wants to know of an answer of STS."""
    credentials = answer["Credentials"]
    return {
        "access_key": credentials["AccessKeyId"],
        "secret_key": credentials["SecretAccessKey"],
        "token": credentials["SessionToken"],
        "expiry_time": credentials["Expiration"].isoformat(),
    }
