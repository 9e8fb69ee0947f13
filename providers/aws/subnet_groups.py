"""DB subnet groups: in which subnets of a network instances may be placed. Impure: it calls the SDK."""

from __future__ import annotations

from providers.aws.dataless import Answer, Dataless, kind_of
from providers.aws.groups import DBSubnetGroupParameters, DBSubnetGroupSpec
from providers.aws.names import peoples_tags
from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential
from providers.external.observation import Change, Observed
from runtime.objects import Object

VERSION = 1
"""Raised whenever the same answer of RDS would be read differently."""

Parameters = DBSubnetGroupParameters


class SubnetGroups(Dataless[Parameters]):
    """providers.external.client.Cloud for the subnet groups of one account and region."""

    noun = "subnet group"
    word = "DBSubnetGroup"
    call = "db_subnet_group"

    async def _projected(self, found: Answer, tags: dict[str, str], target: Target[Parameters]) -> Observed[Parameters]:
        del target
        subnets = sorted(found.get("Subnets") or (), key=lambda each: str(each["SubnetIdentifier"]))
        spec = Parameters(
            db_subnet_group_description=found.get("DBSubnetGroupDescription", ""),
            subnet_ids=tuple(each["SubnetIdentifier"] for each in subnets),
            tags=peoples_tags(tags),
        )
        at_provider: Object = {
            "dbSubnetGroupArn": found["DBSubnetGroupArn"],
            "vpcId": found.get("VpcId", ""),
            "subnetGroupStatus": found.get("SubnetGroupStatus", ""),
            "subnets": [
                {
                    "subnetIdentifier": each["SubnetIdentifier"],
                    "availabilityZone": (each.get("SubnetAvailabilityZone") or {}).get("Name", ""),
                    "subnetStatus": each.get("SubnetStatus", ""),
                }
                for each in subnets
            ],
        }
        return self._observed(found, tags, spec, at_provider)

    async def create(self, target: Target[Parameters], credential: Credential, fence: Fence) -> Operation | None:
        """Make the group with its tags."""
        del credential
        spec = target.spec
        subnets = sorted(set(spec.subnet_ids))
        description = spec.db_subnet_group_description
        await self._create(target, fence, spec.tags, DBSubnetGroupDescription=description, SubnetIds=subnets)
        return None

    async def update(
        self, target: Target[Parameters], observed: Observed[Parameters], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Set description, subnets and tags; ModifyDBSubnetGroup takes the subnets as a whole, always."""
        await self._retag(observed, changes, fence)
        fields = {change.path[0] for change in changes}
        if fields & {"dbSubnetGroupDescription", "subnetIds"}:
            wanted = target.spec if "subnetIds" in fields else observed.spec
            description, subnets = target.spec.db_subnet_group_description, sorted(set(wanted.subnet_ids))
            await self._change("modify", observed.name, fence, DBSubnetGroupDescription=description, SubnetIds=subnets)
        return None


KIND = kind_of(("DBSubnetGroup", "dbsubnetgroups"), DBSubnetGroupSpec, SubnetGroups, translator=VERSION)
