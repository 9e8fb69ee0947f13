"""As whom we speak to AWS: exactly as the ProviderConfig says, renewed in time, and for one account alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from botocore.utils import parse_timestamp

from providers.aws.account import connect, instant
from providers.aws.config import Credentials, ProviderConfigSpec
from providers.aws.credentials import AGENT_HOSTS, PodIdentity, StaticKeys, WebIdentity, source_of
from providers.external.config import InstanceLimits, limit_refusal
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient
from tests.providers.aws.fake_sts import ACCOUNT, OTHER, FakeAws, serving

KEYS = {"aws_access_key_id": "AKIASTATIC", "aws_secret_access_key": "s3cr3t/key+of=nobody"}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/first"


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with serving() as fake:
        yield fake


@pytest.fixture(autouse=True)
def _hostile_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a machine may hold, and what must not matter: keys, profiles, files that run commands, endpoints."""
    ini = tmp_path / "config"
    ini.write_text(f"[profile evil]\ncredential_process = touch {tmp_path}/ran\n[default]\nregion = us-gov-west-1\n")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAAMBIENT",
        "AWS_SECRET_ACCESS_KEY": "ambient",
        "AWS_PROFILE": "evil",
        "AWS_CONFIG_FILE": str(ini),
        "AWS_SHARED_CREDENTIALS_FILE": str(ini),
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_RDS": "http://127.0.0.1:9",
        "AWS_DEFAULT_REGION": "us-gov-west-1",
    }.items():
        monkeypatch.setenv(name, value)


def _config(aws: FakeAws | None = None, **fields: Any) -> ProviderConfigSpec:
    spec = {
        "region": "eu-west-1",
        "credentials": {"source": "Secret", "secretRef": {"name": "keys"}},
        **({} if aws is None else {"endpoint": aws.url}),
        **fields,
    }
    return msgspec.convert(spec, ProviderConfigSpec)


async def _identity(config: ProviderConfigSpec, secrets: Mapping[str, Mapping[str, str]] | None = None) -> str:
    async with connect(config, {"keys": KEYS} if secrets is None else secrets) as account:
        return account.id


async def _refused(config: ProviderConfigSpec, secrets: Mapping[str, Mapping[str, str]] | None = None) -> str:
    try:
        await _identity(config, secrets)
    except (Blocked, Terminal) as failure:
        return f"{failure.reason}: {failure.message}"
    return "connected"


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


async def test_keys_of_a_secret_reach_their_account(aws: FakeAws, tmp_path: Path) -> None:
    assert await _identity(_config(aws)) == ACCOUNT
    assert aws.actions() == ["GetCallerIdentity AKIASTATIC"]
    assert not (tmp_path / "ran").exists()


async def test_chain_assumes_each_role_with_the_former(aws: FakeAws) -> None:
    chain = [
        {"roleARN": ROLE, "externalID": "xyz", "sessionName": "orders"},
        {"roleARN": f"arn:aws:iam::{OTHER}:role/second"},
    ]
    config = _config(aws, credentials={**SECRET, "assumeRoleChain": chain})

    assert await _identity(config) == OTHER
    assert aws.actions() == ["AssumeRole AKIASTATIC", "AssumeRole ASIAFIRST1", "GetCallerIdentity ASIASECOND2"]
    first = aws.requested[0][2]
    assert (first["ExternalId"], first["RoleSessionName"]) == ("xyz", "orders")
    assert "ExternalId" not in aws.requested[1][2]


