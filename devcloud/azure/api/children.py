"""What is in a server: databases, firewall rules, parameters."""

from collections.abc import Mapping
from typing import Any

from devcloud.azure.api.calls import Call, Cloud, Handler, page, started_child
from devcloud.azure.firewall import refuse_rule
from devcloud.azure.lifecycle import effects
from devcloud.azure.refusals import bad_request, child_not_found, invalid_value, missing_value, rule_not_found
from devcloud.azure.state.configurations import CONFIGURATIONS, allows, in_version
from devcloud.azure.state.model import SYSTEM_DATABASES, Database, Rule
from devcloud.azure.state.views import configuration_view, database_view, rule_view
from devcloud.simulator.messages import Answer, Refusal, json_answer

_CHARSETS = {"utf8": "UTF8", "sql_ascii": "SQL_ASCII", "latin1": "LATIN1"}
_COLLATIONS = {name.lower(): name for name in ("en_US.utf8", "C", "C.UTF-8", "POSIX", "de_DE.utf8")}
_SOURCES = {"user-override", "system-default"}


def put_database(cloud: Cloud, call: Call) -> Answer:
    """Create a database; one that there is cannot be changed, and is answered as created (PUT is idempotent)."""
    server, name = cloud.changeable(call), call.names["database"]
    requested = _properties(call.body, {"charset", "collation"})
    charset = _CHARSETS.get(str(requested.get("charset", "UTF8")).lower())
    collation = _COLLATIONS.get(str(requested.get("collation", "en_US.utf8")).lower())
    if charset is None or collation is None:
        raise invalid_value("charset" if charset is None else "collation")
    database = Database(charset=charset, collation=collation)
    present = server.databases.get(name)
    cloud.refuse_present(call, present)
    if present is not None and present != database:
        raise Refusal("DatabaseAlreadyExists", f"Specified database name '{name}' is already used.", status=409)
    return started_child(cloud, call, server, effects.PutDatabase(server.name, name, database), "databases")


def get_database(cloud: Cloud, call: Call) -> Answer:
    """Return a database."""
    server, name = cloud.server(call), call.names["database"]
    if name not in server.databases:
        raise child_not_found("databases", name)
    return json_answer(database_view(server, name, server.databases[name]))


def list_databases(cloud: Cloud, call: Call) -> Answer:
    """Return the databases of a server, those of Azure's own with them."""
    server = cloud.server(call)
    entries = list(server.databases.items())
    return page(cloud, call, entries, lambda entry: database_view(server, *entry))


def delete_database(cloud: Cloud, call: Call) -> Answer:
    """Delete a database; of one that is not there, nothing is answered (204)."""
    server, name = cloud.changeable(call), call.names["database"]
    if name in SYSTEM_DATABASES:
        raise bad_request("InvalidDatabaseName", f"The system database '{name}' cannot be deleted.")
    if name not in server.databases:
        return Answer(status=204, body=b"")
    return started_child(cloud, call, server, effects.DropDatabase(server.name, name), "databases")


def put_rule(cloud: Cloud, call: Call) -> Answer:
    """Create or change a firewall rule; a server in a subnet has none."""
    server, name = cloud.changeable(call), call.names["rule"]
    requested = _properties(call.body, {"startIpAddress", "endIpAddress"})
    for parameter in ("startIpAddress", "endIpAddress"):
        if not isinstance(requested.get(parameter), str):
            raise missing_value(parameter)
    rule = Rule(start_ip_address=requested["startIpAddress"], end_ip_address=requested["endIpAddress"])
    refuse_rule(rule)
    cloud.refuse_present(call, _named(server.rules, name))
    if server.in_vnet:
        message = "Firewall rule operations cannot be requested for a private access enabled server."
        raise bad_request("FirewallRuleOperationsNotAllowed", message)
    return started_child(cloud, call, server, effects.PutRule(server.name, name, rule), "firewallRules")


