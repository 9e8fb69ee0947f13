"""As whom we speak to AWS: exactly as the ProviderConfig says; what is read, and what is never logged."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from botocore.utils import parse_timestamp

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount, instant
from providers.aws.config import Credentials
from providers.aws.credentials import AGENT_HOSTS, PodIdentity, StaticKeys, WebIdentity, first, source_of
from providers.external.cloud_api.refusals import NotThere
from providers.external.config import InstanceLimits, limit_refusal
from runtime.errors import Blocked, Failure, Terminal, Throttled
from tests.support.simulator_control import control

KEYS = {"aws_access_key_id": "AKIASTATIC", "aws_secret_access_key": "s3cr3t/key+of=nobody"}
ROLE = "arn:aws:iam::123456789012:role/first"
_PAGE = 20
_GROUPS = ("describe_db_parameter_groups", "list", "DBParameterGroups")


class Source(msgspec.Struct, frozen=True):
    says: str
    config: dict[str, Any]
    expected: StaticKeys | WebIdentity | PodIdentity
    secret: dict[str, str] = {}
    environ: dict[str, str] = {}


class NoSource(msgspec.Struct, frozen=True):
    says: str
    config: dict[str, Any]
    refused: str
    names: str = ""
    secret: dict[str, str] = {}
    environ: dict[str, str] = {}


SECRET = {"source": "Secret", "secretRef": {"name": "keys"}}
IRSA = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token"}
AGENT = "http://169.254.170.23/v1/credentials"
POD = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": AGENT, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/var/run/token"}
TOKEN = Path("/var/run/token")
ID, KEY = KEYS["aws_access_key_id"], KEYS["aws_secret_access_key"]
SOURCES = (
    Source("keys of a Secret", SECRET, StaticKeys(ID, KEY), secret=KEYS),
    Source("keys of a session", SECRET, StaticKeys(ID, KEY, "t"), secret={**KEYS, "aws_session_token": "t"}),
    Source("a role of the service account", {"source": "WebIdentity"}, WebIdentity(ROLE, TOKEN), environ=IRSA),
    Source(
        "another role for it", {"source": "WebIdentity", "roleARN": "arn:x"}, WebIdentity("arn:x", TOKEN), environ=IRSA
    ),
    Source("the agent", {"source": "PodIdentity"}, PodIdentity(AGENT, TOKEN), environ=POD),
)
MISSING, INVALID, FORBIDDEN = "CredentialsMissing", "CredentialsInvalid", "CredentialsForbidden"
NO_SOURCES = (
    NoSource("no access key", SECRET, MISSING, "aws_access_key_id", {"aws_secret_access_key": "s"}),
    NoSource("an empty key", SECRET, MISSING, "aws_secret_access_key", {**KEYS, "aws_secret_access_key": ""}),
    NoSource("an empty Secret", SECRET, MISSING, "keys"),
    NoSource("a line's end", SECRET, INVALID, "aws_secret_access_key", {**KEYS, "aws_secret_access_key": "hunter2\n"}),
    NoSource("a command", SECRET, FORBIDDEN, "credential_process", {**KEYS, "credential_process": "touch hunter2"}),
    NoSource("a file of the SDK", SECRET, FORBIDDEN, "credentials", {"credentials": "[default]"}),
    NoSource("a profile", SECRET, FORBIDDEN, "source_profile", {**KEYS, "source_profile": "x"}),
    NoSource("no token", {"source": "WebIdentity"}, MISSING, "AWS_WEB_IDENTITY_TOKEN_FILE", {}, {"AWS_ROLE_ARN": ROLE}),
    NoSource("no role", {"source": "WebIdentity"}, MISSING, "AWS_ROLE_ARN", {}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}),
    NoSource("no agent", {"source": "PodIdentity"}, MISSING, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    NoSource(
        "the node's own metadata service",
        {"source": "PodIdentity"},
        "EndpointNotAllowed",
        environ={**POD, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.169.254/x"},
    ),
    NoSource("keys that lie about", {"source": "PodIdentity"}, MISSING, secret=KEYS),
)


def _source(case: Source | NoSource) -> StaticKeys | WebIdentity | PodIdentity:
    config = msgspec.convert(case.config, Credentials)
    return source_of(config, {"keys": case.secret}, case.environ, agents=AGENT_HOSTS)


@pytest.mark.parametrize("case", SOURCES, ids=lambda case: case.says)
def test_source_of_credentials(case: Source) -> None:
    assert _source(case) == case.expected


@pytest.mark.parametrize("case", NO_SOURCES, ids=lambda case: case.says)
def test_source_of_credentials_that_is_refused(case: NoSource) -> None:
    with pytest.raises(Failure) as caught:
        _source(case)

    failure = caught.value
    assert isinstance(failure, Blocked | Terminal)
    assert failure.reason == case.refused
    assert case.names in failure.message
    assert "hunter2" not in failure.message


def test_keys_are_never_printed() -> None:
    assert "s3cr3t" not in repr(StaticKeys(ID, KEY))


async def test_projected_token_is_read_again_for_each_session(tmp_path: Path) -> None:
    token, tokens = tmp_path / "token", list[str]()

    class Sts:
        """Gives out sessions that are over within the SDK's margin: each use renews them."""

        def assume_role_with_web_identity(self, **parameters: str) -> dict[str, Any]:
            tokens.append(parameters["WebIdentityToken"])
            until = datetime.now(UTC) + timedelta(minutes=9)
            keys = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": until}
            return {"Credentials": keys}

    credentials = first(WebIdentity(ROLE, token), lambda _credentials: Sts())
    for text in ("first\n", "second\n"):
        token.write_text(text)
        credentials.get_frozen_credentials()

    assert (tokens[0], tokens[-1]) == ("first", "second")


