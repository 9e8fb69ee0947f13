"""What is read of Terraform's states and Crossplane's managed resources, and how these tools forget it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.imports.migrating import of_crossplane, of_terraform
from fairlead.imports.thing import Thing
from runtime.objects import Object

SERVER = "/subscriptions/s/resourceGroups/shop/providers/Microsoft.DBforPostgreSQL/flexibleServers/prod"


def _state(*resources: tuple[str, dict[str, Any]], mode: str = "managed") -> dict[str, Any]:
    def entries(part: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        return [{"address": f"{type_}.a", "mode": mode, "type": type_, "values": values} for type_, values in part]

    module = {"address": "module.m", "resources": entries([*resources[1:]])}
    return {
        "format_version": "1.0",
        "values": {"root_module": {"resources": entries([*resources[:1]]), "child_modules": [module]}},
    }


ROWS: list[tuple[str, dict[str, Any], str, Thing]] = [
    ("aws_db_instance", {"identifier": "shop", "engine": "postgres"}, "aws", Thing("RDSInstance", "shop")),
    ("aws_db_parameter_group", {"name": "shop-16"}, "aws", Thing("DBParameterGroup", "shop-16")),
    ("aws_db_subnet_group", {"name": "private"}, "aws", Thing("DBSubnetGroup", "private")),
    (
        "google_sql_database_instance",
        {"name": "shop", "database_version": "POSTGRES_16"},
        "gcp",
        Thing("CloudSQLInstance", "shop"),
    ),
    ("google_sql_database", {"name": "app", "instance": "shop"}, "gcp", Thing("CloudSQLDatabase", "shop/app")),
    ("google_sql_user", {"name": "me", "instance": "shop"}, "gcp", Thing("CloudSQLUser", "shop/me")),
    (
        "azurerm_postgresql_flexible_server",
        {"name": "prod", "resource_group_name": "shop"},
        "azure",
        Thing("FlexibleServer", "shop/prod"),
    ),
    (
        "azurerm_postgresql_flexible_server_database",
        {"name": "app", "server_id": SERVER},
        "azure",
        Thing("FlexibleServerDatabase", "shop/prod/app"),
    ),
    ("postgresql_database", {"name": "app"}, "onprem", Thing("PostgresDatabase", "app")),
]


def test_servers_come_before_what_is_inside_of_them_and_all_modules_are_read() -> None:
    state = _state(*[(type_, values) for type_, values, _, _ in reversed(ROWS)])

    kinds = [managed.thing.kind for managed in of_terraform(state).managed]

    assert len(kinds) == len(ROWS)
    assert kinds.index("CloudSQLInstance") < kinds.index("CloudSQLDatabase") < kinds.index("CloudSQLUser")


@pytest.mark.parametrize(
    ("type_", "values", "remark"),
    [
        ("aws_db_instance", {"identifier": "shop", "engine": "mysql"}, "no RDSInstance of PostgreSQL"),
        ("google_sql_database", {"name": "app"}, "or its state has no name"),
        ("aws_rds_cluster", {}, "aws_rds_cluster is not taken over"),
    ],
)
def test_what_is_no_such_database_is_said(type_: str, values: dict[str, Any], remark: str) -> None:
    migration = of_terraform(_state((type_, values)))

    assert migration.managed == ()
    assert remark in migration.remarks[0]


def test_data_sources_and_other_resources_are_nobodys() -> None:
    assert of_terraform(_state(("aws_db_instance", {"identifier": "x"}), mode="data")).managed == ()
    assert of_terraform(_state(("aws_vpc", {}))).remarks == ()
    with pytest.raises(ValueError, match="terraform show -json"):
        of_terraform({"resource_changes": []})


def _crossplane(api_version: str, kind: str, external: str, **fields: Any) -> Object:
    meta = {"name": "shop-x7", "annotations": {"crossplane.io/external-name": external} if external else {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {"forProvider": fields}}


@pytest.mark.parametrize(
    ("obj", "thing"),
    [
        (
            _crossplane("rds.aws.upbound.io/v1beta3", "Instance", "shop", engine="postgres"),
            Thing("RDSInstance", "shop"),
        ),
        (_crossplane("rds.aws.m.upbound.io/v1beta1", "Instance", "shop"), Thing("RDSInstance", "shop")),
        (_crossplane("database.aws.crossplane.io/v1beta1", "RDSInstance", "shop"), Thing("RDSInstance", "shop")),
        (
            _crossplane("sql.gcp.upbound.io/v1beta1", "Database", "app", instance="shop"),
            Thing("CloudSQLDatabase", "shop/app"),
        ),
        (
            _crossplane("dbforpostgresql.azure.upbound.io/v1beta1", "FlexibleServer", "prod", resourceGroupName="shop"),
            Thing("FlexibleServer", "shop/prod"),
        ),
        (_crossplane("postgresql.sql.crossplane.io/v1alpha1", "Database", "app"), Thing("PostgresDatabase", "app")),
    ],
)
def test_a_resource_of_crossplane_is_orphaned_before_it_is_deleted(obj: Object, thing: Thing) -> None:
    (managed,) = of_crossplane([obj]).managed
    patch, delete = managed.forget

    assert managed.thing == thing
    assert patch.endswith("""--type=merge -p '{"spec":{"deletionPolicy":"Orphan"}}'""")
    assert delete == f"kubectl delete {obj['kind'].lower()}.{obj['apiVersion'].partition('/')[0]}/shop-x7"


def test_a_resource_of_crossplane_without_a_name_is_left() -> None:
    migration = of_crossplane(
        [_crossplane("rds.aws.upbound.io/v1beta1", "Instance", ""), _crossplane("ec2.aws.upbound.io/v1", "VPC", "v")]
    )

    assert migration.managed == ()
    assert [remark.partition(": ")[2][:14] for remark in migration.remarks] == ["its annotation", "no kind of dat"]
