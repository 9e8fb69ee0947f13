"""The kinds of children: what makes each, and how its answer reads. Impure: it calls the SDK.

"Databases", "Firewall Rules" and "Configurations" of the REST reference 2025-08-01.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

import msgspec

from apis.teardown import Policy
from providers.azure.arm import AzureAccount
from providers.azure.children import ranges
from providers.azure.children.child import Answer, ServerChild, of_server
from providers.azure.children.values import as_azure_writes, same_value
from providers.azure.config import ProviderConfigSpec
from providers.azure.listed import ServerState
from providers.azure.models import (
    FlexibleServerConfigurationParameters,
    FlexibleServerConfigurationSpec,
    FlexibleServerDatabaseParameters,
    FlexibleServerDatabaseSpec,
    FlexibleServerFirewallRuleParameters,
    FlexibleServerFirewallRuleSpec,
)
from providers.azure.names import NO_SERVER, ServerName, child_in, server_in
from providers.azure.operations import ArmOperations, operation_of
from providers.azure.restarts import waits_for_restart
from providers.external.client import Clients, Fence, Operation, Target
from providers.external.cloud_api.naming import hash_in, name_of
from providers.external.cloud_api.refusals import NotThere
from providers.external.credential import Credential
from providers.external.observation import Observed, SpecT, is_known_as
from providers.external.ownership import Identity
from providers.external.provider import Kind, Naming, Reference
from providers.external.spec import Envelope
from runtime.errors import Terminal
from runtime.objects import Resource

GROUP: Final = "azure.fairlead.dev"
VERSION: Final = 2
"""Raised whenever the same answer of ARM would be read differently."""

Databases = FlexibleServerDatabaseParameters
Rules = FlexibleServerFirewallRuleParameters
Settings = FlexibleServerConfigurationParameters
_BY_NOBODY = "system-default"


def _properties(answer: Answer) -> Answer:
    properties = answer.get("properties")
    return properties if isinstance(properties, dict) else {}


class ServerDatabases(ServerChild[Databases]):
    """Databases of servers; charset and collation are those of their creation."""

    noun = "database"
    word = "databases"

    async def _body(self, target: Target[Databases]) -> dict[str, Any]:
        spec = target.spec
        fields = {"charset": spec.charset, "collation": spec.collation}
        return {name: value for name, value in fields.items() if value is not None}

    async def _observed(
        self, answer: Answer, server: ServerState, target: Target[Databases]
    ) -> Observed[Databases, None]:
        properties = _properties(answer)
        shown = {name: str(properties.get(name) or "") for name in ("charset", "collation")}
        name = child_in(target.name)
        waits = self._waits(target, server_in(target.name), name)
        have = msgspec.structs.replace(target.spec, **{name: value or None for name, value in shown.items()})
        ids, known = self._account.database_ids, of_server(server, name)
        await ids.list_made(_server_of(target).lower(), name)
        incarnation, earlier_ids = ids.incarnation(_server_of(target).lower(), name, known, target.incarnation)
        seen = self._seen(target, server, have, shown, incarnation=incarnation, waits=waits)
        return replace(seen, earlier_ids=earlier_ids)

    async def create(self, target: Target[Databases], credential: Credential, fence: Fence) -> Operation | None:
        """Create the database, as any child; what a login listed of one before is not of this."""
        self._account.database_ids.record_made(_server_of(target).lower(), child_in(target.name))
        return await super().create(target, credential, fence)

    def _is_elsewhere(self, server: ServerState, target: Target[Databases]) -> bool:
        known = of_server(server, child_in(target.name))
        return bool(target.incarnation) and not is_known_as(known, target.incarnation)

    def _waits(self, target: Target[Databases], server: ServerName, name: str) -> str:
        """Return for what the database waits before it may be used; empty where for nothing.

        One that was never Ready waits for a look at the logins of a server that the same provider keeps: a process
        that was killed may have made it and given no rights.
        """
        awaited = self._account.awaited
        if awaited.awaits(server, name):
            return "the logins of its server have no rights in it yet"
        is_new = target.alternates and target.spec.server_ref is not None and not target.incarnation
        return "the logins of its server were not looked at yet" if is_new and not awaited.knows(server) else ""


def _rule_refusal(spec: Rules, config: ProviderConfigSpec) -> tuple[str, str] | None:
    if ranges.is_all_of_azure(spec):
        return "InvalidValue", "0.0.0.0 alone lets in every service of Azure, other customers' too: name addresses"
    if config.limits.public_access:
        return None
    return "LimitReached", "an address on the internet is not allowed here; ask the platform team"


class FirewallRules(ServerChild[Rules]):
    """Ranges of addresses that may connect to a server on the internet."""

    noun = "firewall rule"
    word = "firewallRules"

    async def _body(self, target: Target[Rules]) -> dict[str, Any]:
        start, end = ranges.of_spec(target.spec)
        return {"startIpAddress": start, "endIpAddress": end}

    async def _observed(self, answer: Answer, server: ServerState, target: Target[Rules]) -> Observed[Rules, None]:
        properties, spec = _properties(answer), target.spec
        start, end = (str(properties.get(name) or "") for name in ("startIpAddress", "endIpAddress"))
        have = msgspec.structs.replace(spec, **ranges.as_spec(spec, start, end))
        shown = {"startIpAddress": start, "endIpAddress": end}
        return self._seen(target, server, have, shown, incarnation=target.name)

    def refusal(self, spec: Rules) -> tuple[str, str] | None:
        """Return why a rule is not allowed: it opens a server to the internet, or to all of Azure's customers."""
        return _rule_refusal(spec, self._account.config)


