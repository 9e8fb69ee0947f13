"""Signatures as botocore makes them are believed; others, stale ones, changed requests are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from devcloud.aws.iam.signatures import refuse_signature, signature_of
from devcloud.simulator.messages import Refusal, Request

BODY = "Action=DescribeDBInstances&Version=2014-10-31"
URL = "http://127.0.0.1:8000/"


def _signed(key: str = "right") -> Request:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "Host": "127.0.0.1:8000"}
    request = AWSRequest("POST", URL, data=BODY, headers=headers)
    SigV4Auth(Credentials("AKIA", key, "a-token"), "rds", "eu-west-1").add_auth(request)
    names = {name.lower(): str(value) for name, value in request.headers.items()}
    return Request(method="POST", path="/", headers=names, body=BODY.encode())


def _refused(request: Request, *, later: timedelta = timedelta(0)) -> str | None:
    try:
        refuse_signature(request, signature_of(request), "right", datetime.now(UTC) + later)
    except Refusal as error:
        return error.code
    return None


def _without(request: Request, name: str) -> Request:
    return msgspec.structs.replace(
        request, headers={key: value for key, value in request.headers.items() if key != name}
    )


WRONG = "SignatureDoesNotMatch"
SIGNATURES: dict[str, tuple[Request, str | None]] = {
    "botocore's own": (_signed(), None),
    "another secret": (_signed("wrong"), WRONG),
    "another body": (msgspec.structs.replace(_signed(), body=b"Action=DeleteDBInstance"), WRONG),
    "no token": (_without(_signed(), "x-amz-security-token"), WRONG),
    "no date": (_without(_signed(), "x-amz-date"), "IncompleteSignature"),
    "none": (_without(_signed(), "authorization"), "MissingAuthenticationToken"),
    "another kind": (
        msgspec.structs.replace(_signed(), headers={"authorization": "Basic YTpi"}),
        "IncompleteSignature",
    ),
}


@pytest.mark.parametrize(("request_", "code"), SIGNATURES.values(), ids=SIGNATURES)
def test_a_signature_is_believed_when_botocore_makes_it(request_: Request, code: str | None) -> None:
    assert _refused(request_) == code
