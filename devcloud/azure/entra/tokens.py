"""Entra's token endpoint and the metadata service of machines: who is let in, and what they are answered.

After "Microsoft identity platform and the OAuth 2.0 client credentials flow" (secret, federated assertion), "How to use
managed identities to get an access token" and the list of AADSTS codes. An assertion is believed without its issuer's
signature; issuer, subject, audience and expiry count.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from devcloud.azure.entra.directory import Directory, Principal
from devcloud.simulator.messages import Answer, Refusal, json_answer
from devcloud.simulator.rest import Grant, Tokens

RESOURCE = "https://management.azure.com"
LIFE = timedelta(hours=1)
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class EntraRefusal(Refusal):
    """A refusal in the form of OAuth 2.0 (RFC 6749, 5.2): `error` and `error_description`."""


class Claims(msgspec.Struct, frozen=True):
    """What counts of a federated assertion."""

    iss: str
    sub: str
    aud: str | list[str]
    exp: float


def token_answer(form: Mapping[str, str], tenant: str, directory: Directory, tokens: Tokens, now: datetime) -> Answer:
    """Return a new token for the client credentials of a form.

    Raises:
        EntraRefusal: They are none.
    """
    if tenant not in directory.tenants:
        raise EntraRefusal("invalid_request", f"AADSTS90002: Tenant '{tenant}' not found.", status=400)
    if form.get("grant_type") != "client_credentials":
        raise EntraRefusal("unsupported_grant_type", "AADSTS70003: Unsupported grant type.", status=400)
    principal = directory.principals.get(form.get("client_id", ""))
    if principal is None or principal.tenant != tenant:
        message = f"AADSTS700016: Application with identifier '{form.get('client_id', '')}' was not found."
        raise EntraRefusal("unauthorized_client", message, status=400)
    if form.get("scope", "").rstrip("/") not in {f"{RESOURCE}/.default", f"{RESOURCE}//.default"}:
        message = f"AADSTS500011: The resource principal named {form.get('scope', '')} was not found in the tenant."
        raise EntraRefusal("invalid_resource", message, status=400)
    _refuse_credentials(form, principal, now)
    token = issue(principal, tokens, now)
    seconds = int(LIFE.total_seconds()) - 1
    return json_answer(
        {"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token}
    )


def metadata_answer(
    headers: Mapping[str, str], parameters: Mapping[str, str], directory: Directory, tokens: Tokens, now: datetime
) -> Answer:
    """Return what a machine's metadata service answers: a token of its managed identity.

    Raises:
        EntraRefusal: The header `Metadata: true` is missing, or the identity.
    """
    if headers.get("metadata", "").lower() != "true" or "x-forwarded-for" in headers:
        raise EntraRefusal("invalid_request", "Required metadata header not specified", status=400)
    if not parameters.get("api-version") or parameters.get("resource", "").rstrip("/") != RESOURCE:
        raise EntraRefusal("invalid_request", "Required query variables are missing or invalid", status=400)
    wanted = parameters.get("client_id")
    managed = [
        entry for entry in directory.principals.values() if entry.is_managed and wanted in {None, entry.client_id}
    ]
    if not managed:
        raise EntraRefusal("invalid_request", "Identity not found", status=400)
    token = issue(managed[0], tokens, now)
    seconds = int(LIFE.total_seconds())
    return json_answer(
        {
            "access_token": token,
            "client_id": managed[0].client_id,
            "expires_in": str(seconds - 1),
            "expires_on": str(int(now.timestamp()) + seconds),
            "ext_expires_in": str(seconds - 1),
            "not_before": str(int(now.timestamp())),
            "resource": parameters["resource"],
            "token_type": "Bearer",
        }
    )


def discovery_answer(base_url: str, tenant: str) -> Answer:
    """Return a tenant's metadata (OpenID Connect Discovery 1.0), from which clients learn the token endpoint."""
    return json_answer(
        {
            "token_endpoint": f"{base_url}/{tenant}/oauth2/v2.0/token",
            "authorization_endpoint": f"{base_url}/{tenant}/oauth2/v2.0/authorize",
            "issuer": f"{base_url}/{tenant}/v2.0",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        }
    )


def issue(principal: Principal, tokens: Tokens, now: datetime) -> str:
    """Return a new token of somebody: its claims can be read, as those of Entra's, and nobody can make one up."""
    expires_at = now + LIFE
    claims = {
        "aud": RESOURCE,
        "iss": f"https://sts.windows.net/{principal.tenant}/",
        "iat": int(now.timestamp()),
        "exp": int(expires_at.timestamp()),
        "appid": principal.client_id,
        "oid": principal.object_id,
        "tid": principal.tenant,
    }
    head = {"typ": "JWT", "alg": "RS256"}
    token = f"{_part(head)}.{_part(claims)}.{secrets.token_urlsafe(32)}"
    grant = Grant(principal=principal.object_id, account=principal.tenant, expires_at=expires_at)
    tokens.grants = {
        key: kept for key, kept in tokens.grants.items() if kept.expires_at is None or kept.expires_at > now
    }
    tokens.grants[token] = grant
    return token


def _refuse_credentials(form: Mapping[str, str], principal: Principal, now: datetime) -> None:
    if "client_assertion" in form:
        if form.get("client_assertion_type") != _ASSERTION:
            raise EntraRefusal("invalid_request", "AADSTS50027: Unsupported assertion type.", status=400)
        _refuse_assertion(_claims(form["client_assertion"]), principal, now)
        return
    secret = form.get("client_secret", "")
    if not any(secrets.compare_digest(secret.encode(), known.encode()) for known in principal.secrets):
        message = f"AADSTS7000215: Invalid client secret provided for app '{principal.client_id}'."
        raise EntraRefusal("invalid_client", message, status=401)


def _refuse_assertion(claims: Claims, principal: Principal, now: datetime) -> None:
    if claims.exp <= now.timestamp():
        message = "AADSTS700024: Client assertion is not within its valid time range."
        raise EntraRefusal("invalid_client", message, status=401)
    audiences = {claims.aud} if isinstance(claims.aud, str) else set(claims.aud)
    for federation in principal.federations:
        if (federation.issuer, federation.subject) == (claims.iss, claims.sub) and federation.audience in audiences:
            return
    message = (
        "AADSTS700213: No matching federated identity record found for presented assertion subject "
        f"'{claims.sub}', issuer '{claims.iss}'."
    )
    raise EntraRefusal("invalid_client", message, status=401)


def _claims(assertion: str) -> Claims:
    try:
        body = assertion.split(".")[1]
        return msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=Claims)
    except (IndexError, ValueError, binascii.Error, msgspec.DecodeError):
        raise EntraRefusal("invalid_client", "AADSTS50027: JWT token is invalid or malformed.", status=400) from None


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")
