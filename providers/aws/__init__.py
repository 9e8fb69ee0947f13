"""Instances of Amazon RDS for PostgreSQL, with the subnet groups and parameter groups that they use."""

from __future__ import annotations

from datetime import datetime, timedelta

from providers.aws.account import connect
from providers.aws.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.aws.groups import kinds
from providers.aws.instances import create, listing, states, translate
from providers.aws.instances.changes import classify, outage
from providers.aws.instances.client import clients
from providers.aws.instances.facts import Facts
from providers.aws.instances.refusal import refusal
from providers.aws.instances.translate import VERSION, invariants, login_versions
from providers.aws.models import DBParameterGroupSpec, DBSubnetGroupSpec, RDSInstanceParameters, RDSInstanceSpec
from providers.aws.tag_lists import decoded_tags
from providers.external.client import Target
from providers.external.cloud_api.naming import NAMING
from providers.external.observation import Observed
from providers.external.provider import Intervals, Kind, LoginRules, Provider, Rate, Reference
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


def _next_window(seen: Observed[RDSInstanceParameters, Facts], now: datetime) -> datetime | None:
    return states.next_window(seen.facts.window, now)


def _read_answer(answer: bytes, target: Target[RDSInstanceParameters]) -> Observed[RDSInstanceParameters, Facts]:
    instance = listing.decoded_answer(answer)
    return translate.observed(instance, decoded_tags(instance.get("TagList") or []), target)


INSTANCES: Kind[RDSInstanceParameters, Facts] = Kind(
    resource=Resource(_GROUP, "v1alpha1", "RDSInstance", "rdsinstances"),
    spec_type=RDSInstanceSpec,
    projection=VERSION,
    naming=NAMING,
    invariants=invariants,
    clients=clients,
    classify=classify,
    logins=LoginRules(
        names=translate.logins,
        versions=login_versions,
        administrator=lambda target: target.spec.master_username,
        set_by_create=lambda target: not create.restored(target.spec) and not translate.alternates(target),
        shows_passwords=False,
        missing_database=create.missing_database,
    ),
    outage=outage,
    next_window=_next_window,
    references=(
        Reference("db_subnet_group_name_ref", "db_subnet_group_name", "dbSubnetGroupName", _SUBNET_GROUPS),
        Reference("db_parameter_group_name_ref", "db_parameter_group_name", "dbParameterGroupName", _PARAMETER_GROUPS),
    ),
    asynchronous=True,
    verified_by_config=True,
    read_answer=_read_answer,
    refusal=lambda spec, config, _at_provider: refusal(spec, config),
)

PROVIDER: Provider[ProviderConfigSpec] = Provider(
    cloud="aws",
    config_resource=Resource(_GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    config_type=ProviderConfigSpec,
    secrets=secrets_of,
    connect=connect,
    kinds=(INSTANCES, kinds.SUBNET_GROUPS, kinds.PARAMETER_GROUPS),
    # RDS throttles an account by region; these leave room for people and other tools.
    rate=Rate(reads_per_second=10, writes_per_second=2),
    quota_of=lambda config: config.region,
    # A list shows as much of an instance as a look at it: nothing at rest is read by itself, however short the resync.
    intervals=Intervals(resync=timedelta(minutes=10), sweep=timedelta(minutes=1), settle=timedelta(minutes=1)),
    endpoint_of=endpoint_of,
)
