"""Who we are to Google: exactly what the ProviderConfig says, never whatever the SDK would find by itself.

No default chain, no file of gcloud's, no GOOGLE_APPLICATION_CREDENTIALS. Read are: the metadata server's token of the
Pod's service account (workload identity of GKE); a Secret with a service account's key; a Secret with the
configuration of a workload identity federation, whose token is a file that Kubernetes projects into the Pod.

A configuration names hosts, files and programs, and google-auth would call, read and run whatever it names: before
that, each is compared with the few that are right. Tokens are renewed in a thread, before they end.

Impure: it asks token endpoints.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any
from urllib.parse import urlsplit

import google.auth.exceptions
import google.auth.transport.requests
import requests
from google.auth import compute_engine, identity_pool
from google.oauth2 import service_account

from providers.gcp.config import Credentials
from providers.gcp.proxy import proxy_of
from providers.gcp.refusals import clean
from runtime import clock
from runtime.errors import Blocked, Failure, Terminal, Transient

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
KEY = "credentials.json"
"""The one key of a Secret that is read."""
PROJECTED = "/var/run/secrets/"
"""Where the files are that Kubernetes projects into a Pod: the token of a federation is read from nowhere else."""
TOKEN_HOSTS = frozenset({"oauth2.googleapis.com", "sts.googleapis.com", "iamcredentials.googleapis.com"})
_URLS = ("token_uri", "token_url", "token_info_url", "service_account_impersonation_url")
_EARLY = timedelta(minutes=5)
_TIMEOUT_SECONDS = 10
_TYPES = {"ServiceAccountKey": "service_account", "Federation": "external_account"}


@dataclass(frozen=True, slots=True)
class Trusted:
    """Where tokens come from: Google's hosts by HTTPS; and `local`, a host with its port that stands for Google."""

    local: str = ""

    def allows(self, url: str) -> bool:
        """Return whether credentials may be sent to a URL."""
        parts = urlsplit(url)
        if self.local and parts.netloc == self.local:
            return True
        is_google = parts.hostname in TOKEN_HOSTS and parts.port in (None, 443)
        return parts.scheme == "https" and is_google and not parts.username


def configuration(config: Credentials, secrets: Mapping[str, Mapping[str, str]], trusted: Trusted) -> dict[str, Any]:
    """Return the checked content of the Secret that the credentials name, an empty one where they name none.

    Raises:
        Blocked: `CredentialsMissing`: there is no such key.
        Terminal: `CredentialsInvalid`: it is no JSON, or of another type; `CredentialsForbidden`: it names a host, a
            file or a program that is not asked, read or run.
    """
    if config.source == "MetadataServer":
        return {}
    name = "" if config.secret_ref is None else config.secret_ref.name
    text = secrets.get(name, {}).get(KEY, "")
    if not text:
        raise Blocked("CredentialsMissing", f"Secret {name} has no key {KEY}")
    content = _parsed(name, text)
    wanted = _TYPES[config.source]
    if content.get("type") != wanted:
        raise Terminal(
            "CredentialsInvalid",
            f'key {KEY} of Secret {name} has no "type": "{wanted}", which source {config.source} wants',
        )
    for url in _URLS:
        if url in content and not trusted.allows(str(content[url])):
            raise Terminal(
                "CredentialsForbidden",
                f"{url} in key {KEY} of Secret {name} leads to none of Google's token endpoints; nothing was sent",
            )
    if wanted == "external_account":
        _check_source(name, content)
    return content


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Terminal("CredentialsInvalid", f"key {KEY} of Secret {name} holds no JSON object")
    return content


def _check_source(name: str, content: Mapping[str, Any]) -> None:
    """Allow a projected file alone as the source of a federation's token: no URL, no program, no other cloud."""
    source = content.get("credential_source")
    file = str(source.get("file", "")) if isinstance(source, dict) else ""
    others = sorted(set(source) - {"file", "format"}) if isinstance(source, dict) else []
    if others or not file.startswith(PROJECTED) or ".." in file.split("/"):
        raise Terminal(
            "CredentialsForbidden",
            f"credential_source in key {KEY} of Secret {name} is to name a file below {PROJECTED} and nothing else",
        )


