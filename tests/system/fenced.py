"""Each cloud with its provider at work by the shipped roles alone, beside one composer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest_asyncio

from devcloud.aws.platform import ACCESS_KEY
from devcloud.aws.platform import ACCOUNT as AWS_ACCOUNT
from devcloud.azure.entra.directory import CLIENT_ID
from devcloud.azure.platform import RESOURCE_GROUP
from devcloud.gcp.platform import ACCOUNT, PROJECT
from tests.support.aws import Aws
from tests.support.azure import SCOPE, Azure
from tests.support.gcp import Gcp
from tests.support.kinds import CONFIG_MAP
from tests.support.processes import Program
from tests.support.system import System

_IAM = Path(__file__).resolve().parents[2] / "deploy" / "iam"


def _shipped(cloud: str, **placeholders: str) -> dict[str, Any]:
    """Return what is shipped for a cloud, by the file's name, with its placeholders filled in."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((_IAM / cloud).glob("*.json"))}
    for placeholder, value in placeholders.items():
        texts = {name: text.replace(placeholder, value) for name, text in texts.items()}
    return {name: json.loads(text) for name, text in texts.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def one_composer(system: System) -> Program:
    """Return the composer at work."""
    return await system.start_composer()


async def restrict_aws(aws: Aws) -> None:
    """Put the provider's key under the shipped policies, made out to this account and installation."""
    config_map = await aws.system.api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation"))
    shipped = _shipped("aws", ACCOUNT=AWS_ACCOUNT, INSTALLATION=config_map["data"]["id"])
    policy = {
        "Version": "2012-10-17",
        "Statement": [statement for document in shipped.values() for statement in document["Statement"]],
    }
    key = {"access_key_id": ACCESS_KEY, "secret_access_key": aws.secret_key, "account": AWS_ACCOUNT}
    await aws.control("POST", "keys", {**key, "principal": "user/fairlead", "policy": policy})


async def restrict_azure(azure: Azure) -> None:
    """Put the provider's principal under the shipped role definitions, each at its own scope."""
    principal = (await azure.control("GET", "principals"))[CLIENT_ID]
    await azure.control("DELETE", f"roles/{principal}")
    for name, shipped in _shipped("azure").items():
        scope = SCOPE if name.endswith("-subscription") else f"{SCOPE}/resourceGroups/{RESOURCE_GROUP}"
        role = {"name": shipped["Name"], "actions": shipped["Actions"], "notActions": shipped["NotActions"]}
        await azure.control("POST", "roles", {"object_id": principal, "scope": scope, "role": role})


async def restrict_gcp(gcp: Gcp) -> None:
    """Put the provider's account under the shipped roles."""
    roles = []
    for name, role in _shipped("gcp").items():
        roles.append(f"projects/{PROJECT}/roles/{name}")
        await gcp.control("POST", "roles", {"name": roles[-1], "permissions": role["includedPermissions"]})
    await gcp.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": roles})
