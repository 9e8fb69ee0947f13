"""Where access tokens come from: signed JWTs of service accounts, foreign tokens, the metadata server.

- `POST /token` (oauth2.googleapis.com): a JWT that a service account signed (RFC 7523; Google Identity, "Using OAuth
  2.0 for Server to Server Applications").
- `POST /v1/token` (sts.googleapis.com): a foreign token for a federated one (RFC 8693), then
  `POST /v1/projects/-/serviceAccounts/EMAIL:generateAccessToken` (iamcredentials.googleapis.com) to become an account.
- `GET /computeMetadata/v1/...`: what the metadata server of a machine or a GKE node answers.

A foreign token's issuer, audience, subject and times are checked; its signature is believed.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from devcloud.gcp.iam.identities import TOKEN_LIFE, TOKEN_URI, Identities, Pool
from devcloud.gcp.refusals import bad_credentials, not_authorized
from devcloud.simulator.messages import Answer, Refusal, Request, json_answer
from devcloud.simulator.rest import Route

ROUTES = (
    Route("POST", "token", "oauth2.token"),
    Route("POST", "v1/token", "sts.token"),
    Route("POST", "v1/projects/-/serviceAccounts/{account}:generateAccessToken", "iam.generateAccessToken"),
    Route("GET", "computeMetadata/v1/instance/service-accounts/{account}/token", "metadata.token"),
    Route("GET", "computeMetadata/v1/instance/service-accounts/{account}/email", "metadata.email"),
    Route("GET", "computeMetadata/v1/instance/service-accounts/{account}/", "metadata.account"),
    Route("GET", "computeMetadata/v1/project/project-id", "metadata.project"),
    Route("GET", "computeMetadata/v1/universe/universe-domain", "metadata.universe"),
    Route("GET", "", "metadata.ping"),
)
SCOPES = frozenset(
    {"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/sqlservice.admin"}
)
_JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT_TYPES = frozenset({"urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token"})
_ACCESS_TYPE = "urn:ietf:params:oauth:token-type:access_token"
_SKEW = timedelta(minutes=5)
_LONGEST_ASSERTION = timedelta(hours=1)
_FLAVOUR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a token.

    Attributes:
        action: One of those of `ROUTES`.
        account: The service account of the path, empty for none.
        request: As it came.
        project: The project of the metadata server.
    """

    action: str
    account: str
    request: Request
    project: str


def answer(identities: Identities, call: TokenRequest, now: datetime) -> Answer:
    """Answer a request for a token.

    Raises:
        Refusal: It is refused; for `oauth2` and `sts` the code is that of RFC 6749.
    """
    match call.action:
        case "oauth2.token":
            return _granted(identities.issue(_signer(identities, _form(call.request)), now))
        case "sts.token":
            subject = _federated(identities, _form(call.request), now)
            return _granted(identities.issue(subject, now), issued_token_type=_ACCESS_TYPE)
        case "iam.generateAccessToken":
            return _impersonated(identities, call, now)
        case _:
            return _metadata(identities, call, now)


def _granted(token: str, **more: str) -> Answer:
    seconds = int(TOKEN_LIFE.total_seconds())
    return json_answer({"access_token": token, "expires_in": seconds, "token_type": "Bearer", **more})


def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))


def _signer(identities: Identities, form: dict[str, str]) -> str:
    """Return the account that signed an assertion; its times are the caller's real ones."""
    if form.get("grant_type") != _JWT_GRANT:
        raise Refusal("unsupported_grant_type", f"Invalid grant_type: {form.get('grant_type', '')}", status=400)
    head, claims, signed, signature = _parts(form.get("assertion", ""))
    key = identities.keys.get(str(head.get("kid", "")))
    if key is None or head.get("alg") != "RS256" or not _is_signed(key.public_pem, signed, signature):
        raise Refusal("invalid_grant", "Invalid JWT Signature.", status=400)
    if claims.get("iss") != key.email or key.email not in identities.accounts:
        raise Refusal("invalid_grant", "Invalid grant: account not found", status=400)
    if not SCOPES & set(str(claims.get("scope", "")).split()):
        raise Refusal("invalid_scope", "Invalid OAuth scope or ID token audience provided.", status=400)
    if not str(claims.get("aud", "")).endswith("/token"):
        raise Refusal("invalid_grant", f"Invalid JWT: the audience is not {TOKEN_URI}", status=400)
    _refuse_times(claims, datetime.now(UTC), longest=_LONGEST_ASSERTION)
    return key.email


