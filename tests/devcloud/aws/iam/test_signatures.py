"""A signature counts for its request, its secret and its quarter of an hour alone; botocore makes them."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from devcloud.aws.iam.signatures import refuse_signature, signature_of
from devcloud.simulator.messages import Refusal, Request
from runtime import clock

_BODY = b"Action=DescribeDBInstances&Version=2014-10-31"


@pytest.mark.parametrize(
    ("changed", "secret", "late_s", "is_taken"),
    [
        pytest.param({}, "s3cr3t", 0, True, id="as it was signed"),
        pytest.param({}, "another", 0, False, id="with another secret"),
        pytest.param({"body": _BODY.replace(b"Describe", b"Delete")}, "s3cr3t", 0, False, id="for another body"),
        pytest.param({"method": "GET"}, "s3cr3t", 0, False, id="for another method"),
        pytest.param({"query": "a=b"}, "s3cr3t", 0, False, id="for another query"),
        pytest.param({"host": "sts.example.org"}, "s3cr3t", 0, False, id="for another host"),
        pytest.param({}, "s3cr3t", 1000, False, id="long ago"),
    ],
)
def test_signature_counts_for_what_was_signed_alone(
    changed: dict[str, Any],
    secret: str,
    late_s: int,
    is_taken: bool,  # noqa: FBT001 - a case
) -> None:
    sent = AWSRequest("POST", "https://rds.example.org/", data=_BODY)
    SigV4Auth(Credentials("AKIAONE", "s3cr3t"), "rds", "eu-west-1").add_auth(sent)
    headers = {"host": "rds.example.org", **{name.lower(): value for name, value in sent.headers.items()}}
    headers["host"] = changed.get("host", headers["host"])
    request = Request(method="POST", path="/", headers=headers, body=_BODY)
    request = msgspec.structs.replace(request, **{name: value for name, value in changed.items() if name != "host"})
    at = clock.now() + timedelta(seconds=late_s)

    with nullcontext() if is_taken else pytest.raises(Refusal, match=r"does not match|expired"):
        refuse_signature(request, signature_of(request), secret, at)
