"""A claim's whole life on each cloud, side by side; each provider has the rights of the shipped roles and no more."""

from __future__ import annotations

import asyncio
from typing import Any

import boto3
import pytest
import pytest_asyncio
from botocore.config import Config
from botocore.exceptions import ClientError

from devcloud.aws.platform import ACCESS_KEY, REGION
from tests.security.builders import at_once, expect
from tests.support.aws import AWS_CONFIG, Aws
from tests.support.azure import Azure
from tests.support.gcp import Gcp
from tests.support.kinds import is_ready
from tests.support.processes import Program
from tests.system import life_on_aws, life_on_azure, life_on_gcp
from tests.system.fenced import fence_aws, fence_azure, fence_gcp

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(aws: Aws, azure: Azure, gcp: Gcp, one_composer: Program) -> dict[str, BaseException | None]:
    """Return what went wrong in each cloud."""
    del one_composer

    async def on_aws() -> None:
        await fence_aws(aws)
        await life_on_aws.live(aws)

    async def on_azure() -> None:
        await fence_azure(azure)
        await life_on_azure.live(azure)

    async def on_gcp() -> None:
        await fence_gcp(gcp)
        await life_on_gcp.live(gcp)

    return await at_once({"aws": on_aws(), "azure": on_azure(), "gcp": on_gcp()})


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
async def test_a_claim_is_served_changed_and_taken_away(outcomes: dict[str, BaseException | None], cloud: str) -> None:
    expect(outcomes[cloud])


@pytest.mark.usefixtures("outcomes")
async def test_the_shipped_policies_leave_what_is_not_ours_alone(aws: Aws) -> None:
    made: dict[str, Any] = {
        "DBInstanceIdentifier": "fl-foreign",
        "DBInstanceClass": "db.t4g.micro",
        "Engine": "postgres",
    }
    login: dict[str, Any] = {"MasterUsername": "boss", "MasterUserPassword": "Sufficient-1", "AllocatedStorage": 20}
    await aws.person("create_db_instance", **made, **login)
    await aws.until("fl-foreign", lambda instance: instance["DBInstanceStatus"] == "available")

    denied = [
        await asyncio.to_thread(_refused, aws, operation, parameters)
        for operation, parameters in (
            ("modify_db_instance", {"DBInstanceIdentifier": "fl-foreign", "BackupRetentionPeriod": 0}),
            ("delete_db_instance", {"DBInstanceIdentifier": "fl-foreign", "SkipFinalSnapshot": True}),
            ("create_db_instance", {**made, **login, "DBInstanceIdentifier": "fl-untagged"}),
        )
    ]
    assert denied == ["AccessDenied"] * 3
    await aws.system.until(AWS_CONFIG, "", "default", is_ready)


def _refused(aws: Aws, operation: str, parameters: dict[str, Any]) -> str:
    """Call with the provider's own key; return the code of the refusal."""
    client = boto3.client(
        "rds",
        region_name=REGION,
        endpoint_url=aws.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=aws.secret_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        getattr(client, operation)(**parameters)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    finally:
        client.close()
    return ""