def _is_signed(public_pem: str, signed: bytes, signature: bytes) -> bool:
    public = serialization.load_pem_public_key(public_pem.encode())
    if not isinstance(public, rsa.RSAPublicKey):
        return False
    try:
        public.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    parts = token.split(".")
    try:
        head, claims, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts)
        decoder = msgspec.json.Decoder(dict[str, Any])
        return decoder.decode(head), decoder.decode(claims), f"{parts[0]}.{parts[1]}".encode(), signature
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise Refusal("invalid_grant", "Bad Request: the token is no JWT", status=400) from None


def _refuse_times(claims: dict[str, Any], now: datetime, *, longest: timedelta | None = None) -> None:
    try:
        issued, expires = (datetime.fromtimestamp(float(claims[name]), UTC) for name in ("iat", "exp"))
    except (KeyError, TypeError, ValueError):
        raise Refusal("invalid_grant", "Invalid JWT: 'iat' and 'exp' are missing or no times", status=400) from None
    if expires < now - _SKEW or issued > now + _SKEW or (longest is not None and expires - issued > longest + _SKEW):
        raise Refusal(
            "invalid_grant",
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat "
            "and exp values in the JWT claim.",
            status=400,
        )


def _federated(identities: Identities, form: dict[str, str], now: datetime) -> str:
    """Return the principal of a foreign token; its times are the real ones."""
    del now
    if form.get("grant_type") != _EXCHANGE_GRANT or form.get("subject_token_type") not in _JWT_TYPES:
        raise Refusal("invalid_request", "Invalid grant_type or subject_token_type", status=400)
    pool = identities.pools.get(form.get("audience", ""))
    if pool is None:
        raise Refusal("invalid_target", 'Invalid value for "audience".', status=400)
    _, claims, _, _ = _parts(form.get("subject_token", ""))
    audiences = claims.get("aud")
    if pool.allowed_audience not in (audiences if isinstance(audiences, list) else [audiences]):
        raise Refusal("invalid_grant", "The audience in ID Token does not match the expected audience.", status=400)
    if claims.get("iss") != pool.issuer:
        raise Refusal("invalid_grant", "The issuer in ID Token does not match the expected ones.", status=400)
    _refuse_times(claims, datetime.now(UTC))
    return principal_of(pool, str(claims.get("sub", "")))


def principal_of(pool: Pool, subject: str) -> str:
    """Return what a foreign subject is called in bindings and in the log."""
    name = pool.audience.partition("/providers/")[0]
    return f"principal:{name}/subject/{subject}"


def _impersonated(identities: Identities, call: TokenRequest, now: datetime) -> Answer:
    grant = identities.tokens.holder(call.request.headers, now)
    if grant is None:
        raise bad_credentials()
    allowed = {
        principal_of(pool, subject)
        for pool in identities.pools.values()
        for subject, email in pool.impersonates.items()
        if email == call.account
    }
    if grant.principal not in allowed or call.account not in identities.accounts:
        raise not_authorized()
    expires = (now + TOKEN_LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json_answer({"accessToken": identities.issue(call.account, now), "expireTime": expires})


def _metadata(identities: Identities, call: TokenRequest, now: datetime) -> Answer:
    """Answer as the metadata server (Compute Engine, "About VM metadata").

    The header is asked for, so that no page of a browser can; a request that came through a proxy is refused.
    """
    headers = call.request.headers
    if call.action != "metadata.ping":
        if headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in headers:
            raise Refusal("forbidden", "Missing Metadata-Flavor:Google header.", status=403)
        if not identities.metadata_account:
            raise Refusal("notFound", "The metadata server has no service account.", status=404)
    return _METADATA[call.action](identities, call, now)


def _metadata_token(identities: Identities, call: TokenRequest, now: datetime) -> Answer:
    del call
    content = _granted(identities.issue(identities.metadata_account, now))
    return msgspec.structs.replace(content, headers=_FLAVOUR)


def _metadata_account(identities: Identities, call: TokenRequest, now: datetime) -> Answer:
    del call, now
    content = {"aliases": ["default"], "email": identities.metadata_account, "scopes": sorted(SCOPES)}
    return json_answer(content, headers=_FLAVOUR)


def _text(text: str) -> Answer:
    return Answer(body=text.encode(), content_type="text/plain", headers=_FLAVOUR)


_METADATA: dict[str, Callable[[Identities, TokenRequest, datetime], Answer]] = {
    "metadata.token": _metadata_token,
    "metadata.account": _metadata_account,
    "metadata.email": lambda identities, _, __: _text(identities.metadata_account),
    "metadata.project": lambda _, call, __: _text(call.project),
    "metadata.universe": lambda *_: _text("googleapis.com"),
    "metadata.ping": lambda *_: _text("computeMetadata/\n"),
}
