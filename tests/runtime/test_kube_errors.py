from typing import Any

import msgspec
import pytest

from runtime.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    Forbidden,
    Gone,
    Invalid,
    NamespaceTerminating,
    NotFound,
    NotGranted,
    TooManyRequests,
    Unavailable,
    WriteConflict,
)
from runtime.kube_errors import from_answer, from_event, without_values


def status(reason: str = "", *causes: dict[str, str], message: str = "words", **details: Any) -> bytes:
    return msgspec.json.encode(
        {"kind": "Status", "reason": reason, "message": message, "details": {"causes": list(causes), **details}}
    )


NOT_GRANTED = (
    'secrets "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API group "" in the'
    ' namespace "shop"'
)
FIELD = {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.size"}
TERMINATING = {"reason": "NamespaceTerminating", "message": "ns is being terminated", "field": "metadata.namespace"}


OTHER_UID = {"reason": "FieldValueInvalid", "field": "metadata.uid"}
OVER_QUOTA = 'secrets "x" is forbidden: exceeded quota: q'
UNTYPED = "failed to create typed patch object (x): .spec.y"


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param(400, status("BadRequest"), Invalid, id="400"),
        pytest.param(401, status("Unauthorized"), Forbidden, id="401"),
        pytest.param(403, status("Forbidden"), Forbidden, id="403"),
        pytest.param(403, status("Forbidden", message=NOT_GRANTED), NotGranted, id="403 by the authorizer"),
        pytest.param(403, status("Forbidden", message=OVER_QUOTA), Forbidden, id="403 by a quota"),
        pytest.param(403, status("Forbidden", TERMINATING), NamespaceTerminating, id="namespace terminating"),
        pytest.param(404, status("NotFound"), NotFound, id="404"),
        pytest.param(409, status("AlreadyExists"), AlreadyExists, id="already exists"),
        pytest.param(409, status("Conflict"), WriteConflict, id="conflict"),
        pytest.param(409, status("Conflict", FIELD), ApplyConflict, id="conflict of field managers"),
        pytest.param(410, status("Expired"), Gone, id="410"),
        pytest.param(413, b"too large", Invalid, id="413"),
        pytest.param(422, status("Invalid"), Invalid, id="422"),
        pytest.param(422, status("Invalid", OTHER_UID), WriteConflict, id="an apply that means another object"),
        pytest.param(429, status("TooManyRequests"), TooManyRequests, id="429"),
        pytest.param(500, status("InternalError"), Unavailable, id="500"),
        pytest.param(500, status(message=UNTYPED), Invalid, id="500 of an apply that does not fit the schema"),
        pytest.param(503, b"<html>bad gateway</html>", Unavailable, id="503 of a proxy"),
        pytest.param(504, b"", Unavailable, id="504 without a body"),
        pytest.param(302, b"", ApiError, id="a redirect is an error"),
        pytest.param(418, b"[]", ApiError, id="anything else"),
    ],
)
def test_an_answer_becomes_its_type(code: int, body: bytes, expected: type[ApiError]) -> None:
    error = from_answer(code, body)

    assert type(error) is expected
    assert error.status == code
    assert error.message


def test_an_error_event_is_read_by_its_code() -> None:
    assert type(from_event(b'{"kind":"Status","code":410,"message":"too old"}')) is Gone
    assert type(from_event(b"nonsense")) is ApiError


def test_a_refused_secret_is_reported_without_its_content() -> None:
    cause = {"reason": "FieldValueInvalid", "message": 'Invalid value: "hunter2"', "field": "data[password]"}
    error = without_values(from_answer(422, status("Invalid", cause, message='Secret is invalid: "hunter2"')))

    assert type(error) is Invalid
    assert "hunter2" not in f"{error!r} {error} {error.message} {error.causes}"
    assert "data[password]" in error.message