async def _make_groups(account: AwsAccount, stem: str) -> None:
    for number in range(_PAGE + 1):
        await account.call("create_db_parameter_group", "make it", DBParameterGroupName=f"{stem}-{number}",
                           DBParameterGroupFamily="postgres16", Description="one of many")  # fmt: skip


async def test_pages_are_read_to_the_end(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.aws.account._PAGE", _PAGE)
    await _make_groups(account, "listed")

    names = [group["DBParameterGroupName"] async for group in account.pages(*_GROUPS)]

    assert {f"listed-{number}" for number in range(_PAGE + 1)} <= set(names)


async def test_list_that_is_cut_off_is_a_failure(
    account: AwsAccount, simulator: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.external.cloud_api.refusals._PAUSE", timedelta(0))
    monkeypatch.setattr("providers.aws.account._PAGE", _PAGE)
    await _make_groups(account, "cut")
    fault = {"action": "DescribeDBParameterGroups", "times": None, "code": "Throttling"}
    try:
        with pytest.raises(Throttled):
            # The first page has come when the second is refused.
            _ = [control(simulator, "POST", "faults", fault) async for _ in account.pages(*_GROUPS)]
    finally:
        control(simulator, "DELETE", "faults")


async def test_sdk_logs_no_bodies(account: AwsAccount, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(NotThere):
        await account.call(
            "modify_db_instance", "set the password", DBInstanceIdentifier="x", MasterUserPassword="hunter2hunter2"
        )

    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    "written",
    ["2026-11-21T12:34:56Z", "2026-11-21T12:34:56.789Z", "2026-11-21T12:34:56+01:00", "2026-11-21T12:34:56",
     "Sat, 21 Nov 2026 12:34:56 GMT", 1795264496, 1795264496.5],
)  # fmt: skip
def test_times_are_read_as_the_sdk_reads_them(written: object) -> None:
    theirs = parse_timestamp(written)

    assert instant(written) == (theirs if theirs.tzinfo is not None else theirs.replace(tzinfo=UTC))


class Limit(msgspec.Struct, frozen=True):
    says: str
    limits: InstanceLimits
    refused: str = ""
    storage_gib: int | None = 100
    public: bool = False


@pytest.mark.parametrize(
    "case",
    [
        Limit("no limits", InstanceLimits()),
        Limit("a class that is offered", InstanceLimits(classes=("db.t4g.medium",))),
        Limit("a class that is not", InstanceLimits(classes=("db.m7g.large",)), "only db.m7g.large"),
        Limit("no class at all", InstanceLimits(classes=()), "only none"),
        Limit("as much storage as is allowed", InstanceLimits(storage_gib=100)),
        Limit("more storage than is allowed", InstanceLimits(storage_gib=99), "at most 99 GiB"),
        Limit("storage that is not known", InstanceLimits(storage_gib=99), storage_gib=None),
        Limit("an address on the internet", InstanceLimits(), "internet", public=True),
        Limit("an address on the internet, allowed", InstanceLimits(public_access=True), public=True),
    ],
    ids=lambda case: case.says,
)
def test_limit_of_the_config(case: Limit) -> None:
    refused = limit_refusal(
        case.limits,
        instance_class="db.t4g.medium",
        storage_gib=case.storage_gib,
        publicly_accessible=case.public,
    )

    assert (refused is not None) is bool(case.refused)
    assert refused is None or (refused[0] == "LimitReached" and case.refused in refused[1])
