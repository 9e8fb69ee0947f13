"""Lives of claims in every cloud, side by side; each provider has the rights of the shipped roles and no more.

What the processes do in them is what `deploy/rights` lists, and no secret shows meanwhile. All that the lists say is
used; `tests/deploy/test_installed.py` holds them against the API server's own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import boto3
import pytest
import pytest_asyncio
from botocore.config import Config
from botocore.exceptions import ClientError

from devcloud.aws.platform import ACCESS_KEY, REGION
from tests.security.builders import at_once, expect
from tests.security.canaries import Exposure
from tests.security.cloud_canaries import ACCOUNTS as KEYS
from tests.security.cloud_canaries import PLACES, exposure_of, with_records
from tests.support import lives
from tests.support.audit import AuditLog
from tests.support.aws import AWS_CONFIG, Aws, simulated_rds
from tests.support.azure import Azure, simulated_azure
from tests.support.gcp import FLAGS, Gcp, simulated_cloud_sql
from tests.support.kinds import CLAIM, PROVIDER_CONFIG, claim, is_ready
from tests.support.rights import ACCOUNTS, CLOUDS, TAKEN_BY_NO_LIFE, Usage, usage_in
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System
from tests.system.fenced import restrict_aws, restrict_azure, restrict_gcp

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


_DEBUG = "--log-level=DEBUG"
_RESTORES = {
    "aws": ["RestoreDBInstanceToPointInTime", "RestoreDBInstanceFromDBSnapshot"],
    "azure": ["flexibleServers.put"],
    "gcp": ["instances.clone", "instances.restoreBackup"],
}
_MAKES = {*chain(*_RESTORES.values()), "CreateDBInstance", "instances.insert"}


@dataclass(frozen=True, slots=True)
class Lives:
    """What each account's requests come to, what shows of each cloud, and what went wrong in a whole life there."""

    aws: Aws
    usages: dict[str, Usage]
    exposures: dict[str, Exposure]
    outcomes: dict[str, BaseException | None]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lived(system: System) -> AsyncIterator[Lives]:
    """Yield what is seen of lives of claims in every cloud, with a standby beside each process."""
    audit = system.audit()
    for cloud in CLOUDS:
        await system.install_cloud(cloud)
    await asyncio.gather(
        *(system.start_composer(_DEBUG, name=name) for name in ("composer", "standby")),
        *(system.start_provider(*QUICK, name=name) for name in ("provider", "provider-standby")),
    )
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    shown: dict[str, Exposure] = {}

    def look(cloud: SimulatedCloud) -> lives.BeforeEnd:
        async def before_end(former: str) -> None:
            await _is_restored(cloud, f"rights-{cloud.cloud}")
            shown[cloud.cloud] = await exposure_of(cloud, f"rights-{cloud.cloud}", former)

        return before_end

    async with (
        simulated_rds(system) as aws,
        simulated_azure(system) as azure,
        simulated_cloud_sql(system) as gcp,
        _restricted(aws, azure, gcp),
        _providers([(aws, QUICK), (azure, QUICK), (gcp, FLAGS)]),
    ):
        outcomes = await at_once(
            {
                "onprem": lives.live_on_prem(system, "rights-onprem"),
                "aws": lives.live_on_aws(aws, "rights-aws", look(aws)),
                "azure": lives.live_on_azure(azure, "rights-azure", look(azure)),
                "gcp": lives.live_on_cloud_sql(gcp, "rights-gcp", look(gcp)),
            }
        )
        seen = [cloud for cloud in (aws, azure, gcp) if cloud.cloud in shown]
        exposures = {cloud.cloud: await with_records(cloud, shown[cloud.cloud]) for cloud in seen}
        yield Lives(aws, _usages(audit), exposures, outcomes)


