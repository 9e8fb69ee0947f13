"""Flexible servers of Azure Database for PostgreSQL, with their databases, firewall rules and configurations."""

from __future__ import annotations

from datetime import datetime, timedelta

from providers.azure.arm import connect
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES, GROUP, SERVERS
from providers.azure.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.azure.models import (
    DISABLED,
    FlexibleServerConfigurationSpec,
    FlexibleServerDatabaseSpec,
    FlexibleServerFirewallRuleSpec,
    FlexibleServerParameters,
    FlexibleServerSpec,
)
from providers.azure.names import external_name, server_in
from providers.azure.servers import roles, states, translate
from providers.azure.servers.changes import classify, outage
from providers.azure.servers.client import clients
from providers.azure.servers.facts import Facts
from providers.azure.servers.refusal import refusal
from providers.azure.servers.server_list import decoded_answer
from providers.azure.servers.translate import VERSION, invariants, is_restored, login_versions
from providers.external.cloud_api.naming import hash_in, name_of
from providers.external.observation import Observed
from providers.external.ownership import Identity
from providers.external.provider import Intervals, Kind, LoginRules, Naming, Provider, Rate, Revival
from runtime.objects import Resource

CRD_MODELS: tuple[tuple[str, type], ...] = (
    ("FlexibleServer", FlexibleServerSpec),
    ("FlexibleServerDatabase", FlexibleServerDatabaseSpec),
    ("FlexibleServerFirewallRule", FlexibleServerFirewallRuleSpec),
    ("FlexibleServerConfiguration", FlexibleServerConfigurationSpec),
    ("ProviderConfig", ProviderConfigSpec),
)


def _name(spec: FlexibleServerParameters, identity: Identity, prefix: str) -> str:
    return external_name(spec.resource_group_name, name_of(identity, prefix))


def _next_window(seen: Observed[FlexibleServerParameters, Facts], now: datetime) -> datetime | None:
    return states.next_window(seen.facts.window, now)


FLEXIBLE_SERVERS: Kind[FlexibleServerParameters, Facts] = Kind(
    resource=SERVERS,
    spec_type=FlexibleServerSpec,
    projection=VERSION,
    naming=Naming(
        _name, lambda _spec, name: hash_in(name), lambda name: {"resource_group_name": server_in(name).group}
    ),
    invariants=invariants,
    clients=clients,
    classify=classify,
    outage=outage,
    logins=LoginRules(
        names=roles.logins,
        versions=login_versions,
        administrator=lambda target: target.spec.administrator_login,
        set_by_create=lambda target: not (is_restored(target.spec) or roles.alternates(target)),
        shows_passwords=False,
        applies=lambda spec: spec.password_auth != DISABLED,
    ),
    next_window=_next_window,
    asynchronous=True,
    server_of=lambda target: target.name,
    # "Restore a deleted server": its backups are kept for five days.
    revival=Revival(timedelta(days=5), "az postgres flexible-server revive-dropped"),
    # Two logins get their rights in a database once it is there; a configuration may wait for a restart.
    contents=(DATABASES, CONFIGURATIONS),
    read_answer=lambda answer, target: translate.observed(decoded_answer(answer), target),
    refusal=lambda spec, config, _at_provider: refusal(config.limits, spec),
)

PROVIDER: Provider[ProviderConfigSpec] = Provider(
    cloud="azure",
    config_resource=Resource(GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False),
    config_type=ProviderConfigSpec,
    secrets=secrets_of,
    connect=connect,
    kinds=(FLEXIBLE_SERVERS, DATABASES, FIREWALL_RULES, CONFIGURATIONS),
    # A principal has 25 reads, 10 writes and 10 deletes a second in a subscription, beside bursts of ten times as many
    # ("Understand how Azure Resource Manager throttles requests"); these leave room for people and other tools.
    rate=Rate(reads_per_second=15, writes_per_second=5),
    intervals=Intervals(unlisted=timedelta(hours=6)),
    endpoint_of=endpoint_of,
)
