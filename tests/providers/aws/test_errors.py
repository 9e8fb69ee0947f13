"""What each answer of RDS and STS means: the five classes, by code."""

from __future__ import annotations

from datetime import timedelta

import botocore.session
import msgspec
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from structlog.testing import capture_logs

from providers.aws.errors import failure_of
from providers.external.client import FenceClosed
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient

HOST = "https://rds.eu-west-1.amazonaws.com"


class Case(msgspec.Struct, frozen=True):
    """One answer; `source` is where AWS documents it."""

    says: str
    code: str
    kind: type[Failure]
    reason: str = ""
    message: str = "refused"
    status: int = 400
    source: str = "RDS API reference, errors of the operation"


CASES = (
    Case("too many calls", "Throttling", Throttled, message="Rate exceeded", source="RDS API reference, Common Errors"),
    Case("a fault of AWS", "InternalFailure", Transient, status=500, source="Common Errors"),
    Case("a code of tomorrow", "SomethingNew", Transient, source="none: a code that nobody knows yet"),
    Case("no such instance", "DBInstanceNotFound", NotThere, "ReferenceNotFound", status=404),
    Case("an instance of that name", "DBInstanceAlreadyExists", AlreadyThere, "NameTaken"),
    Case("the state allows no change", "InvalidDBInstanceState", Blocked, "CloudBusy"),
    Case("the state allows no change, in full", "InvalidDBInstanceStateFault", Blocked, "CloudBusy"),
    Case(
        "a group with members", "InvalidDBParameterGroupState", Blocked, "DeleteBlocked",
        "One or more database instances are still members of this parameter group",
        source="hashicorp/terraform-provider-aws 6448",
    ),
    Case("too many instances", "InstanceQuotaExceeded", Blocked, "QuotaExceeded"),
    Case("too many manual snapshots", "SnapshotQuotaExceeded", Blocked, "BackupImpossible"),
    Case("a value that RDS refuses", "InvalidParameterValue", Terminal, "InvalidValue"),
    Case("values that do not go together", "InvalidParameterCombination", Terminal, "InvalidValue"),
    Case(
        "a protected instance", "InvalidParameterCombination", Blocked, "DeleteBlocked",
        message="Cannot delete protected DB Instance, please disable deletion protection and try again.",
    ),
    Case(
        "a password that RDS refuses", "InvalidParameterValue", Terminal, "InvalidPassword",
        message="The parameter MasterUserPassword is not a valid password.",
    ),
    Case(
        "a version that is not offered", "InvalidParameterCombination", Terminal, "UnsupportedVersion",
        message="Cannot find version 99.1 for postgres",
    ),
    Case(
        "the right to make the role of RDS", "InvalidParameterValue", Terminal, "AccessDenied",
        message="Unable to create the resource. Verify that you have permission to create service linked role. "
        "Otherwise wait and try again later", source="hashicorp/terraform-provider-aws 10100",
    ),
    Case(
        "the same of a subnet group", "InvalidParameterValue", Terminal, "AccessDenied",
        message="Missing necessary credentials. Please check http://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/"
        "UsingWithRDS.IAM.ServiceLinkedRoles.html", source="crossplane-contrib/provider-aws 479",
    ),
    Case("a right that is missing", "AccessDenied", Terminal, "AccessDenied", status=403, source="Common Errors"),
    Case("a key that may not be used", "KMSKeyNotAccessibleFault", Terminal, "AccessDenied"),
    Case("an unknown access key", "InvalidClientTokenId", Terminal, "CredentialsInvalid", status=403),
    Case("a session that is over", "ExpiredToken", Terminal, "CredentialsInvalid", status=403),
)  # fmt: skip


def _answer(case: Case) -> ClientError:
    meta = {"RequestId": "6f1e", "HTTPStatusCode": case.status, "HTTPHeaders": {}}
    return ClientError({"Error": {"Code": case.code, "Message": case.message}, "ResponseMetadata": meta}, "Op")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_answer_has_its_class(case: Case) -> None:
    failure = failure_of(_answer(case), "change database x")

    assert type(failure) is case.kind
    assert getattr(failure, "reason", "") == case.reason
    assert "cannot change database x: " in str(failure)
    assert "6f1e" not in str(failure)
    assert case.code in str(failure)


