"""The administrator's login: who it is, and the one server that it is for.

Whoever may write a ProviderConfig need not be allowed to read its Secret. So the Secret itself says which host its
password is for, and it is sent to no other. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from providers.external.credential import Credential
from providers.external.secret_keys import required
from providers.onprem.models import ProviderConfigSpec
from runtime.errors import Blocked, Terminal

HOST = "host"
"""Key of the administrator's Secret: `<host>`, or `<host>:<port>` for this port alone."""
_NAMESPACE = "fairlead-onprem"


def admin_login(config: ProviderConfigSpec, secrets: Mapping[str, Mapping[str, str]]) -> Credential:
    """Return the login to make databases with; `secrets` are the Secrets that the ProviderConfig names.

    Raises:
        Blocked: `CredentialsMissing`: a key of the Secret.
        Terminal: `EndpointNotAllowed`: the Secret is for another server.
    """
    name = config.admin_secret_ref.name
    secret = secrets[name]
    username, password = (required(name, secret, key) for key in ("username", "password"))
    named = secret.get(HOST, "").strip()
    if not named:
        patch = json.dumps({"stringData": {HOST: config.host}}, separators=(",", ":"))
        raise Blocked(
            "CredentialsMissing",
            f"Secret {name} has no key {HOST}, which says which server its password is for; nothing was sent. If it is"
            f" for {config.host}: kubectl --namespace {_NAMESPACE} patch secret {name} --patch '{patch}'",
        )
    if not is_for(named, config.host, config.port):
        raise Terminal(
            "EndpointNotAllowed",
            f"the password in Secret {name} is for {named[:253]}, not for {config.host}:{config.port}; nothing was"
            f" sent. Correct spec.host, or key {HOST} of the Secret",
        )
    return Credential(username, password)


def is_for(named: str, host: str, port: int) -> bool:
    """Return whether a Secret's word names this server; without a port it stands for all of the host's."""
    bare = host.lower().rstrip(".")
    bracketed = f"[{bare}]" if ":" in bare else bare
    return named.lower() in {bare, f"{bare}.", bracketed, f"{bracketed}:{port}"}
