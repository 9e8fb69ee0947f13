"""Names in a request that mean other resources, found or refused."""

from devcloud.aws.refusals import invalid_combination, invalid_value
from devcloud.aws.region import Region
from devcloud.aws.state import catalog
from devcloud.aws.state.model import ParameterGroup, SubnetGroup
from devcloud.aws.state.network import DEFAULT_VPC, SECURITY_GROUPS
from devcloud.simulator.messages import Refusal


def found_subnet_group(region: Region, name: str) -> SubnetGroup:
    """Return a DB subnet group, by name in any letter case.

    Raises:
        Refusal: `DBSubnetGroupNotFoundFault`.
    """
    group = region.subnet_groups.get(name.lower())
    if group is None:
        raise Refusal("DBSubnetGroupNotFoundFault", f"DB subnet group '{name}' does not exist.")
    return group


def found_parameter_group(region: Region, name: str, family: str | None = None) -> ParameterGroup:
    """Return a DB parameter group, one of the service's own included.

    Raises:
        Refusal: `DBParameterGroupNotFound`, or `InvalidParameterCombination` for another family's.
    """
    group = region.parameter_groups.get(name.lower()) or default_groups(region).get(name.lower())
    if group is None:
        raise Refusal("DBParameterGroupNotFound", f"DBParameterGroup not found: {name}")
    if family is not None and group.db_parameter_group_family != family:
        raise invalid_combination(
            f"The Parameter Group {name} with DBParameterGroupFamily {group.db_parameter_group_family} cannot be used "
            f"for this instance. Please use a Parameter Group with DBParameterGroupFamily {family}"
        )
    return group


def default_groups(region: Region) -> dict[str, ParameterGroup]:
    """Return the service's own parameter groups, by name."""
    groups = {}
    for major in sorted({catalog.major(version) for version in catalog.VERSIONS}):
        family = f"{catalog.ENGINE}{major}"
        name = f"default.{family}"
        groups[name] = ParameterGroup(
            db_parameter_group_name=name,
            db_parameter_group_family=family,
            description=f"Default parameter group for {family}",
            db_parameter_group_arn=region.arn("pg", name),
        )
    return groups


def refuse_option_group(name: str, version: str) -> None:
    """Refuse an option group but the version's own: PostgreSQL has no options.

    Raises:
        Refusal: `OptionGroupNotFoundFault`.
    """
    if name != catalog.option_group(version):
        raise Refusal("OptionGroupNotFoundFault", f"Specified OptionGroupName: {name} not found.")


def refuse_exposure(group: SubnetGroup) -> None:
    """Refuse a public address in a VPC without internet gateway, which every VPC but the default one is here.

    Raises:
        Refusal: `InvalidVPCNetworkStateFault`.
    """
    if group.vpc_id != DEFAULT_VPC:
        raise Refusal(
            "InvalidVPCNetworkStateFault",
            "Cannot create a publicly accessible DBInstance. The specified VPC has no internet gateway attached.",
        )


def found_security_groups(wanted: tuple[str, ...] | None, group: SubnetGroup) -> tuple[str, ...]:
    """Return the security groups asked for, else the VPC's default one.

    Raises:
        Refusal: `InvalidParameterValue` for one that is not there, `InvalidVPCNetworkStateFault` for another VPC's.
    """
    if not wanted:
        return SECURITY_GROUPS[:1] if group.vpc_id == DEFAULT_VPC else (f"sg-default-of-{group.vpc_id}",)
    for group_id in wanted:
        if group_id not in SECURITY_GROUPS:
            raise invalid_value(f"Invalid security group , groupId= {group_id}, groupName=.")
        if group.vpc_id != DEFAULT_VPC:
            raise Refusal(
                "InvalidVPCNetworkStateFault",
                "The specified VPC security groups and DB subnet group must be in the same VPC.",
            )
    return tuple(wanted)