async def _is_restored(cloud: SimulatedCloud, namespace: str) -> None:
    """Have a row read back by a claim that is restored from a living one, and from what that one leaves as it goes."""
    orders = (await cloud.system.api.get(CLAIM.path(namespace, "orders")))["spec"]
    network = {"network": orders["network"]} if "network" in orders else {}
    async with await cloud.system.login(namespace, "orders") as connection:
        await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
    since, policy = await cloud.mark(), "Delete" if cloud.cloud == "azure" else "Snapshot"
    time = {"time": (await cloud.control("GET", "clock"))["now"]} if cloud.cloud == "gcp" else {}
    source = {"claim": "orders", **time}
    await _has_the_row(cloud, namespace, "heir", restoreFrom=source, deletionPolicy=policy, **network)
    if policy == "Snapshot":
        await _has_the_row(cloud, namespace, "again", restoreFrom={"claim": "heir"}, deletionPolicy="Delete")
    made = [call["action"] for call in await cloud.changes(since)]
    assert [action for action in made if action in _MAKES] == _RESTORES[cloud.cloud]


async def _has_the_row(cloud: SimulatedCloud, namespace: str, name: str, **spec: Any) -> None:
    await cloud.system.create(CLAIM, claim(namespace, name, databaseName="orders", username="orders_app", **spec))
    await cloud.system.until(CLAIM, namespace, name, is_ready, limit_s=180.0)
    async with await cloud.system.login(namespace, name) as connection:
        assert await (await connection.execute("SELECT name FROM goods")).fetchall() == [("canary",)]
    await cloud.system.delete(CLAIM, namespace, name)


def _usages(audit: AuditLog) -> dict[str, Usage]:
    with_claims = frozenset(f"rights-{cloud}" for cloud in CLOUDS)
    requests = [request for request in audit.requests(begun=True) if request.group != lives.FOREIGN.group]
    return {account: usage_in(requests, account, with_claims) for account in ACCOUNTS}


@asynccontextmanager
async def _restricted(aws: Aws, azure: Azure, gcp: Gcp) -> AsyncIterator[None]:
    """Leave each provider the rights of its cloud's shipped roles."""
    await restrict_aws(aws)
    await restrict_azure(azure)
    await restrict_gcp(gcp)
    yield


@asynccontextmanager
async def _providers(flags: Sequence[tuple[SimulatedCloud, tuple[str, ...]]]) -> AsyncIterator[None]:
    """Have each cloud's provider and its standby for the length of a block, each cloud's with its flags."""
    starts = [
        cloud.start_provider(_DEBUG, *own, name=f"{cloud.cloud}-{number}") for cloud, own in flags for number in (1, 2)
    ]
    providers = await asyncio.gather(*starts)
    yield
    ended = await asyncio.gather(*(provider.terminate() for provider in providers))
    assert set(ended) == {0}


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_refused_for_want_of_a_right(lived: Lives, account: str) -> None:
    assert lived.usages[account].refused == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_unlisted(lived: Lives, account: str) -> None:
    assert lived.usages[account].unlisted == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_every_right_of_the_file_was_used(lived: Lives, account: str) -> None:
    assert [right for right in lived.usages[account].unused if right not in TAKEN_BY_NO_LIFE] == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("cloud", KEYS)
async def test_no_secret_of_a_cloud_shows(lived: Lives, cloud: str, place: str) -> None:
    exposure = lived.exposures[cloud]
    assert len(exposure.places[place]) > 200
    assert exposure.shown(place) == []


@pytest.mark.parametrize("cloud", KEYS)
async def test_the_secrets_that_are_looked_for_are_those_in_use(lived: Lives, cloud: str) -> None:
    canaries = lived.exposures[cloud].canaries

    assert len(set(canaries.values())) >= 4
    assert min(len(text) for text in canaries.values()) >= 16
    assert [name for name in canaries if name.startswith("key ")] != []


@pytest.mark.parametrize("cloud", ["onprem", *KEYS])
async def test_a_claim_is_served_changed_and_taken_away(lived: Lives, cloud: str) -> None:
    expect(lived.outcomes[cloud])


async def test_the_shipped_policies_leave_what_is_not_ours_alone(lived: Lives) -> None:
    aws = lived.aws
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
