"""AWS, as a life has it: its provider, the simulated RDS, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.aws.platform import ACCOUNT, REGION, SECURITY_GROUP, SUBNETS
from fairlead.simulation.clouds import CloudDescription
from fairlead.simulation.rds import CREDENTIALS, NETWORKS, PARAMETERS, Rds
from fairlead.simulation.rds_transport import connector
from providers.aws import PROVIDER
from runtime.objects import Resource

_INSTANCES, _SUBNET_GROUPS, _PARAMETER_GROUPS = (kind.resource for kind in PROVIDER.kinds)
_BEFORE: Final = {_INSTANCES: "", _SUBNET_GROUPS: NETWORKS, _PARAMETER_GROUPS: PARAMETERS}
_SECRET: Final = "aws-key"


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
    place_of=_place_of,
    server_at=lambda host: host.removeprefix("db-"),
    new=Rds,
    connector=connector,
)
