"""For how long a change that interrupts does so, in the words of each cloud's documentation."""

from __future__ import annotations

from typing import Any

import pytest

from providers import aws, azure, gcp
from providers.aws.models import RDSInstanceParameters as Rds
from providers.azure.models import FlexibleServerParameters as Flexible
from providers.external.observation import Change, Observed, Phase
from providers.gcp.models import CloudSQLInstanceParameters as CloudSql

_KINDS: dict[type, Any] = {Rds: aws.INSTANCES, CloudSql: gcp.INSTANCES, Flexible: azure.FLEXIBLE_SERVERS}


@pytest.mark.parametrize(
    ("spec", "path", "outage"),
    [
        pytest.param(Rds(multi_az=True), "dbInstanceClass", "60 to 120 s, a failover", id="rds-standby"),
        pytest.param(Rds(), "dbInstanceClass", "minutes: no standby takes over", id="rds-alone"),
        pytest.param(Rds(multi_az=True), "engineVersion", "until the upgrade has ended, a standby's too", id="rds"),
        pytest.param(CloudSql(edition="ENTERPRISE_PLUS"), "tier", "near zero", id="cloudsql-plus"),
        pytest.param(CloudSql(edition="ENTERPRISE"), "tier", "", id="cloudsql-nothing-published"),
        pytest.param(CloudSql(), "databaseVersion", "until the upgrade has ended", id="cloudsql-upgrade"),
        pytest.param(Flexible(), "skuName", "a minute, or some on a busy server", id="azure-size"),
        pytest.param(Flexible(), "version", "until the upgrade has ended", id="azure-upgrade"),
    ],
)
def test_outage_is_the_one_that_the_cloud_documents(spec: object, path: str, outage: str) -> None:
    observed: Observed[Any, Any] = Observed("name", "", None, Phase.READY, spec, None, {})
    assert _KINDS[type(spec)].outage(Change((path,), "b", "a"), observed) == outage
