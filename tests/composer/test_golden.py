"""What the shipped compositions make of claims: golden files, reviewed like code.

`GOLDEN=write pytest tests/composer/test_golden.py` writes them anew.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from composer.hashes import digest
from composer.kinds.catalog import catalog
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from composer.render.schema import defaulted, mismatches
from runtime.objects import Object
from tests.support import yaml_texts

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
IDENTITY = "00000000-0000-4000-8000-000000000000@shop/orders"


CRDS = [yaml_texts.load(path) for path in sorted((ROOT / "crds").glob("*.yaml"))]
CATALOG = catalog(CRDS)
COMPOSITIONS = {path.stem: yaml_texts.load(path) for path in sorted((ROOT / "compositions").glob("*.yaml"))}

# What the platform team says once for each cloud.
_NETWORKS = "/subscriptions/shop-prod/resourceGroups/net/providers/Microsoft.Network"
ENVIRONMENTS = {
    "aws": {
        "subnetIds": "subnet-0a1b2c3d4e5f6000a, subnet-0a1b2c3d4e5f6000b",
        "securityGroupIds": "sg-0a1b2c3d4e5f60001",
        "securityGroupIds-10.0.0.0-8": "sg-0a1b2c3d4e5f60001,sg-0a1b2c3d4e5f60002",
    },
    "gcp": {
        "region": "europe-west1",
        "privateNetwork": "projects/shop-prod/global/networks/databases",
        "privateNetwork-10.0.0.0-8": "projects/shop-prod/global/networks/offices",
    },
    "azure": {
        "resourceGroup": "databases",
        "location": "westeurope",
        "delegatedSubnetId": f"{_NETWORKS}/virtualNetworks/hub/subnets/postgres",
        "delegatedSubnetId-10.0.0.0-8": f"{_NETWORKS}/virtualNetworks/hub/subnets/offices",
        "privateDnsZoneId": f"{_NETWORKS}/privateDnsZones/shop.postgres.database.azure.com",
    },
}
CLAIMS: dict[str, dict[str, Any]] = {
    "small": {"version": "16", "size": "small"},
    "by-cpu": {"version": "17", "cpu": 6, "memoryGiB": 24},
    "everything": {
        "version": "16",
        "size": "large",
        "storageGiB": 100,
        "highAvailability": True,
        "backup": {"retentionDays": 14, "startTime": "02:30"},
        "maintenanceWindow": {"day": "Sunday", "hour": 5},
        "network": {"allowedCIDRs": ["10.0.0.0/8"]},
        "databaseName": "orders",
        "username": "orders_app",
        "extensions": ["pgcrypto", "citext"],
        "parameters": {"work_mem": "64MB"},
        "deletionPolicy": "Snapshot",
        "connectionSecretName": "orders-db",
        "passwordRotation": {"token": "2026-11"},
    },
}


def _request(composition: str, spec: dict[str, Any], observed: tuple[Observed, ...] = ()) -> Request:
    schema = CATALOG["PostgreSQLInstance.database.fairlead.dev"].schema or {}
    claim: Object = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "00000000-0000-4000-8000-000000000000"},
        "spec": defaulted(spec, schema["properties"]["spec"]),
    }
    return Request(
        composition, COMPOSITIONS[composition]["spec"], claim, IDENTITY, environments=ENVIRONMENTS, observed=observed
    )


def _text(rendered: Rendered) -> str:
    yaml, out = YAML(), io.StringIO()
    yaml.dump_all([child.object for child in rendered.children], out)
    return out.getvalue()


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_renders_to_its_golden_file(composition: str, name: str) -> None:
    path = GOLDEN / f"{composition}-{name}.yaml"
    text = _text(render(_request(composition, CLAIMS[name])))
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")


_WEAK = {
    "azure": {"password_encryption": "md5", "ssl_min_protocol_version": "TLSv1", "azure.extensions": "plpython3u"},
    "gcp": {
        "cloudsql.allow_passwordless_local_connections": "on",
        "cloudsql.iam_authentication": "on",
        "cloudsql.pg_authid_select_role": "orders_app",
    },
}


@pytest.mark.parametrize("cloud", _WEAK)
def test_a_setting_that_weakens_a_server_is_one_of_the_claims_own_server_and_changes_nothing_else(cloud: str) -> None:
    def rendered(**parameters: str) -> tuple[dict[str, str], dict[tuple[str, str], Any]]:
        children = render(_request(f"postgres-{cloud}", {**CLAIMS["small"], "parameters": parameters})).children
        specs = {child.slot: child.object["spec"]["forProvider"] for child in children}
        own = {child.name for child in children if child.resource == "server"}
        assert {spec["serverRef"]["name"] for spec in specs.values() if "serverRef" in spec} <= own
        settings = {slot[1]: specs.pop(slot)["value"] for slot in list(specs) if slot[0] == "parameter"}
        return settings | specs.get(("instance", ""), {}).pop("databaseFlags", {}), specs

    (before, plain), (settings, weak) = rendered(), rendered(**_WEAK[cloud])

    assert (settings, weak) == ({**before, **_WEAK[cloud]}, plain)


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("name", CLAIMS)
def test_a_rendered_child_fits_the_schema_of_its_kind(composition: str, name: str) -> None:
    for child in render(_request(composition, CLAIMS[name])).children:
        group = child.object["apiVersion"].partition("/")[0]
        schema = (CATALOG[f"{child.object['kind']}.{group}"].schema or {})["properties"]["spec"]

        assert list(mismatches(child.object["spec"], schema, "spec")) == []


def _reversed(value: Any) -> Any:
    return {name: _reversed(value[name]) for name in reversed(value)} if isinstance(value, dict) else value


def test_a_render_depends_on_its_input_alone_and_not_on_the_order_of_fields() -> None:
    spec = {**CLAIMS["everything"], "parameters": {"work_mem": "64MB", "lock_timeout": "1s", "statement_timeout": "9s"}}

    once = msgspec.json.encode(render(_request("postgres-onprem", spec)))
    again = msgspec.json.encode(render(_request("postgres-onprem", _reversed(spec))))

    assert once == again


def test_the_status_fields_come_with_those_of_the_child() -> None:
    (child,) = render(_request("postgres-onprem", CLAIMS["small"])).children
    live = {
        **child.object,
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True"}],
            "connection": {"host": "db.example", "port": 5432},
        },
    }
    live["metadata"] = {**child.object["metadata"], "generation": 1}

    rendered = render(_request("postgres-onprem", CLAIMS["small"], (Observed("database", "", live),)))

    assert rendered.status == {"endpoint": "db.example", "port": 5432}
    assert rendered.children[0].ready
    assert digest(rendered.children[0].object) == digest(child.object)
