"""An RDSInstance over the wire: made, changed, let go, taken away, all by the provider's own process."""

from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.aws import NAMESPACE, RDS_INSTANCE, Aws, instance
from tests.support.kinds import SECRET, condition, is_ready
from tests.support.system import System, decoded

pytestmark = pytest.mark.asyncio(loop_scope="module")


def synced(obj: JsonObject) -> bool:
    found = condition(obj, "Synced")
    return found.get("status") == "True" and is_ready(obj)


async def name_of(aws: Aws, namespace: str, name: str) -> str:
    obj = await aws.system.api.get(RDS_INSTANCE.path(namespace, name))
    return str(obj["metadata"]["annotations"]["fairlead.dev/external-name"])


async def test_an_instance_is_made_by_one_call_and_published(aws_at_work: Aws, namespace: str) -> None:
    aws, system = aws_at_work, aws_at_work.system
    since = await aws.mark()
    await system.create(RDS_INSTANCE, instance(namespace, "orders"))
    made = await system.until(RDS_INSTANCE, namespace, "orders", synced, limit_s=90)
    print(made)
    assert [one["action"] for one in await aws.changes(since)] == ["CreateDBInstance"]
