"""What postgres-aws makes of the claims that are not plain: windows at midnight, networks, sources, odd names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composer.kinds.catalog import catalog
from composer.render.errors import CompositionError
from composer.render.render import render
from composer.render.request import Request
from composer.render.schema import defaulted, mismatches
from runtime.objects import Object
from tests.support import yaml_texts

ROOT = Path(__file__).resolve().parents[2]
COMPOSITION = yaml_texts.load(ROOT / "compositions" / "postgres-aws.yaml")["spec"]
CATALOG = catalog([yaml_texts.load(path) for path in sorted((ROOT / "crds").glob("*.yaml"))])
ALLOCATED, CEILING = "spec.forProvider.allocatedStorage", "spec.forProvider.maxAllocatedStorage"
PLACE = {"subnetIds": "subnet-0a1b2c3d, subnet-0a1b2c3e", "securityGroupIds": "sg-0a1b2c3d"}


def _rendered(spec: dict[str, Any], *, name: str = "orders", place: dict[str, str] | None = None) -> dict[str, Object]:
    schema = (CATALOG["PostgreSQLInstance.database.fairlead.dev"].schema or {})["properties"]["spec"]
    claim: Object = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": name, "namespace": "shop", "uid": "1"},
        "spec": defaulted({"version": "16"} | ({} if "cpu" in spec else {"size": "small"}) | spec, schema),
    }
    environments = {"aws": PLACE if place is None else place}
    result = render(Request("postgres-aws", COMPOSITION, claim, f"1@shop/{name}", environments=environments))
    for child in result.children:
        kind = f"{child.object['kind']}.aws.fairlead.dev"
        wanted = (CATALOG[kind].schema or {})["properties"]["spec"]
        assert list(mismatches(child.object["spec"], wanted, "spec")) == []
    return {child.resource: child.object for child in result.children}


def _instance(spec: dict[str, Any], *, name: str = "orders", place: dict[str, str] | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = _rendered(spec, name=name, place=place)["instance"]["spec"]["forProvider"]
    return fields


def test_an_extension_that_rds_does_not_offer_is_refused_with_its_name() -> None:
    with pytest.raises(CompositionError, match=r"RDS does not offer every one of plpython3u, pg_cron") as refused:
        _rendered({"extensions": ["plpython3u", "pg_cron"]})
    assert {problem.reason for problem in refused.value.problems} == {"UnsupportedValue"}


BEFORE_MIDNIGHT = {"maintenanceWindow": {"day": "Saturday", "hour": 23}}
AFTER_MIDNIGHT = {"maintenanceWindow": {"day": "Monday", "hour": 1}}
AT_MIDNIGHT, KEPT_LONGER = {"backup": {"startTime": "23:30"}}, {"backup": {"retentionDays": 3}}


@pytest.mark.parametrize(
    ("spec", "backup", "maintenance"),
    [
        pytest.param({}, "01:00-02:00", "sun:03:00-sun:04:00", id="neither is asked for"),
        pytest.param(BEFORE_MIDNIGHT, "21:00-22:00", "sat:23:00-sun:00:00", id="maintenance before midnight"),
        pytest.param(AFTER_MIDNIGHT, "23:00-00:00", "mon:01:00-mon:02:00", id="maintenance after midnight"),
        pytest.param(AT_MIDNIGHT, "23:30-00:30", "sun:01:00-sun:02:00", id="a backup before midnight"),
        pytest.param(KEPT_LONGER, "01:00-02:00", "sun:03:00-sun:04:00", id="a backup that is only kept longer"),
    ],
)
def test_windows_do_not_overlap(spec: dict[str, Any], backup: str, maintenance: str) -> None:
    instance = _instance(spec)

    assert (instance["preferredBackupWindow"], instance["preferredMaintenanceWindow"]) == (backup, maintenance)


@pytest.mark.parametrize(
    ("cpu", "memory_gib", "offered"),
    [
        (1, 1, "db.t4g.medium"),
        (1, 8, "db.m7g.large"),
        (2, 9, "db.r7g.large"),
        (3, 4, "db.m7g.xlarge"),
        (16, 65, "db.r7g.4xlarge"),
        (64, 512, "db.r7g.16xlarge"),
        (65, 1, "db.m6i.32xlarge"),
        (1, 513, "db.r6i.32xlarge"),
        (128, 1024, "db.r6i.32xlarge"),
    ],
)
def test_the_next_larger_class_is_taken(cpu: int, memory_gib: int, offered: str) -> None:
    assert _instance({"cpu": cpu, "memoryGiB": memory_gib})["dbInstanceClass"] == offered
