"""Signature Version 4 of a request, made anew from the secret to see whether the caller has it. Pure.

After "Create a signed AWS API request" of the IAM User Guide: canonical request, string to sign, derived key.
"""

import hashlib
import hmac
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

import msgspec

from devcloud.simulator.messages import Refusal, Request

_ALGORITHM = "AWS4-HMAC-SHA256"
_AUTHORIZATION = re.compile(
    rf"{_ALGORITHM} Credential=([^/,\s]+)/(\d{{8}})/([^/,\s]+)/([^/,\s]+)/aws4_request,\s*"
    r"SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})"
)
_SKEW_AT_MOST = timedelta(minutes=15)


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What an Authorization header says."""

    access_key_id: str
    day: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str


def signature_of(request: Request) -> Signature:
    """Return what the Authorization header says.

    Raises:
        Refusal: `MissingAuthenticationToken` or `IncompleteSignature`.
    """
    header = request.headers.get("authorization")
    if header is None:
        raise Refusal("MissingAuthenticationToken", "Request is missing Authentication Token")
    match = _AUTHORIZATION.fullmatch(header)
    if match is None:
        raise Refusal("IncompleteSignature", "Authorization header requires Credential, SignedHeaders and Signature.")
    key, day, region, service, headers, signature = match.groups()
    return Signature(
        access_key_id=key,
        day=day,
        region=region,
        service=service,
        signed_headers=tuple(headers.split(";")),
        signature=signature,
    )


def refuse_signature(request: Request, signature: Signature, secret: str, now: datetime) -> None:
    """Refuse a request that was not signed with the secret, or not lately.

    Raises:
        Refusal: `SignatureDoesNotMatch` or `IncompleteSignature`.
    """
    stamp = request.headers.get("x-amz-date", "")
    try:
        signed_at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refusal(
            "IncompleteSignature", "Authorization header requires existence of an X-Amz-Date header."
        ) from None
    if abs(now - signed_at) > _SKEW_AT_MOST:
        raise Refusal(
            "SignatureDoesNotMatch", f"Signature expired: {stamp} is now earlier or later than 15 min. of now"
        )
    scope = f"{signature.day}/{signature.region}/{signature.service}/aws4_request"
    hashed = hashlib.sha256(_canonical(request, signature.signed_headers).encode()).hexdigest()
    expected = hmac.new(
        _key(secret, signature), f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}".encode(), hashlib.sha256
    ).hexdigest()
    if not hmac.compare_digest(expected, signature.signature):
        raise Refusal(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method. Consult the service documentation for details.",
        )


def _canonical(request: Request, signed_headers: tuple[str, ...]) -> str:
    path = quote(unquote(request.path), safe="/-_.~")
    query = "&".join(sorted(request.query.split("&"))) if request.query else ""
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed_headers)
    payload = request.headers.get("x-amz-content-sha256") or hashlib.sha256(request.body).hexdigest()
    return "\n".join((request.method, path, query, headers, ";".join(signed_headers), payload))


def _key(secret: str, signature: Signature) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (signature.day, signature.region, signature.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
