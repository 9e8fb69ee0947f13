"""A login as an application makes it, at the endpoint that a pass observed: the same for every cloud."""

from __future__ import annotations

from typing import Any

from providers.external.client import Target
from providers.external.credential import Credential, Login
from providers.external.endpoint import Endpoint
from providers.external.login import try_login
from providers.external.observation import SpecT
from providers.external.provider import ConnectedAccount, LoginRules
from runtime.errors import Terminal

# PostgreSQL, "Error Codes": invalid_catalog_name; the login itself was accepted before.
_NO_DATABASE = "3D000"


async def log_in(
    account: ConnectedAccount[SpecT, Any],
    rules: LoginRules[SpecT, Any],
    target: Target[SpecT],
    endpoint: Endpoint,
    credential: Credential,
) -> Login:
    """Return what a login is answered; UNKNOWN where it is not to be tried, and where nothing proves who answers.

    Raises:
        Terminal: `InvalidValue`: the login is accepted, and the database does not exist and will not.
    """
    if account.login_check == "Off" or not endpoint.is_verified:
        return Login.UNKNOWN
    attempt = account.clients.try_login or try_login
    answer = await attempt(endpoint, credential)
    if answer.code == _NO_DATABASE and (text := rules.missing_database(target, endpoint.database)):
        raise Terminal("InvalidValue", text)
    return answer.login
