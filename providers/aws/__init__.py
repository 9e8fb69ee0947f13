"""Instances of Amazon RDS for PostgreSQL, with the subnet groups and parameter groups that they use."""

from __future__ import annotations

from datetime import datetime

from apis.teardown import Policy
from providers.aws import birth, groups, states, translate
from providers.aws.account import connect
from providers.aws.changes import classify
from providers.aws.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.aws.models import DBParameterGroupSpec, DBSubnetGroupSpec, RDSInstanceParameters, RDSInstanceSpec
from providers.aws.names import hash_in, name_of
from providers.aws.rds import RdsInstances
from providers.aws.translate import VERSION, guarded, login_versions
from providers.external.observation import Observed
from providers.external.provider import Provider, Rate, Reference
from runtime.objects import Resource

CRD_MODELS: tuple[tuple[str, type], ...] = (
    ("RDSInstance", RDSInstanceSpec),
    ("DBSubnetGroup", DBSubnetGroupSpec),
    ("DBParameterGroup", DBParameterGroupSpec),
    ("ProviderConfig", ProviderConfigSpec),
)

_GROUP = "aws.fairlead.dev"
_SUBNET_GROUPS = Resource(_GROUP, "v1alpha1", "DBSubnetGroup", "dbsubnetgroups")
_PARAMETER_GROUPS = Resource(_GROUP, "v1alpha1", "DBParameterGroup", "dbparametergroups")


def _window_open(seen: Observed[RDSInstanceParameters], now: datetime) -> bool:
    return states.window_open(seen.facts.window, now)


PROVIDER: Provider[RDSInstanceParameters, ProviderConfigSpec] = Provider(
    cloud="aws",
    resource=Resource(_GROUP, "v1alpha1", "RDSInstance", "rdsinstances"),
    config_resource=Resource(_GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    spec_type=RDSInstanceSpec,
    config_type=ProviderConfigSpec,
    translator=VERSION,
    policies=frozenset({Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE}),
    external_name=lambda _spec, identity, prefix: name_of(identity, prefix),
    hash_of=lambda _spec, name: hash_in(name),
    logins=translate.logins,
    guarded=guarded,
    classify=classify,
    login_versions=login_versions,
    secrets=secrets_of,
    connect=connect,
    # RDS throttles an account by region; these leave room for people and other tools.
    rate=Rate(reads_per_second=10, writes_per_second=2),
    window_open=_window_open,
    endpoint_of=endpoint_of,
    view=RdsInstances,
    beside=(groups.SUBNET_GROUPS, groups.PARAMETER_GROUPS),
    slow=True,
    shows_passwords=False,
    born_with_login=lambda target: not birth.restored(target.spec) and not translate.alternates(target),
    administrator=lambda target: target.spec.master_username,
    references=(
        Reference("db_subnet_group_name_ref", "db_subnet_group_name", "dbSubnetGroupName", _SUBNET_GROUPS),
        Reference("db_parameter_group_name_ref", "db_parameter_group_name", "dbParameterGroupName", _PARAMETER_GROUPS),
    ),
)
