"""DB subnet groups: in which subnets of a network instances may be placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.aws.account import connect
from providers.aws.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.aws.dataless import CONFIGS, GROUP, POLICIES, Dataless, guarded
from providers.aws.errors import AlreadyThere, NotThere
from providers.aws.groups import DBSubnetGroupParameters, DBSubnetGroupSpec
from providers.aws.names import hash_in, name_of, owner_from, peoples_tags, tags_of
from providers.cloud import Credential, Fence, Provider, Sweep, Target
from providers.managed import Absent, Change, Observed, Phase, Present, digest
from providers.plan import Policy
from providers.reading import Operation
from runtime.objects import Object, Resource

VERSION = 1
"""Raised whenever the same answer of RDS would be read differently."""

Parameters = DBSubnetGroupParameters


class SubnetGroups(Dataless[Parameters]):
    """providers.cloud.Cloud for the subnet groups of one account and region."""

    noun = "subnet group"

    async def observe(self, target: Target[Parameters]) -> Present[Parameters] | Absent:
        """Read one group and its tags, which no list of groups carries."""
        try:
            answer = await self._account.call(
                "describe_db_subnet_groups", f"look at subnet group {target.name}", DBSubnetGroupName=target.name
            )
            found = self._one(answer, "DBSubnetGroups", target.name)
            tags = await self._tags_of(found["DBSubnetGroupArn"], target.name)
        except NotThere:
            return Absent()
        return Present(observed(found, tags))

    async def observe_all(self) -> Sweep:
        """List all groups of the region."""
        found = await self._account.pages("describe_db_subnet_groups", "list the subnet groups", "DBSubnetGroups")
        return Sweep({each["DBSubnetGroupName"]: digest(each) for each in found}, complete=True)

    async def create(self, target: Target[Parameters], credential: Credential, fence: Fence) -> Operation | None:
        """Make the group with its tags."""
        del credential
        spec = target.spec
        try:
            await self._account.call(
                "create_db_subnet_group",
                f"make subnet group {target.name}",
                fence=fence,
                DBSubnetGroupName=target.name,
                DBSubnetGroupDescription=spec.db_subnet_group_description,
                SubnetIds=sorted(set(spec.subnet_ids)),
                Tags=tags_of(target.owner, spec.tags),
            )
        except AlreadyThere as error:
            self._ours_or_raise(target, await self.observe(target), error)
        return None

    async def update(
        self, target: Target[Parameters], observed: Observed[Parameters], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Set description, subnets and tags; ModifyDBSubnetGroup takes the subnets as a whole, always."""
        await self._retag(observed, changes, fence)
        paths = {change.path for change in changes}
        if paths & {"dbSubnetGroupDescription", "subnetIds"}:
            wanted = target.spec if "subnetIds" in paths else observed.spec
            await self._account.call(
                "modify_db_subnet_group",
                f"change subnet group {observed.name}",
                fence=fence,
                DBSubnetGroupName=observed.name,
                DBSubnetGroupDescription=target.spec.db_subnet_group_description,
                SubnetIds=sorted(set(wanted.subnet_ids)),
            )
        return None

    async def delete(
        self,
        target: Target[Parameters],
        observed: Observed[Parameters] | None,
        policy: Policy,
        fence: Fence,
    ) -> Operation | None:
        """Delete the group; one that an instance still uses stays until it does not."""
        del target, policy
        if observed is None:
            return None
        try:
            await self._account.call(
                "delete_db_subnet_group",
                f"delete subnet group {observed.name}",
                fence=fence,
                DBSubnetGroupName=observed.name,
            )
        except NotThere:
            return None
        return None


def observed(found: Mapping[str, Any], tags: dict[str, str]) -> Observed[Parameters]:
    """Project an answer of DescribeDBSubnetGroups into the model of the spec."""
    subnets = sorted(found.get("Subnets") or (), key=lambda each: str(each["SubnetIdentifier"]))
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
    return Observed(
        name=found["DBSubnetGroupName"],
        incarnation=found["DBSubnetGroupArn"],
        owner=owner_from(tags),
        phase=Phase.READY,
        spec=Parameters(
            db_subnet_group_description=found.get("DBSubnetGroupDescription", ""),
            subnet_ids=tuple(each["SubnetIdentifier"] for each in subnets),
            tags=peoples_tags(tags),
        ),
        facts=tags,
        at_provider=at_provider,
    )


KIND: Provider[Parameters, ProviderConfigSpec] = Provider(
    cloud="aws",
    resource=Resource(GROUP, "v1alpha1", "DBSubnetGroup", "dbsubnetgroups"),
    config_resource=CONFIGS,
    spec_type=DBSubnetGroupSpec,
    config_type=ProviderConfigSpec,
    translator=VERSION,
    policies=POLICIES,
    external_name=lambda _spec, identity, prefix: name_of(identity, prefix),
    hash_of=lambda _spec, name: hash_in(name),
    logins=lambda _target: ("", ""),
    guarded=guarded,
    classify=lambda change, _observed: change,
    login_versions=lambda _observed: {},
    secrets=secrets_of,
    connect=connect,
    endpoint_of=endpoint_of,
    view=SubnetGroups,
    stateful=False,
)