async def test_projected_token_is_exchanged_and_read_again(
    aws: FakeAws, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    # Within the SDK's margin before the end of a session: each call renews it.
    aws.lasting = timedelta(minutes=12)

    async with connect(_config(aws, credentials={"source": "WebIdentity"}), {}) as account:
        token.write_text("second\n")
        await account.whoami()

    assert aws.tokens[0] == "first"
    assert aws.tokens[-1] == "second"
    # Exchanged without a signature: no other identity of the process takes part.
    assert {key for action, key, _ in aws.requested if action == "AssumeRoleWithWebIdentity"} == {""}


async def test_missing_projected_token_is_named(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")

    refused = await _refused(_config(aws, credentials={"source": "WebIdentity"}), {})

    assert refused.startswith("CredentialsMissing: the projected token")
    assert aws.requested == []


async def test_account_other_than_the_named_is_refused(aws: FakeAws) -> None:
    refused = await _refused(_config(aws, accountID=OTHER))

    assert refused.startswith("AccountChanged: ")
    assert ACCOUNT in refused
    assert OTHER in refused


async def test_account_that_changes_behind_the_same_credentials_is_seen(aws: FakeAws) -> None:
    async with connect(_config(aws), {"keys": KEYS}) as account:
        aws.keys["AKIASTATIC"] = OTHER
        with pytest.raises(Terminal) as caught:
            await account.whoami()

    assert caught.value.reason == "AccountChanged"


@pytest.mark.parametrize(
    ("key", "remedy"), [("AKIASTATIC", "renew the credentials"), ("AKIANOBODY", "renew the credentials")]
)
async def test_expired_session_and_unknown_key_are_named(aws: FakeAws, key: str, remedy: str) -> None:
    aws.keys["AKIASTATIC"] = None

    refused = await _refused(_config(aws), {"keys": {**KEYS, "aws_access_key_id": key}})

    assert refused.startswith("CredentialsInvalid: ")
    assert remedy in refused
    assert "r-1" not in refused
    assert "s3cr3t" not in refused


async def test_sts_without_an_answer_is_transient() -> None:
    with pytest.raises(Transient):
        await _identity(_config(endpoint="http://127.0.0.1:9"))


async def test_pages_are_read_to_the_end(aws: FakeAws) -> None:
    aws.pages = 3
    async with connect(_config(aws), {"keys": KEYS}) as account:
        instances = [instance async for instance in account.pages("describe_db_instances", "list", "DBInstances")]

    assert [instance["DBInstanceIdentifier"] for instance in instances] == ["db-1", "db-2", "db-3"]
    assert aws.requested[-1][2]["MaxRecords"] == "100"


@pytest.mark.parametrize(
    "written",
    ["2026-11-21T12:34:56Z", "2026-11-21T12:34:56.789Z", "2026-11-21T12:34:56+01:00", "2026-11-21T12:34:56",
     "Sat, 21 Nov 2026 12:34:56 GMT", 1795264496, 1795264496.5],
)  # fmt: skip
def test_times_are_read_as_the_sdk_reads_them(written: object) -> None:
    theirs = parse_timestamp(written)

    assert instant(written) == (theirs if theirs.tzinfo is not None else theirs.replace(tzinfo=UTC))


async def test_list_that_is_cut_off_is_a_failure(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.external.cloud_api.refusals._PAUSE", timedelta(0))
    aws.pages, aws.broken_page = 3, 2
    async with connect(_config(aws), {"keys": KEYS}) as account:
        with pytest.raises(Throttled):
            _ = [instance async for instance in account.pages("describe_db_instances", "list", "DBInstances")]


async def test_sdk_logs_no_bodies(aws: FakeAws, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with connect(_config(aws), {"keys": KEYS}) as account:
        await account.call(
            "modify_db_instance", "set the password", DBInstanceIdentifier="x", MasterUserPassword="hunter2hunter2"
        )

    assert "hunter2" not in caplog.text


async def test_required_login_needs_an_authority(aws: FakeAws) -> None:
    refused = await _refused(_config(aws, loginCheck="Required"), {"keys": KEYS})

    assert refused.startswith("InvalidValue: loginCheck Required wants caBundleRef")
    assert aws.requested == []


@pytest.mark.parametrize("check", ["Auto", "Off"])
async def test_alternating_logins_need_a_required_login(aws: FakeAws, check: str) -> None:
    refused = await _refused(_config(aws, loginCheck=check, logins="Alternating"), {"keys": KEYS})

    assert refused.startswith("InvalidValue: logins Alternating wants loginCheck Required")
    assert aws.requested == []


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
