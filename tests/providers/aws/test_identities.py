"""Each source of credentials at a simulated AWS that verifies signatures, trusts and ends of sessions; no other one."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec
from runtime.errors import Blocked, Terminal, Transient
from tests.support.simulator_control import control

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/fairlead-provider"
SECRET: dict[str, Any] = {"source": "Secret", "secretRef": {"name": "keys"}}
OTHER = "210987654321"
AS_ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/fairlead-provider/"


def _config(simulator: Served, credentials: dict[str, Any] | None = None, **fields: Any) -> ProviderConfigSpec:
    spec = {"region": "eu-west-1", "endpoint": simulator.url, "credentials": credentials or SECRET, **fields}
    return msgspec.convert(spec, ProviderConfigSpec)


def _keys(simulator: Served, **changed: str) -> dict[str, dict[str, str]]:
    key, secret = simulator.credentials
    return {"keys": {"aws_access_key_id": key, "aws_secret_access_key": secret, **changed}}


def _control(simulator: Served, path: str, body: object = None) -> Any:
    return control(simulator, "GET" if body is None else "POST", path, body)


def _calls(simulator: Served) -> list[dict[str, Any]]:
    return list(_control(simulator, "audit?since=0"))


async def _refused(config: ProviderConfigSpec, secrets: dict[str, dict[str, str]]) -> str:
    with pytest.raises((Blocked, Terminal)) as refused:
        async with connect(config, secrets):
            pass
    return f"{getattr(refused.value, 'reason', '')}: {refused.value}"


def _token(*, until: float) -> str:
    """Return a projected token of the service account, unsigned: what is asked is its subject and its end."""
    parts: tuple[dict[str, object], ...] = (
        {"alg": "none"},
        {"sub": "system:serviceaccount:fairlead-aws:fairlead-provider-aws", "exp": until},
        {},
    )
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


def _project(*, until: float) -> None:
    Path(os.environ["AWS_WEB_IDENTITY_TOKEN_FILE"]).write_text(_token(until=until))


async def _principal(simulator: Served, account: AwsAccount) -> str:
    """List the instances; return as whom the simulator knew the caller."""
    await account.call("describe_db_instances", "list")
    return str(_control(simulator, "audit?since=0")[-1]["principal"])


@pytest.fixture(autouse=True)
def _environment(simulator: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What EKS puts into a Pod, for both ways at once; and what a machine may hold and must not matter."""
    token, pods, ini = tmp_path / "token", tmp_path / "pods-token", tmp_path / "config"
    pods.write_text(simulator.pod_token)
    ini.write_text(f"[profile evil]\ncredential_process = touch {tmp_path}/ran\n[default]\nregion = us-gov-west-1\n")
    for name, value in {
        "AWS_ROLE_ARN": ROLE,
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{simulator.url}/_eks/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(pods),
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
    _project(until=time.time() + 3600)
    control(simulator, "DELETE", "audit")


async def test_keys_authenticate_their_user_and_nothing_of_the_machine(simulator: Served, tmp_path: Path) -> None:
    async with connect(_config(simulator, accountID=ACCOUNT), _keys(simulator)) as account:
        assert await _principal(simulator, account) == f"arn:aws:iam::{ACCOUNT}:user/fairlead"
    assert {call["access_key_id"] for call in _calls(simulator)} == {simulator.credentials[0]}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "credentials",
    [
        {"source": "WebIdentity"},
        {"source": "PodIdentity"},
        {"source": "Secret", "secretRef": {"name": "keys"}, "assumeRoleChain": [{"roleARN": ROLE}]},
        {"source": "WebIdentity", "assumeRoleChain": [{"roleARN": ROLE}, {"roleARN": ROLE}]},
    ],
    ids=["a service account's token", "the agent of the node", "a role for keys", "a chain behind a token"],
)
async def test_role_is_assumed(simulator: Served, credentials: dict[str, Any]) -> None:
    async with connect(_config(simulator, credentials), _keys(simulator)) as account:
        assert (await _principal(simulator, account)).startswith(AS_ROLE)


async def test_projected_token_is_exchanged_without_a_signature(simulator: Served) -> None:
    async with connect(_config(simulator, {"source": "WebIdentity"}), {}):
        pass
    exchanged = [call for call in _calls(simulator) if call["action"] == "AssumeRoleWithWebIdentity"]
    # No other identity of the process takes part.
    assert {call["access_key_id"] for call in exchanged} == {""}


