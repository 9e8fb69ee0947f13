"""AWS, as a life has it: its provider, the simulated RDS, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.aws.platform import ACCOUNT, REGION, SECURITY_GROUP, SUBNETS
from providers.aws import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.clouds import CloudDescription
from tests.simulation.rds import CREDENTIALS, NETWORKS, PARAMETERS, Rds
from tests.simulation.rds_strangers import STRANGERS
from tests.simulation.rds_transport import connector

_INSTANCES, _SUBNET_GROUPS, _PARAMETER_GROUPS = (kind.resource for kind in PROVIDER.kinds)
_BEFORE: Final = {_INSTANCES: "", _SUBNET_GROUPS: NETWORKS, _PARAMETER_GROUPS: PARAMETERS}
_SECRET: Final = "aws-key"
_SHARED: Final[Object] = {
    "dbInstanceClass": "db.t4g.medium",
    "engineVersion": "16",
    "allocatedStorage": 20,
    "masterUsername": "shared_app",
    "dbName": "shared",
    "backupRetentionPeriod": 7,
}


def _inside(resource: Resource, name: str) -> Object:
    """Return a group of its own: nothing is inside of an instance."""
    if resource == _SUBNET_GROUPS:
        return {"subnetIds": list(SUBNETS[:2] if name == "app" else SUBNETS)}
    return {"dbParameterGroupFamily": "postgres16", "parameters": {"work_mem": "8192" if name == "app" else "16384"}}


def _place_of(resource: Resource, external: str) -> str:
    return f"{_BEFORE[resource]}{external}" if external else ""


CLOUD: Final = CloudDescription(
    name="aws",
    provider=PROVIDER,
    roles={_INSTANCES: "servers", _SUBNET_GROUPS: "networks", _PARAMETER_GROUPS: "parameters"},
    login=_INSTANCES,
    config={
        "region": REGION,
        "accountID": ACCOUNT,
        "credentials": {"source": "Secret", "secretRef": {"name": _SECRET}},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
        "loginCheck": "Off",
    },
    secrets={_SECRET: CREDENTIALS},
    place={"subnetIds": ",".join(SUBNETS), "securityGroupIds": SECURITY_GROUP},
    policies=(
        ("Delete", "Delete", "Snapshot", "Orphan"),
        ("Delete", "Orphan", "Snapshot"),
        ("Delete", "Orphan"),
    ),
    shared=_SHARED,
    inside=_inside,
    storage=(20, 25, 30),
    database_fields=lambda _has_one: {},
    place_of=_place_of,
    server_at=lambda host: host.removeprefix("db-"),
    new=Rds,
    connector=connector,
    strangers=STRANGERS,
)
