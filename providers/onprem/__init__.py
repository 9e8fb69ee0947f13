"""Databases on a PostgreSQL server that the platform team runs."""

from __future__ import annotations

from datetime import timedelta

from providers.external.client import Clients
from providers.external.metering import metered
from providers.external.provider import Intervals, Kind, LoginRules, Naming, Provider, Rate
from providers.onprem.adoption import former_owner_rights
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import Facts
from providers.onprem.models import PostgresDatabaseParameters, PostgresDatabaseSpec, ProviderConfigSpec
from providers.onprem.names import hash_in, names_of
from providers.onprem.refusal import refusal_of
from providers.onprem.translate import VERSION, invariants, login_versions, target_names
from runtime.objects import Object, Resource

CRD_MODELS: tuple[tuple[str, type], ...] = (
    ("PostgresDatabase", PostgresDatabaseSpec),
    ("ProviderConfig", ProviderConfigSpec),
)


def _secrets(config: ProviderConfigSpec) -> tuple[str, ...]:
    ca = () if config.ca_secret_ref is None else (config.ca_secret_ref.name,)
    return (config.admin_secret_ref.name, *ca)


def _refusal(
    spec: PostgresDatabaseParameters, config: ProviderConfigSpec, at_provider: Object
) -> tuple[str, str] | None:
    runs = str(at_provider.get("serverVersion") or spec.version or "").partition(".")[0]
    return refusal_of(spec, int(runs) if runs.isdigit() else 0, config)


DATABASES: Kind[PostgresDatabaseParameters, Facts] = Kind(
    resource=Resource("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases"),
    spec_type=PostgresDatabaseSpec,
    projection=VERSION,
    naming=Naming(
        name=lambda spec, identity, _prefix: names_of(spec, identity.hash).database,
        hash_in=hash_in,
        fields=lambda name: {"database_name": name},
    ),
    # All that is changed here takes effect for new sessions: nothing restarts, locks out or loses.
    invariants=invariants,
    clients=lambda cloud: metered(
        Clients(cloud, cloud, cloud, cloud, try_login=cloud.try_login, strangers=cloud), cloud.meter
    ),
    logins=LoginRules(names=lambda target: target_names(target).logins, versions=login_versions),
    refusal=_refusal,
    adopted=lambda seen: former_owner_rights(seen.facts),
    is_ownership=lambda change: change.path[0] == "ownership",
)

PROVIDER: Provider[ProviderConfigSpec] = Provider(
    cloud="onprem",
    config_resource=Resource("onprem.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    config_type=ProviderConfigSpec,
    secrets=_secrets,
    connect=connect,
    kinds=(DATABASES,),
    # Our own server, by a handful of sessions: these bound a stampede, not the daily work.
    rate=Rate(reads_per_second=500, writes_per_second=100),
    # Its answers are true at once: there is nothing to settle.
    intervals=Intervals(resync=timedelta(minutes=10), sweep=timedelta(seconds=30), settle=timedelta()),
    probe=OnPremCloud.probe,
)
