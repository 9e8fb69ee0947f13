"""Each code and state by which a provider distinguishes answers is its simulated cloud's, or of its SDK's model."""

from __future__ import annotations

import ast
from pathlib import Path

import botocore.session
import pytest
from azure.mgmt.postgresqlflexibleservers.models import ServerState
from botocore.retries.standard import ThrottledRetryableChecker
from google.cloud import sqladmin_v1

import providers.aws.errors as aws
import providers.azure.errors as arm
import providers.gcp.refusals as gcp
from providers.azure.servers import states as of_servers
from providers.gcp.instances import states as of_instances

_ROOT = Path(__file__).resolve().parents[2]
NAMED = {
    "aws": aws.THROTTLING | aws.INVALID | aws.BUSY | aws.QUOTA | aws.DENIED | aws.CREDENTIALS | set(aws._REMEDIES),
    "azure": arm.THROTTLING | arm.BUSY | arm.ABSENT | arm.TAKEN | arm.QUOTA | arm.DENIED | arm.CREDENTIALS
    | arm.PASSWORD | arm.INVALID | set(arm._REMEDIES),
    "gcp": gcp.THROTTLING | gcp.BUSY | gcp.THERE | gcp.ABSENT | gcp.QUOTA | gcp.STALE | gcp.PASSING
    | set(gcp._REMEDIES),
}  # fmt: skip


def _texts(cloud: str) -> set[str]:
    """Return the texts in the code of a simulated cloud."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in (_ROOT / "devcloud" / cloud).rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value.removesuffix("Fault") for node in nodes if isinstance(node.value, str)}


def _of_sdk() -> set[str]:
    """Return the codes in botocore's models of RDS and STS, and those that it takes for a throttle."""
    models = (botocore.session.Session().get_service_model(name) for name in ("rds", "sts"))
    operations = (model.operation_model(name) for model in models for name in model.operation_names)
    shapes = [shape for operation in operations for shape in operation.error_shapes]
    codes = {shape.metadata.get("error", {}).get("code", shape.name).removesuffix("Fault") for shape in shapes}
    return codes | set(ThrottledRetryableChecker._THROTTLED_ERROR_CODES)


def test_every_state_that_a_provider_names_is_one_of_the_api() -> None:
    kinds = (sqladmin_v1.DatabaseInstance.SqlInstanceState, sqladmin_v1.SqlSuspensionReason)
    of_google = {"", *(name for kind in kinds for name in kind.__members__)}
    of_azure = {state.value.lower() for state in ServerState}

    assert {
        *of_instances._READY,
        *of_instances._FAILED,
        *of_instances._SUSPENDED,
        *of_instances._DEADLINES,
    } <= of_google
    assert {*of_servers._PHASES, *of_servers._USABLE, *of_servers._DEADLINES} <= of_azure


@pytest.mark.parametrize("cloud", NAMED)
def test_every_code_that_a_provider_names_is_answered(cloud: str) -> None:
    answered = _texts(cloud) | (_of_sdk() if cloud == "aws" else set())

    assert NAMED[cloud] - answered == set()