def get_rule(cloud: Cloud, call: Call) -> Answer:
    """Return a firewall rule."""
    server, name = cloud.server(call), call.names["rule"]
    known = _named(server.rules, name)
    if known is None:
        raise rule_not_found(name, call.api_version)
    return json_answer(rule_view(server, known, server.rules[known]))


def list_rules(cloud: Cloud, call: Call) -> Answer:
    """Return the firewall rules of a server."""
    server = cloud.server(call)
    return page(cloud, call, list(server.rules.items()), lambda entry: rule_view(server, *entry))


def delete_rule(cloud: Cloud, call: Call) -> Answer:
    """Delete a firewall rule; of one that is not there, nothing is answered (204)."""
    server, name = cloud.changeable(call), call.names["rule"]
    known = _named(server.rules, name)
    if known is None:
        return Answer(status=204, body=b"")
    return started_child(cloud, call, server, effects.DropRule(server.name, known), "firewallRules")


def put_configuration(cloud: Cloud, call: Call) -> Answer:
    """Choose a parameter's value, or its default again (`source: system-default`)."""
    server, name = cloud.changeable(call), _configuration(call)
    configuration = in_version(name, server.properties.version)
    # There is a value of every parameter, always.
    cloud.refuse_present(call, configuration)
    requested = _properties(call.body, {"value", "source"})
    source, value = str(requested.get("source", "user-override")).lower(), requested.get("value")
    if source not in _SOURCES:
        raise invalid_value("source")
    if source == "system-default":
        value = None
    elif not isinstance(value, str):
        raise missing_value("value")
    if configuration.is_read_only:
        raise bad_request("ConfigurationReadOnly", f"The server parameter '{name}' is read-only.")
    if value is not None and not allows(configuration, value):
        raise invalid_value(name)
    return started_child(cloud, call, server, effects.SetConfiguration(server.name, name, value), "configurations")


def get_configuration(cloud: Cloud, call: Call) -> Answer:
    """Return a parameter."""
    server = cloud.server(call)
    return json_answer(configuration_view(server, _configuration(call)))


def delete_configuration(cloud: Cloud, call: Call) -> Answer:
    """Refuse: a parameter is there as long as its server is (recorded, 2021-06-01, for a server that is gone)."""
    cloud.server(call)
    raise Refusal("HttpMethodNotAllowed", "The HTTP method 'DELETE' is not supported at this scope.", status=405)


def list_configurations(cloud: Cloud, call: Call) -> Answer:
    """Return all parameters of a server."""
    server = cloud.server(call)
    return page(cloud, call, list(CONFIGURATIONS), lambda name: configuration_view(server, name))


def _configuration(call: Call) -> str:
    """Return the name of a call's parameter in Azure's letter case.

    Raises:
        Refusal: There is none of it.
    """
    name = _named(CONFIGURATIONS, call.names["configuration"])
    if name is None:
        raise child_not_found("configurations", call.names["configuration"])
    return name


def _named(entries: Mapping[str, Any], name: str) -> str | None:
    return next((known for known in entries if known.lower() == name.lower()), None)


def _properties(body: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the properties of a body without those that Azure alone writes.

    Raises:
        Refusal: `InvalidRequestContent`, there is none.
    """
    properties = body.get("properties")
    if not isinstance(properties, dict):
        raise bad_request("InvalidRequestContent", "The request content was invalid: 'properties' is missing.")
    return {name: value for name, value in properties.items() if name in known and value is not None}


ACTIONS: dict[str, Handler] = {
    "databases.put": put_database,
    "databases.get": get_database,
    "databases.list": list_databases,
    "databases.delete": delete_database,
    "firewallRules.put": put_rule,
    "firewallRules.get": get_rule,
    "firewallRules.list": list_rules,
    "firewallRules.delete": delete_rule,
    "configurations.put": put_configuration,
    "configurations.patch": put_configuration,
    "configurations.delete": delete_configuration,
    "configurations.get": get_configuration,
    "configurations.list": list_configurations,
}
