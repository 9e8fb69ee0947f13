"""What postgres-aws makes of the claims that are not plain: windows at midnight, networks, sources, odd names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from composer.inventory import Entry
from composer.kinds.catalog import catalog
from composer.models import CompositionSpec
from composer.render.errors import CompositionError
from composer.render.floors import floors_of
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


def test_storage_that_rds_never_had_is_taken_back_and_what_it_has_stays() -> None:
    database = Entry(resource="instance", api_version="aws.fairlead.dev/v1alpha1", kind="RDSInstance", name="x",
                     floors={ALLOCATED: 7000, CEILING: 14000})  # fmt: skip
    schema = msgspec.convert(COMPOSITION, CompositionSpec)
    for status, least in (({"allocatedStorage": 20, "maxAllocatedStorage": 40}, (20, 40)), ({}, (7000, 14000)),
                          ({"allocatedStorage": 7000, "maxAllocatedStorage": 14000}, (7000, 14000))):  # fmt: skip
        instance: Object = {
            "kind": "RDSInstance",
            "metadata": {"name": "x"},
            "spec": {},
            "status": {"atProvider": status},
        }
        floors = floors_of([(database, instance)], schema)
        assert tuple(floor.value for floor in floors) == least


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


def test_storage_has_a_floor_and_may_double() -> None:
    instance = _instance({"storageGiB": 5})

    assert (instance["allocatedStorage"], instance["maxAllocatedStorage"]) == (20, 40)
    assert _instance({"storageGiB": 40000})["maxAllocatedStorage"] == 65536
    assert "maxAllocatedStorage" not in _instance({"storageGiB": 65536})


def test_networks_are_those_of_the_security_groups_of_the_platform() -> None:
    spec = {"network": {"allowedCIDRs": ["2001:db8::/32", "10.0.0.0/8"]}}
    offered = PLACE | {"securityGroupIds-10.0.0.0-8_2001.db8..-32": "sg-0a, sg-0b"}

    assert _instance(spec, place=offered)["vpcSecurityGroupIds"] == ["sg-0a", "sg-0b"]
    with pytest.raises(CompositionError, match=r"securityGroupIds-10\.0\.0\.0-8_2001\.db8\.\.-32"):
        _instance(spec)


def test_a_public_address_is_asked_for() -> None:
    assert _instance({"network": {"public": True}})["publiclyAccessible"] is True
    assert _instance({})["publiclyAccessible"] is False


def test_extensions_are_allowed_and_those_that_need_it_preloaded() -> None:
    objects = _rendered({"extensions": ["pgcrypto", "pg_cron", "pgaudit"], "parameters": {"rds.force_ssl": "0"}})

    assert objects["parameters"]["spec"]["forProvider"]["parameters"] == {
        "rds.allowed_extensions": "pgcrypto,pg_cron,pgaudit",
        "shared_preload_libraries": "pg_stat_statements,pgaudit,pg_cron",
        "rds.force_ssl": "1",
    }


@pytest.mark.parametrize("version", ["14", "15", "16", "17", "18"])
def test_versions_have_parameter_groups_of_their_own(version: str) -> None:
    objects = _rendered({"version": version})
    group = objects["parameters"]

    assert sorted(objects) == ["instance", "network", "parameters"]
    assert group["metadata"]["annotations"]["fairlead.dev/key"] == version
    assert group["spec"]["forProvider"]["dbParameterGroupFamily"] == f"postgres{version}"
    assert objects["instance"]["spec"]["forProvider"]["dbParameterGroupNameRef"] == {"name": group["metadata"]["name"]}


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ({"backup": "final-orders"}, {"dbSnapshotIdentifier": "final-orders"}),
        ({"claim": "old"}, {"pointInTime": {"sourceClaim": "old"}}),
        (
            {"claim": "old", "time": "2026-11-20T12:00:00Z"},
            {"pointInTime": {"sourceClaim": "old", "restoreTime": "2026-11-20T12:00:00Z"}},
        ),
    ],
)
def test_a_restore_source_is_copied_to_the_instance(source: dict[str, str], made: dict[str, Any]) -> None:
    assert _instance({"restoreFrom": source})["restoreFrom"] == made


@pytest.mark.parametrize(
    ("name", "database", "login"),
    [("9lives", "db_9lives", "db_9lives_app"), ("admin", "admin", "admin_app"), ("a.b-c", "a_b_c", "a_b_c_app")],
)
def test_names_are_made_valid_for_rds(name: str, database: str, login: str) -> None:
    instance = _instance({}, name=name)

    assert (instance["dbName"], instance["masterUsername"]) == (database, login)
