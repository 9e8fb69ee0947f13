"""Databases on a PostgreSQL server that the platform team runs."""

from __future__ import annotations

from apis.teardown import Policy
from providers.external.provider import Provider, Rate
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.models import PostgresDatabaseParameters, PostgresDatabaseSpec, ProviderConfigSpec
from providers.onprem.names import hash_in, names_of
from providers.onprem.translate import VERSION, guarded, login_versions, target_names
from runtime.objects import Resource

CRD_MODELS: tuple[tuple[str, type], ...] = (
    ("PostgresDatabase", PostgresDatabaseSpec),
    ("ProviderConfig", ProviderConfigSpec),
)


def _secrets(config: ProviderConfigSpec) -> tuple[str, ...]:
    ca = () if config.ca_secret_ref is None else (config.ca_secret_ref.name,)
    return (config.admin_secret_ref.name, *ca)


PROVIDER: Provider[PostgresDatabaseParameters, ProviderConfigSpec] = Provider(
    cloud="onprem",
    resource=Resource("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases"),
    config_resource=Resource("onprem.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    spec_type=PostgresDatabaseSpec,
    config_type=ProviderConfigSpec,
    translator=VERSION,
    policies=frozenset({Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE}),
    external_name=lambda spec, identity, _prefix: names_of(spec, identity.hash).database,
    hash_of=hash_in,
    logins=lambda target: target_names(target).logins,
    guarded=guarded,
    # All that is changed here takes effect for new sessions: nothing restarts, locks out or loses.
    classify=lambda change, _observed: change,
    login_versions=login_versions,
    secrets=_secrets,
    connect=connect,
    probe=OnPremCloud.probe,
    # Our own server, by a handful of sessions: these bound a stampede, not the daily work.
    rate=Rate(reads_per_second=500, writes_per_second=100),
)