async def test_chain_assumes_each_role_with_the_former(simulator: Served) -> None:
    trust = {"accounts": [ACCOUNT]}
    _control(simulator, "roles", {"name": "first", "trust": {**trust, "external_id": "xyz"}})
    _control(simulator, "roles", {"name": "second", "account": OTHER, "trust": trust})
    first = {"roleARN": f"arn:aws:iam::{ACCOUNT}:role/first", "externalID": "xyz", "sessionName": "orders"}
    chain = [first, {"roleARN": f"arn:aws:iam::{OTHER}:role/second"}]
    async with connect(_config(simulator, {**SECRET, "assumeRoleChain": chain}), _keys(simulator)) as account:
        assert account.id == OTHER
    callers = [(call["action"], call["principal"].rpartition(":")[2].split("/")[1]) for call in _calls(simulator)]
    assert callers == [("AssumeRole", "fairlead"), ("AssumeRole", "first"), ("GetCallerIdentity", "second")]
    assert ["ExternalId" in call["params"] for call in _calls(simulator)[:2]] == [True, False]


async def test_account_other_than_the_named_or_the_former_is_refused(simulator: Served) -> None:
    refused = await _refused(_config(simulator, accountID=OTHER), _keys(simulator))
    assert refused.startswith("AccountChanged: ")
    assert (ACCOUNT in refused, OTHER in refused) == (True, True)

    key = {"access_key_id": "AKIAMOVING", "secret_access_key": "moving"}
    secrets = _keys(simulator, aws_access_key_id="AKIAMOVING", aws_secret_access_key="moving")
    _control(simulator, "keys", key)
    async with connect(_config(simulator), secrets) as account:
        _control(simulator, "keys", {**key, "account": OTHER})
        with pytest.raises(Terminal) as changed:
            await account.whoami()
    assert changed.value.reason == "AccountChanged"


REFUSED: dict[str, tuple[dict[str, str], str, str]] = {
    "an unknown key": ({"aws_access_key_id": "AKIANOBODY"}, "CredentialsInvalid: ", "renew the credentials"),
    "a session that is over": (
        {"aws_access_key_id": "ASIAOVER", "aws_secret_access_key": "s3cr3t"},
        "CredentialsInvalid: ",
        "renew the",
    ),
    "a wrong secret key": ({"aws_secret_access_key": "s3cr3t"}, "CredentialsInvalid: ", "SignatureDoesNotMatch"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_keys_that_are_refused_are_named_and_not_shown(simulator: Served, case: str) -> None:
    changed, reason, says = REFUSED[case]
    over = {"access_key_id": "ASIAOVER", "secret_access_key": "s3cr3t", "expires_at": "2020-01-01T00:00:00Z"}
    _control(simulator, "keys", over)

    refused = await _refused(_config(simulator), _keys(simulator, **changed))

    assert refused.startswith(reason)
    assert says in refused
    assert "s3cr3t" not in refused


async def test_role_that_trusts_nobody_is_not_assumed(simulator: Served) -> None:
    _control(simulator, "roles", {"name": "closed", "account": ACCOUNT, "policy": None, "trust": {"accounts": []}})
    role = {"roleARN": f"arn:aws:iam::{ACCOUNT}:role/closed"}

    refused = await _refused(_config(simulator, {**SECRET, "assumeRoleChain": [role]}), _keys(simulator))

    assert refused.startswith("AccessDenied: ")
    assert "AssumeRole" in refused


async def test_token_that_is_over_or_missing_is_named(simulator: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(simulator, {"source": "WebIdentity"})
    _project(until=1)
    refused = await _refused(config, {})
    assert refused.startswith("CredentialsInvalid: ")
    assert "ExpiredToken" in refused

    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")
    calls = len(_calls(simulator))
    assert (await _refused(config, {})).startswith("CredentialsMissing: the projected token")
    assert len(_calls(simulator)) == calls


async def test_sts_without_an_answer_is_transient(simulator: Served) -> None:
    config = msgspec.structs.replace(_config(simulator), endpoint="http://127.0.0.1:9")
    with pytest.raises(Transient):
        async with connect(config, _keys(simulator)):
            pass


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"caBundleRef": {"name": "ca"}}, "CredentialsInvalid: key ca.crt of Secret ca holds"),
        ({"loginCheck": "Required"}, "InvalidValue: loginCheck Required wants caBundleRef"),
        ({"loginCheck": "Auto", "logins": "Alternating"}, "InvalidValue: logins Alternating wants loginCheck Required"),
        ({"loginCheck": "Off", "logins": "Alternating"}, "InvalidValue: logins Alternating wants loginCheck Required"),
    ],
)
async def test_config_that_cannot_be_is_refused_before_anything_is_sent(
    simulator: Served, fields: dict[str, Any], says: str
) -> None:
    secrets = {**_keys(simulator), "ca": {"ca.crt": "nonsense"}}
    assert (await _refused(_config(simulator, **fields), secrets)).startswith(says)
    assert _calls(simulator) == []
