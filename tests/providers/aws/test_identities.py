"""Each source of credentials at a simulated AWS that verifies signatures, trusts and ends of sessions."""

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
from runtime.errors import Terminal
from tests.support.simulator_control import control

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/fairlead-provider"
AS_ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/fairlead-provider/"


def _config(simulator: Served, **credentials: Any) -> ProviderConfigSpec:
    spec = {"region": "eu-west-1", "endpoint": simulator.url, "accountID": ACCOUNT, "credentials": credentials}
    return msgspec.convert(spec, ProviderConfigSpec)


def _keys(simulator: Served) -> dict[str, dict[str, str]]:
    key, secret = simulator.credentials
    return {"keys": {"aws_access_key_id": key, "aws_secret_access_key": secret}}


def _control(simulator: Served, path: str, body: object = None) -> Any:
    return control(simulator, "GET" if body is None else "POST", path, body)


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
def _pod(simulator: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What EKS puts into a Pod, for both ways at once."""
    token, pods = tmp_path / "token", tmp_path / "pods-token"
    pods.write_text(simulator.pod_token)
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{simulator.url}/_eks/v1/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(pods))
    _project(until=time.time() + 3600)


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
    async with connect(_config(simulator, **credentials), _keys(simulator)) as account:
        assert (await _principal(simulator, account)).startswith(AS_ROLE)


async def test_role_that_trusts_nobody_is_not_assumed(simulator: Served) -> None:
    _control(simulator, "roles", {"name": "closed", "account": ACCOUNT, "policy": None, "trust": {"accounts": []}})
    role = {"roleARN": f"arn:aws:iam::{ACCOUNT}:role/closed"}
    config = _config(simulator, source="Secret", secretRef={"name": "keys"}, assumeRoleChain=[role])

    with pytest.raises(Terminal, match="AssumeRole") as caught:
        async with connect(config, _keys(simulator)):
            pass

    assert caught.value.reason == "AccessDenied"


async def test_expired_token_is_named(simulator: Served) -> None:
    _project(until=1)

    with pytest.raises(Terminal, match="ExpiredToken") as caught:
        async with connect(_config(simulator, source="WebIdentity"), {}):
            pass

    assert caught.value.reason == "CredentialsInvalid"


async def test_wrong_secret_key_is_named_and_not_shown(simulator: Served) -> None:
    config = _config(simulator, source="Secret", secretRef={"name": "keys"})
    keys = _keys(simulator)
    keys["keys"]["aws_secret_access_key"] = "not-the-right-one"

    with pytest.raises(Terminal, match="SignatureDoesNotMatch") as caught:
        async with connect(config, keys):
            pass

    assert caught.value.reason == "CredentialsInvalid"
    assert "not-the-right-one" not in str(caught.value)
