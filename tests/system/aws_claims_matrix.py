"""Credentials of AWS that end or lead elsewhere: they are named and change nothing."""

import pytest

from devcloud.aws.platform import ACCESS_KEY, ACCOUNT
from tests.support.api import JsonObject
from tests.support.aws import (
    AWS_CONFIG,
    KEY_SECRET,
    RDS_INSTANCE,
    Aws,
    instance,
)
from tests.support.aws import NAMESPACE as AWS_NAMESPACE
from tests.support.kinds import SECRET, condition, is_ready

pytestmark = pytest.mark.asyncio(loop_scope="session")


_OTHER_ACCOUNT, _OTHER_KEY = "210987654321", "AKIASOMEBODYELSE"


async def test_dead_and_foreign_credentials_are_named_and_change_nothing(fenced_aws: Aws) -> None:
    system = fenced_aws.system
    async with fenced_aws.namespace() as namespace:
        for name in ("edited", "leaving"):
            await system.create(RDS_INSTANCE, instance(namespace, name))
        for name in ("edited", "leaving"):
            await system.until(RDS_INSTANCE, namespace, name, is_ready, limit_s=90)
        key = {"access_key_id": ACCESS_KEY, "secret_access_key": fenced_aws.secret_key, "account": ACCOUNT}
        allowed = {**key, "principal": "user/fairlead", "policy": None}

        since = await fenced_aws.mark()
        await fenced_aws.control("POST", "keys", {**allowed, "expires_at": "2020-01-01T00:00:00Z"})
        await system.edit(RDS_INSTANCE, namespace, "edited", {"spec": {"forProvider": {"backupRetentionPeriod": 9}}})
        await system.api.delete(RDS_INSTANCE.path(namespace, "leaving"))
        await system.create(RDS_INSTANCE, instance(namespace, "coming"))
        for name in ("edited", "leaving", "coming"):
            await _until_reason(fenced_aws, namespace, name, "CredentialsInvalid")
        assert await fenced_aws.changes(since) == []

        await fenced_aws.control("POST", "keys", {**allowed, "account": _OTHER_ACCOUNT, "access_key_id": _OTHER_KEY})
        await _use_key(fenced_aws, _OTHER_KEY)
        for name in ("edited", "leaving", "coming"):
            await _until_reason(fenced_aws, namespace, name, "AccountChanged")
        await system.until(AWS_CONFIG, "", "default", lambda obj: condition(obj, "Ready")["reason"] == "AccountChanged")
        assert await fenced_aws.changes(since) == []

        await fenced_aws.control("POST", "keys", {**allowed, "expires_at": None})
        await _use_key(fenced_aws, ACCESS_KEY)
        await system.until(AWS_CONFIG, "", "default", is_ready, limit_s=90)
        for name in ("edited", "coming"):
            await system.ask_for_a_pass(RDS_INSTANCE, namespace, name)
            await system.until(RDS_INSTANCE, namespace, name, is_ready, limit_s=120)
        await system.api.until_gone(RDS_INSTANCE.path(namespace, "leaving"), limit_s=180)
        done = sorted(call["action"] for call in await fenced_aws.changes(since) if call["outcome"] == "ok")
        assert done == ["CreateDBInstance", "DeleteDBInstance", "ModifyDBInstance"]
        assert {call["account"] for call in await fenced_aws.changes(since)} == {ACCOUNT}


async def _use_key(aws: Aws, access_key_id: str) -> None:
    key = {"aws_access_key_id": access_key_id, "aws_secret_access_key": aws.secret_key}
    await aws.system.edit(SECRET, AWS_NAMESPACE, KEY_SECRET, {"stringData": key})


async def _until_reason(aws: Aws, namespace: str, name: str, reason: str) -> None:
    await aws.system.ask_for_a_pass(RDS_INSTANCE, namespace, name)

    def refused(obj: JsonObject) -> bool:
        return bool(condition(obj, "Synced").get("reason") == reason)

    await aws.system.until(RDS_INSTANCE, namespace, name, refused, limit_s=90)