def credentials_of(config: Credentials, content: Mapping[str, Any]) -> Any:
    """Return google-auth's credentials of a checked configuration.

    Raises:
        Terminal: `CredentialsInvalid`: a value in it cannot be used, for example a broken key.
    """
    try:
        match config.source:
            case "MetadataServer":
                of_node: Any = compute_engine.Credentials
                return of_node(scopes=SCOPES)
            case "ServiceAccountKey":
                made: Any = service_account.Credentials
                return made.from_service_account_info(content, scopes=SCOPES)
            case "Federation":
                federated: Any = identity_pool.Credentials
                return federated.from_info(content, scopes=SCOPES)
    except (google.auth.exceptions.GoogleAuthError, ValueError, KeyError, TypeError) as error:
        raise Terminal("CredentialsInvalid", f"the credentials cannot be used: {type(error).__name__}") from None


@dataclass(slots=True)
class Tokens:
    """Access tokens of one identity: renewed in a thread, by one caller at a time, before they end."""

    credentials: Any = field(repr=False)
    pool: Executor = field(repr=False)
    _renewing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def token(self) -> str:
        """Return a token that works for a few minutes.

        Raises:
            Failure: None could be had, and why.
        """
        if self._is_due():
            async with self._renewing:
                if self._is_due():
                    await asyncio.get_running_loop().run_in_executor(self.pool, self._renew)
        return str(self.credentials.token)

    @property
    def email(self) -> str:
        """The service account of the tokens, once there is one; empty for an identity without an address."""
        email = str(getattr(self.credentials, "service_account_email", None) or "")
        return email if "@" in email else ""

    def forget(self) -> None:
        """Ask for a new token at the next occasion: the present one was refused."""
        self.credentials.token = None

    def _is_due(self) -> bool:
        expiry = self.credentials.expiry
        if not self.credentials.token:
            return True
        return expiry is not None and expiry.replace(tzinfo=UTC) - clock.now() < _EARLY

    def _renew(self) -> None:
        session = requests.Session()
        # No file of the environment but that of authorities, and no redirect: a token goes where it was checked to go.
        session.trust_env, session.max_redirects = False, 0
        session.verify = os.environ.get("SSL_CERT_FILE") or True
        request = google.auth.transport.requests.Request(session=session)
        try:
            self.credentials.refresh(_timed(request))
        except (google.auth.exceptions.GoogleAuthError, requests.RequestException, OSError, ValueError) as error:
            if self.credentials.token and not self.credentials.expired:
                return
            raise failure_of(error) from None
        finally:
            session.close()


def _timed(request: google.auth.transport.requests.Request) -> Any:
    def send(url: str, *arguments: Any, **options: Any) -> Any:
        proxy = proxy_of(url)
        if proxy:
            options["proxies"] = {"https": proxy}
        return request(url, *arguments, **{**options, "timeout": _TIMEOUT_SECONDS})

    return send


def failure_of(error: Exception) -> Failure:
    """Return why there is no token; a refusal is the credentials' fault, and no answer nobody's."""
    text = f"cannot get a token of Google: {clean(str(error), ())} ({type(error).__name__})"[:400]
    if isinstance(error, FileNotFoundError | PermissionError):
        return Blocked("CredentialsMissing", "the projected token of the federation cannot be read")
    if isinstance(error, google.auth.exceptions.TransportError | requests.RequestException):
        return Transient(text)
    if isinstance(error, google.auth.exceptions.RefreshError) and not getattr(error, "retryable", False):
        return Terminal("CredentialsInvalid", f"{text}; renew the credentials")
    return Transient(text)
