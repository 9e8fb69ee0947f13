"""Instances of Cloud SQL for PostgreSQL, with the databases and users inside them."""

from __future__ import annotations

from datetime import datetime, timedelta

from providers.external.observation import Observed
from providers.external.provider import Intervals, Kind, LoginRules, Naming, Provider, Rate, Reference
from providers.gcp import names
from providers.gcp.account import connect
from providers.gcp.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.gcp.inside import databases, logins, users
from providers.gcp.instances import client, states, translate
from providers.gcp.instances.changes import classify, outage
from providers.gcp.instances.facts import Facts
from providers.gcp.instances.refusal import refusal
from providers.gcp.listed import decoded_answer
from providers.gcp.models import (
    CloudSQLDatabaseParameters,
    CloudSQLDatabaseSpec,
    CloudSQLInstanceParameters,
    CloudSQLInstanceSpec,
    CloudSQLUserParameters,
    CloudSQLUserSpec,
)
from runtime.objects import Resource

CRD_MODELS: tuple[tuple[str, type], ...] = (
    ("CloudSQLInstance", CloudSQLInstanceSpec),
    ("CloudSQLDatabase", CloudSQLDatabaseSpec),
    ("CloudSQLUser", CloudSQLUserSpec),
    ("ProviderConfig", ProviderConfigSpec),
)

_GROUP = "gcp.fairlead.dev"
_INSTANCES = Resource(_GROUP, "v1alpha1", "CloudSQLInstance", "cloudsqlinstances")
_DATABASES = Resource(_GROUP, "v1alpha1", "CloudSQLDatabase", "cloudsqldatabases")
_ON_INSTANCE = Reference("instance_ref", "instance", "instance", _INSTANCES)


def _next_window(seen: Observed[CloudSQLInstanceParameters, Facts], now: datetime) -> datetime | None:
    return states.next_window(*seen.facts.window, now)


INSTANCES: Kind[CloudSQLInstanceParameters, Facts] = Kind(
    resource=_INSTANCES,
    spec_type=CloudSQLInstanceSpec,
    projection=translate.VERSION,
    naming=Naming(
        name=lambda _spec, identity, prefix: names.name_of(identity, prefix),
        hash_in=lambda _spec, name: names.hash_in(name),
    ),
    invariants=translate.invariants,
    clients=client.clients,
    classify=classify,
    outage=outage,
    next_window=_next_window,
    asynchronous=True,
    server_of=lambda target: target.name,
    read_answer=lambda answer, target: translate.observed(decoded_answer(answer), target),
    refusal=lambda spec, config, _at_provider: refusal(spec, config),
)

DATABASES: Kind[CloudSQLDatabaseParameters, None] = Kind(
    resource=_DATABASES,
    spec_type=CloudSQLDatabaseSpec,
    projection=1,
    naming=Naming(
        name=lambda spec, _identity, _prefix: names.child_name(spec.instance, spec.name),
        hash_in=lambda _spec, _name: "",
        fields=names.child_fields,
    ),
    invariants=lambda _target, _observed: (),
    clients=databases.clients,
    references=(_ON_INSTANCE,),
    server_of=lambda target: target.name.partition("/")[0],
    inside=True,
    tagged=False,
)

USERS: Kind[CloudSQLUserParameters, logins.Facts] = Kind(
    resource=Resource(_GROUP, "v1alpha1", "CloudSQLUser", "cloudsqlusers"),
    spec_type=CloudSQLUserSpec,
    projection=1,
    naming=Naming(
        name=lambda spec, _identity, _prefix: names.child_name(spec.instance, spec.name),
        hash_in=lambda _spec, _name: "",
        fields=names.child_fields,
    ),
    invariants=logins.invariants,
    clients=users.clients,
    logins=LoginRules(
        names=logins.logins,
        versions=logins.versions,
        shows_passwords=False,
        applies=logins.has_password,
        missing_database=logins.missing_database,
    ),
    references=(_ON_INSTANCE, Reference("database_ref", "database", "database", _DATABASES)),
    stateful=False,
    server_of=lambda target: target.name.partition("/")[0],
    inside=True,
    tagged=False,
    names_siblings=lambda spec: bool(spec.database_roles),
)

PROVIDER: Provider[ProviderConfigSpec] = Provider(
    cloud="gcp",
    config_resource=Resource(_GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    config_type=ProviderConfigSpec,
    secrets=secrets_of,
    connect=connect,
    kinds=(INSTANCES, DATABASES, USERS),
    # Cloud SQL counts 180 calls a minute for each project: 171, and what a second's burst adds, leave a few to people.
    rate=Rate(reads_per_second=2.25, writes_per_second=0.6),
    intervals=Intervals(resync=timedelta(minutes=10), sweep=timedelta(minutes=1), settle=timedelta(minutes=1)),
    endpoint_of=endpoint_of,
)
