"""The networks of every account and region: VPCs, subnets, security groups, and the key that encrypts by default."""

from devcloud.aws.state.model import Subnet, Zone

DEFAULT_VPC = "vpc-0a1b2c3d4e5f60001"
OTHER_VPC = "vpc-0a1b2c3d4e5f60002"
SUBNETS = {
    "subnet-0a1b2c3d4e5f6000a": (DEFAULT_VPC, "a"),
    "subnet-0a1b2c3d4e5f6000b": (DEFAULT_VPC, "b"),
    "subnet-0a1b2c3d4e5f6000c": (DEFAULT_VPC, "c"),
    "subnet-0a1b2c3d4e5f6000d": (DEFAULT_VPC, "a"),
    "subnet-0a1b2c3d4e5f6001a": (OTHER_VPC, "a"),
    "subnet-0a1b2c3d4e5f6001b": (OTHER_VPC, "b"),
}
"""The subnets of every region: which VPC, which letter of the Availability Zone."""
SECURITY_GROUPS = ("sg-0a1b2c3d4e5f60001", "sg-0a1b2c3d4e5f60002", "sg-0a1b2c3d4e5f60003")
DEFAULT_KEY_ID = "0a1b2c3d-0000-4000-8000-00000000aaaa"
OWN_KEYS = frozenset({"alias/aws/rds", DEFAULT_KEY_ID})
"""Names of the account's key for RDS, for which nobody needs a right."""


def subnet(region: str, name: str) -> Subnet:
    """Return a subnet as a subnet group shows it."""
    return Subnet(subnet_identifier=name, subnet_availability_zone=Zone(name=f"{region}{SUBNETS[name][1]}"))


def key_arn(account: str, region: str, name: str) -> str:
    """Return the ARN of a key that is named by id, alias or ARN."""
    return name if name.startswith("arn:") else f"arn:aws:kms:{region}:{account}:key/{name.removeprefix('alias/')}"
