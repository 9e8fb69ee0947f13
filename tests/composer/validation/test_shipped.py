"""The shipped Compositions for claims at the limits of their kind: what they make, the API server takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from composer.validation.validate import CheckRequest, remarks
from fairlead.rendering import shipped_kinds
from fairlead.yaml_files import objects_in

_COMPOSITIONS = Path(__file__).resolve().parents[3] / "compositions"
_RESOURCES = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network"
_SUBNET = f"{_RESOURCES}/virtualNetworks/n/subnets/s"
_ZONE = f"{_RESOURCES}/privateDnsZones/z.postgres.database.azure.com"
_NETWORKS = "-10.20.0.0-16"
_ENVIRONMENTS = {
    "aws": {
        "subnetIds": "subnet-0a1b2c3d,subnet-1a2b3c4d",
        **dict.fromkeys(("securityGroupIds", f"securityGroupIds{_NETWORKS}"), "sg-0a1b2c3d"),
    },
    "azure": {
        "location": "westeurope",
        "resourceGroup": "databases",
        **dict.fromkeys(("delegatedSubnetId", f"delegatedSubnetId{_NETWORKS}"), _SUBNET),
        "privateDnsZoneId": _ZONE,
    },
    "gcp": {
        "region": "europe-west1",
        **dict.fromkeys(("privateNetwork", f"privateNetwork{_NETWORKS}"), "projects/p/global/networks/n"),
    },
}


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "onprem"])
def test_a_claim_at_the_limits_makes_what_its_kinds_allow(cloud: str) -> None:
    (composition,) = objects_in(_COMPOSITIONS, f"postgres-{cloud}.yaml")
    request = CheckRequest(composition["spec"], dict(shipped_kinds("*.yaml")), _ENVIRONMENTS)

    problems = remarks(request)

    assert problems == ()
