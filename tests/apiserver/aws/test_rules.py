"""What the API server itself refuses of AWS's kinds, and whether the sentence names the way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.aws import AWS_CONFIG, DB_PARAMETER_GROUP, DB_SUBNET_GROUP, RDS_INSTANCE
from tests.support.rules import (
    Case,
    assert_configs,
    assert_creations,
    assert_edits,
    edited,
    refusal,
    stored,
)

# A process at work would answer what is stored.
pytestmark = pytest.mark.usefixtures("alone")

INSTANCE: dict[str, Any] = {
    "dbInstanceClass": "db.t4g.medium",
    "allocatedStorage": 100,
    "masterUsername": "orders",
    "engineVersion": "16.4",
    "dbName": "orders",
    "storageEncrypted": True,
}


CREATIONS = (
    Case("a plain one", {}),
    Case("references beside each other", {"dbSubnetGroupNameRef": {"name": "a"}, "dbParameterGroupName": "b"}),
    Case("two subnet groups", {"dbSubnetGroupNameRef": {"name": "a"}, "dbSubnetGroupName": "b"}, "give one of the two"),
    Case("a ceiling below the storage", {"maxAllocatedStorage": 50}, "ceiling of allocatedStorage"),
    Case("throughput of another kind of storage", {"storageThroughput": 500}, "belongs to storageType gp3"),
    Case("throughput", {"storageType": "gp3", "storageThroughput": 500}),
    Case("monitoring without a role", {"monitoringInterval": 60}, "needs the monitoringRoleArn"),
    Case("a reserved login", {"masterUsername": "rdsadmin"}, "reserved by PostgreSQL or by RDS"),
    Case("our own tag", {"tags": {"fairlead-installation": "x"}}, "reserved"),
    Case("a tag", {"tags": {"team": "x"}}),
    Case("a snapshot", {"restoreFrom": {"dbSnapshotIdentifier": "final-orders"}}),
    Case("an instant", {"restoreFrom": {"pointInTime": {"sourceClaim": "orders"}}}),
    Case("no source", {"restoreFrom": {}}, "name exactly one source"),
    Case("an instant of nothing", {"restoreFrom": {"pointInTime": {}}}, "name exactly one source"),
    Case("a strange retention", {"performanceInsightsRetentionPeriod": 8}, "multiple of 31"),
    Case("a word that RDS has not", {"storageSize": 5}, "unknown field"),
)
EDITS = (
    Case("storage may grow", {"allocatedStorage": 200}),
    Case("storage may not shrink", {"allocatedStorage": 99}, "make a new smaller RDSInstance"),
    Case("a version goes up", {"engineVersion": "16.10"}),
    Case("a version goes up to one below that which runs", {"engineVersion": "16.6"}),
    Case("a major version goes up", {"engineVersion": "17"}),
    Case("a minor version becomes any", {"engineVersion": "16"}),
    Case("a version does not go down", {"engineVersion": "16.3"}, "restore a snapshot of before the upgrade"),
    Case(
        "a major version does not go down",
        {"engineVersion": "15"},
        "engineVersion cannot go below the version that runs and the one of before",
    ),
    Case("the login is fixed", {"masterUsername": "other"}, "masterUsername is fixed at creation; make further logins"),
    Case("the database is fixed", {"dbName": "other"}, "dbName is fixed at creation; make another database with SQL"),
    Case("what is fixed is not removed", {"dbName": None}, "dbName is fixed at creation"),
    Case("what is fixed is not added", {"kmsKeyId": "alias/x"}, "kmsKeyId is fixed at creation; copy a snapshot"),
    Case("encryption is fixed", {"storageEncrypted": False}, "copy a snapshot with encryption"),
    Case(
        "what it began with is fixed",
        {"restoreFrom": {"dbSnapshotIdentifier": "x"}},
        "make a new RDSInstance with the other source",
    ),
    Case("a class is changed", {"dbInstanceClass": "db.m7g.large"}),
)


async def test_the_rules_of_instances(api: Api, namespace: str) -> None:
    await assert_creations(api, RDS_INSTANCE, namespace, INSTANCE, CREATIONS)
    created = await stored(api, RDS_INSTANCE, namespace, INSTANCE, engineVersion="16.9", allocatedStorage=100)
    await assert_edits(api, RDS_INSTANCE, created, EDITS)


CREDENTIALS = {"source": "Secret", "secretRef": {"name": "keys"}}
CONFIGS = (
    Case("keys of a Secret", {}),
    Case("a Secret that is not named", {"credentials": {"source": "Secret"}}, "secretRef belongs to source Secret"),
    Case("a Secret beside a token", {"credentials": {**CREDENTIALS, "source": "WebIdentity"}}, "secretRef belongs to"),
    Case("a token", {"credentials": {"source": "WebIdentity", "roleARN": "arn:aws:iam::123456789012:role/x"}}),
    Case(
        "a role for keys",
        {"credentials": {**CREDENTIALS, "roleARN": "arn:aws:iam::123456789012:role/x"}},
        "name the role in assumeRoleChain",
    ),
    Case("a region with a path", {"region": "eu-west-1/../x"}, "spec.region"),
    Case("an endpoint with a user", {"endpoint": "https://a@b"}, "spec.endpoint"),
    Case("a prefix without an end", {"namePrefix": "fl"}, "spec.namePrefix"),
    Case("a prefix with two dashes", {"namePrefix": "fl--"}, "spec.namePrefix"),
    Case("a longer prefix", {"namePrefix": "fl-prod-"}),
    Case("logins that nothing verifies", {"loginCheck": "Required"}, "loginCheck Required wants caBundleRef"),
    Case("two logins that nothing proves", {"logins": "Alternating"}, "logins Alternating wants loginCheck Required"),
    Case(
        "two logins",
        {"logins": "Alternating", "loginCheck": "Required", "caBundleRef": {"name": "ca", "key": "ca.crt"}},
    ),
)


async def test_the_rules_of_the_others(api: Api, namespace: str) -> None:
    await assert_configs(api, AWS_CONFIG, {"region": "eu-west-1", "credentials": CREDENTIALS}, CONFIGS)

    group = await stored(api, DB_PARAMETER_GROUP, namespace, {"dbParameterGroupFamily": "postgres16"})
    other = Case("the family is fixed", {"dbParameterGroupFamily": "postgres17"}, "make another DBParameterGroup")
    await assert_edits(api, DB_PARAMETER_GROUP, group, [other])

    alone = Case("one subnet", {"subnetIds": ["subnet-0a"]}, "spec.forProvider.subnetIds")
    await assert_creations(api, DB_SUBNET_GROUP, namespace, {}, [alone])


async def test_a_config_in_use_keeps_its_region(api: Api) -> None:
    path = AWS_CONFIG.path()
    spec = {"region": "eu-west-1", "accountID": "123456789012", "credentials": CREDENTIALS}
    created = await api.create(path, AWS_CONFIG.new("", "in-use", spec=spec))
    status = created | {"status": {"observedGeneration": 1, "inUse": True}}
    used = await api.request("PUT", f"{path}/in-use/status", status)
    try:
        for edit in ({"region": "eu-west-2"}, {"accountID": "210987654321"}, {"accountID": None}):
            refused = await refusal(api, "PUT", f"{path}/in-use", used | {"spec": edited(used["spec"], edit)})
            assert "make another one" in refused, edit
    finally:
        await api.delete(f"{path}/in-use")


async def test_what_was_not_carried_out_is_withdrawn_and_no_more_than_that(api: Api, namespace: str) -> None:
    path = RDS_INSTANCE.path(namespace, "orders")
    instance = await stored(api, RDS_INSTANCE, namespace, INSTANCE, engineVersion="16.4", allocatedStorage=100)
    for edit, refused in (
        ({"engineVersion": "17"}, ""),
        ({"engineVersion": "16.4"}, ""),
        ({"engineVersion": "17"}, ""),
        ({"engineVersion": "16"}, ""),
        ({"allocatedStorage": 7000}, ""),
        ({"allocatedStorage": 100}, ""),
        ({"allocatedStorage": 99}, "cannot shrink below what RDS has"),
    ):
        changed = instance | {"spec": instance["spec"] | {"forProvider": INSTANCE | edit}}
        answer = await refusal(api, "PUT", path, changed)
        assert bool(answer) is bool(refused), (edit, answer)
        assert refused in answer
        if not answer:
            instance = await api.request("PUT", path, changed)