def test_error_of_every_operation_in_use_has_a_class() -> None:
    """A code that RDS documents for what we call is decided on, not met."""
    model = botocore.session.Session().get_service_model("rds")
    codes = {
        error.metadata.get("error", {}).get("code", error.name)
        for operation in OPERATIONS
        for error in model.operation_model(operation).error_shapes
    }
    undecided = {code for code in codes if type(_of(code)) is Transient} - ELSEWHERE

    assert len(codes) > len(OPERATIONS)
    assert undecided == set()


def _of(code: str) -> Failure:
    return failure_of(_answer(Case("", code, Failure)), "x")


OPERATIONS = (
    "CreateDBInstance", "ModifyDBInstance", "DeleteDBInstance", "DescribeDBInstances", "RebootDBInstance",
    "StartDBInstance", "RestoreDBInstanceFromDBSnapshot", "RestoreDBInstanceToPointInTime", "DescribeDBSnapshots",
    "CreateDBSubnetGroup", "ModifyDBSubnetGroup", "DeleteDBSubnetGroup", "DescribeDBSubnetGroups",
    "CreateDBParameterGroup", "ModifyDBParameterGroup", "ResetDBParameterGroup", "DeleteDBParameterGroup",
    "DescribeDBParameterGroups", "DescribeDBParameters", "DescribeDBInstanceAutomatedBackups",
)  # fmt: skip
# Only for what is never asked for: capacity reservations, several databases in an instance, custom engines.
ELSEWHERE = frozenset({
    "InvalidDBCapacityReservationState", "TenantDatabaseQuotaExceeded", "InvalidDBSecurityGroupState",
})  # fmt: skip


def test_pause_is_the_one_that_aws_names() -> None:
    meta = {"HTTPHeaders": {"retry-after": "30"}}
    failure = failure_of(ClientError({"Error": {"Code": "Throttling"}, "ResponseMetadata": meta}, "Op"), "x")

    assert isinstance(failure, Throttled)
    assert failure.after == timedelta(seconds=30)


MOMENTARY = (
    ("a connection that nobody takes", EndpointConnectionError(endpoint_url=HOST), True),
    ("a connection that breaks", ConnectionClosedError(endpoint_url=HOST), True),
    ("a fault of AWS", _answer(Case("", "InternalFailure", Transient, status=500)), True),
    ("a gateway's answer", _answer(Case("", "", Transient, status=502)), True),
    ("a connection that takes too long", ConnectTimeoutError(endpoint_url=HOST), False),
    ("an answer that takes too long", ReadTimeoutError(endpoint_url=HOST), False),
    ("a code of tomorrow", _answer(Case("", "SomethingNew", Transient)), False),
    ("an agent that is away", CredentialRetrievalError(provider="x", error_msg="agent is away"), False),
    ("a broken answer", ValueError("a broken answer"), False),
)


@pytest.mark.parametrize(("error", "is_momentary"), [row[1:] for row in MOMENTARY], ids=[row[0] for row in MOMENTARY])
def test_what_ends_at_once_is_momentary_and_a_time_out_is_not(error: Exception, *, is_momentary: bool) -> None:
    failure = failure_of(error, "look")

    assert type(failure) is Transient
    assert failure.is_momentary is is_momentary


def test_missing_credentials_are_terminal() -> None:
    failure = failure_of(NoCredentialsError(), "look")

    assert isinstance(failure, Terminal)
    assert failure.reason == "CredentialsInvalid"


def test_closed_fence_is_returned_as_it_is() -> None:
    closed = FenceClosed("over")

    assert failure_of(closed, "change") is closed
    assert isinstance(closed, Conflict)


@pytest.mark.parametrize(
    "error",
    [
        _answer(Case("", "InvalidParameterValue", Terminal, message="MasterUserPassword 'hunter2' is too short")),
        ParamValidationError(report="value: hunter2 of MasterUserPassword"),
        ValueError("sent MasterUserPassword=hunter2"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_secret_is_never_repeated(error: Exception) -> None:
    text = str(failure_of(error, "set the password", hide=("hunter2", "")))

    assert "hunter2" not in text
    assert "[redacted]" in text


def test_repeated_refusal_has_the_same_message_and_its_request_is_in_the_log() -> None:
    texts = []
    with capture_logs() as logs:
        for request in ("request-1", "request-2"):
            answer = {
                "Error": {"Code": "InvalidDBInstanceState", "Message": "not now"},
                "ResponseMetadata": {"RequestId": request},
            }
            texts.append(str(failure_of(ClientError(answer, "ModifyDBInstance"), "change it")))
    assert texts == ["cannot change it: not now (InvalidDBInstanceState)"] * 2
    assert [entry["request"] for entry in logs] == ["request-1", "request-2"]