class Configurations(ServerChild[Settings]):
    """Parameters of servers: there is always a value, and it counts as not there while nobody set it."""

    noun = "configuration"
    word = "configurations"
    # A value is always there: the precondition would refuse every PUT.
    precondition: ClassVar[Mapping[str, str]] = {}

    async def _body(self, target: Target[Settings]) -> dict[str, Any]:
        """Return the value in the parameter's own unit, which ARM alone knows.

        Raises:
            Terminal: `InvalidValue`: its server, which was just seen, has no such parameter.
        """
        action = f"look at configuration {target.name}"
        try:
            answer = await self._account.send("GET", self._path(target.name), action)
        except NotThere:
            raise Terminal("InvalidValue", _unknown_message(target.spec)) from None
        return {"value": _written(_properties(answer.body), target.spec.value), "source": "user-override"}

    async def _observed(
        self, answer: Answer, server: ServerState, target: Target[Settings]
    ) -> Observed[Settings, None] | None:
        properties, spec = _properties(answer), target.spec
        waits = waits_for_restart(answer)
        value = str(properties.get("value") or "")
        same = same_value(_written(properties, spec.value), value)
        is_set = str(properties.get("source") or "").lower() != _BY_NOBODY
        is_first = False
        if not target.only_observed and (target.leaving or is_set or same):
            restarts, whose = self._account.restarts, server_in(target.name)
            is_first = restarts.record_set(whose, child_in(target.name), waits=waits)
        # On the way out what nobody set is gone, whatever its value is.
        if not is_set and not target.only_observed and (target.leaving or not same):
            return None
        have = msgspec.structs.replace(spec, value=spec.value if same else value)
        when = "its FlexibleServer says when" if spec.server_ref is not None else "restart it when it suits"
        text = f"configuration {spec.name} waits for a restart of its server; {when}"
        return self._seen(
            target,
            server,
            have,
            {"value": value, "source": properties.get("source"), "defaultValue": properties.get("defaultValue")},
            incarnation=target.name,
            # Azure counts a value that is the default one as set by nobody: then nobody else's is taken.
            owner=None if is_set else target.owner,
            restart=text if waits else "",
            waits="its server, which nobody uses yet, is restarted first" if is_first else "",
        )

    async def _read(self, path: str, server: ServerState, target: Target[Settings]) -> Observed[Settings, None] | None:
        observed = await super()._read(path, server, target)
        if observed is None and not (target.leaving or target.only_observed):
            self._record_unset(target, refused=False)
        return observed

    async def create(self, target: Target[Settings], credential: Credential, fence: Fence) -> Operation | None:
        """Set the value.

        Raises:
            Terminal: It is refused; nothing waits for it.
        """
        try:
            return await super().create(target, credential, fence)
        except Terminal:
            self._record_unset(target, refused=True)
            raise

    def _record_unset(self, target: Target[Settings], *, refused: bool) -> None:
        server, name = server_in(target.name), child_in(target.name)
        self._account.restarts.record_unset(server, name, target.owner.identity, refused=refused)

    async def delete(
        self, target: Target[Settings], observed: Observed[Settings, None] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Put the default value back: ARM deletes no configuration."""
        del policy
        if observed is None:
            return None
        body = {"properties": {"value": observed.at_provider.get("defaultValue", ""), "source": _BY_NOBODY}}
        action = f"reset configuration {target.name}"
        answer = await self._account.send("PUT", self._path(target.name), action, body=body, fence=fence)
        return operation_of(answer, "Delete", self._account.endpoint)


def _unknown_message(spec: Settings) -> str:
    return (
        f"Azure has no parameter {spec.name} on a server of this version; correct the name, or leave the parameter out"
        " (`az postgres flexible-server parameter list` shows all)"
    )


def _written(properties: Answer, value: str) -> str:
    """Return a value as Azure writes it, by what it answers about the parameter."""
    unit, data_type = (str(properties.get(name) or "") for name in ("unit", "dataType"))
    return as_azure_writes(value, unit, data_type)


def _server_of(target: Target[Any]) -> str:
    server = server_in(target.name)
    return "" if server == NO_SERVER else str(server)


def _clients(cls: Callable[[AzureAccount], ServerChild[SpecT]]) -> Callable[[AzureAccount], Clients[SpecT, None]]:
    def clients(account: AzureAccount) -> Clients[SpecT, None]:
        child = cls(account)
        # Of rules and parameters nobody takes over all that a server has.
        contents = child if child.word == "databases" else None
        return Clients(child, child, operations=ArmOperations(account), contents=contents)

    return clients


def _own_name(spec: Any, _identity: Identity, _prefix: str) -> str:
    return f"{spec.server or ''}/{spec.name}"


def _server_field(name: str) -> dict[str, str]:
    return {"server": str(server_in(name))}


def _named_fields(name: str) -> dict[str, str]:
    return {"server": str(server_in(name)), "name": child_in(name)}


def _by_rule(spec: Rules, identity: Identity, prefix: str) -> str:
    return f"{spec.server or ''}/{name_of(identity, prefix)}"


SERVERS = Resource(GROUP, "v1alpha1", "FlexibleServer", "flexibleservers")


def _kind(  # noqa: PLR0913 - what the three kinds differ in
    names: tuple[str, str],
    spec_type: type[Envelope],
    clients: Callable[[AzureAccount], Clients[SpecT, None]],
    naming: Naming[SpecT],
    *,
    stateful: bool = False,
    refusal: Callable[[SpecT, ProviderConfigSpec], tuple[str, str] | None] = lambda _spec, _config: None,
) -> Kind[SpecT, None]:
    return Kind(
        resource=Resource(GROUP, "v1alpha1", *names),
        spec_type=spec_type,
        projection=VERSION,
        naming=naming,
        invariants=lambda _target, _observed: (),
        clients=clients,
        references=(Reference("server_ref", "server", "server", SERVERS),),
        stateful=stateful,
        asynchronous=True,
        server_of=_server_of,
        inside=True,
        tagged=False,
        refusal=lambda spec, config, _at_provider: refusal(spec, config),
    )


DATABASES: Final = _kind(
    ("FlexibleServerDatabase", "flexibleserverdatabases"),
    FlexibleServerDatabaseSpec,
    _clients(ServerDatabases),
    Naming(_own_name, lambda _spec, _name: "", _named_fields),
    stateful=True,
)
FIREWALL_RULES: Final = _kind(
    ("FlexibleServerFirewallRule", "flexibleserverfirewallrules"),
    FlexibleServerFirewallRuleSpec,
    _clients(FirewallRules),
    Naming(_by_rule, lambda _spec, name: hash_in(name), _server_field),
    refusal=_rule_refusal,
)
CONFIGURATIONS: Final = _kind(
    ("FlexibleServerConfiguration", "flexibleserverconfigurations"),
    FlexibleServerConfigurationSpec,
    _clients(Configurations),
    Naming(_own_name, lambda _spec, _name: "", _named_fields),
)
