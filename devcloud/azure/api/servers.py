"""Flexible servers: PUT with its create modes, PATCH, GET, lists, DELETE, start, stop, restart, backups, names."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from devcloud.azure.api.calls import Call, Cloud, Handler, page, started
from devcloud.azure.lifecycle import creation, effects, rules
from devcloud.azure.lifecycle.fields import canonical
from devcloud.azure.refusals import (
    GatewayRefusal,
    bad_request,
    invalid_value,
    missing_value,
    name_taken,
    not_ready,
    server_not_found,
    unchangeable,
)
from devcloud.azure.state.api_versions import ENGINES, WRITABLE
from devcloud.azure.state.catalog import LOCATIONS, location_key
from devcloud.azure.state.model import Server
from devcloud.azure.state.views import backup_view, server_view
from devcloud.simulator.messages import Answer, Refusal, json_answer
from devcloud.simulator.operations import OperationError
from runtime import randomness

_ENVELOPE = frozenset({"id", "identity", "location", "name", "properties", "sku", "systemData", "tags", "type"})
_NEW_ONES = {"Create", "PointInTimeRestore", "GeoRestore", "ReviveDropped", "Replica"}
_NOT_SIMULATED = {"GeoRestore", "Replica"}
_MOST_TAGS = 50


def put(cloud: Cloud, call: Call) -> Answer:
    """Create a server, or update the one that there is: `createMode` says which (enum CreateMode of the models)."""
    group = cloud.group(call)
    _refuse_envelope(call.body)
    name = call.names["server"]
    properties = canonical(call.body.get("properties") or {}, call.api_version)
    mode = properties.pop("createMode", "Default")
    present = cloud.resources.server(call.subscription, group.name, name)
    cloud.refuse_present(call, present)
    location = _location(call, present)
    if present is not None and mode not in _NEW_ONES:
        # ARM replaces tags with those of a PUT.
        return _update(cloud, call, present, properties, replaced_tags=True)
    if mode == "Update":
        raise server_not_found(name, group.name)
    if mode in _NOT_SIMULATED:
        raise bad_request("CreateModeNotSupported", f"The create mode '{mode}' is not simulated.")
    rules.refuse_name(name)
    if name in cloud.resources.servers:
        raise name_taken()
    source = _source(cloud, mode, properties)
    request = creation.Request(
        name=name,
        subscription=call.subscription,
        group=group.name,
        resource_id=randomness.token_hex(8),
        location=location,
        tags=_tags(call.body),
        sku=rules.sku_of(call.body.get("sku"), None if source is None else source.sku),
        properties=properties,
        api_version=call.api_version,
        now=cloud.clock.now(),
        source=source,
    )
    return _create(cloud, call, request)


def _create(cloud: Cloud, call: Call, request: creation.Request) -> Answer:
    server = creation.new_server(request)
    password = request.properties.get("administratorLoginPassword")
    source = None if request.source is None else request.source.resource_id
    error = None
    if any(fnmatchcase(server.sku.name, pattern) for pattern in cloud.behaviour.no_capacity):
        message = f"The requested size '{server.sku.name}' is currently not available in location '{server.location}'."
        error = OperationError(code="SkuNotAvailable", message=message)
    answer = started(cloud, call, server, effects.CreateServer(server.name, password, source), error=error)
    cloud.resources.keep(server)
    return answer


def patch(cloud: Cloud, call: Call) -> Answer:
    """Change some of a server; what is not in the request stays as it is."""
    server = cloud.server(call)
    _refuse_envelope(call.body)
    _location(call, server, is_required=False)
    properties = canonical(call.body.get("properties") or {}, call.api_version)
    mode = properties.pop("createMode", "Update")
    if mode not in {"Default", "Update"}:
        raise invalid_value("createMode")
    return _update(cloud, call, server, properties, replaced_tags="tags" in call.body)


def _update(cloud: Cloud, call: Call, server: Server, properties: dict[str, Any], *, replaced_tags: bool) -> Answer:
    if server.properties.state != "Ready":
        raise not_ready(server.name, server.properties.state)
    sku = rules.sku_of(call.body.get("sku"), server.sku)
    rules.refuse_values(properties, sku)
    rules.refuse_edits(server, properties)
    version = properties.get("version", server.properties.version)
    if version != server.properties.version:
        if WRITABLE["version on update"] > call.api_version:
            raise unchangeable("properties.version")
        if version not in ENGINES[call.api_version]:
            raise invalid_value("version")
    password = properties.pop("administratorLoginPassword", None)
    if password is not None:
        rules.refuse_password(password, server.properties.administrator_login or "")
    for chosen_once in ("pointInTimeUTC", "sourceServerResourceId", "administratorLogin"):
        properties.pop(chosen_once, None)
    effect = effects.UpdateServer(
        server=server.name,
        properties=properties,
        sku=sku,
        tags=_tags(call.body) if replaced_tags else server.tags,
        password=password,
        cuts_sessions=sku != server.sku or version != server.properties.version,
    )
    return started(cloud, call, server, effect)


def get(cloud: Cloud, call: Call) -> Answer:
    """Return a server."""
    server = cloud.server(call)
    shown = cloud.resources.shown(server, cloud.behaviour.get_lag_s)
    if shown is None:
        raise server_not_found(call.names["server"], call.names["group"])
    return json_answer(server_view(shown.server, _state(cloud, shown.state), call.api_version))


def list_in_group(cloud: Cloud, call: Call) -> Answer:
    """Return the servers of a resource group, page by page."""
    group = cloud.group(call)
    return _listed(cloud, call, group.name)


def list_in_subscription(cloud: Cloud, call: Call) -> Answer:
    """Return the servers of a subscription, page by page."""
    return _listed(cloud, call, None)


def _listed(cloud: Cloud, call: Call, group: str | None) -> Answer:
    lag_s = cloud.behaviour.list_lag_s
    shown = [cloud.resources.shown_as(name, lag_s) for name in cloud.resources.shown_names(lag_s)]
    entries = [
        entry
        for entry in shown
        if entry is not None
        and entry.server.subscription.lower() == call.subscription.lower()
        and (group is None or entry.server.group.lower() == group.lower())
    ]
    version = call.api_version
    return page(cloud, call, entries, lambda entry: server_view(entry.server, _state(cloud, entry.state), version))


def delete(cloud: Cloud, call: Call) -> Answer:
    """Delete a server; of one that is not there, nothing is answered (204)."""
    group = cloud.group(call)
    server = cloud.resources.server(call.subscription, group.name, call.names["server"])
    if server is None:
        return Answer(status=204, body=b"")
    answer = started(cloud, call, server, effects.DropServer(server.name))
    # Here, and here alone, the region in the URLs is its display name (recorded).
    shown = LOCATIONS.get(server.location, server.location).replace(" ", "%20")
    place = f"/locations/{server.location}/"
    headers = {name: value.replace(place, f"/locations/{shown}/", 1) for name, value in answer.headers.items()}
    return msgspec.structs.replace(answer, headers=headers)


def start(cloud: Cloud, call: Call) -> Answer:
    """Start a stopped server."""
    server = _in_state(cloud, call, "Stopped")
    return started(cloud, call, server, effects.StartServer(server.name))


def stop(cloud: Cloud, call: Call) -> Answer:
    """Stop a server."""
    server = _in_state(cloud, call, "Ready")
    return started(cloud, call, server, effects.StopServer(server.name))


def restart(cloud: Cloud, call: Call) -> Answer:
    """Restart a server."""
    server = _in_state(cloud, call, "Ready")
    return started(cloud, call, server, effects.RestartServer(server.name))


def _in_state(cloud: Cloud, call: Call, state: str) -> Server:
    server = cloud.server(call)
    if server.properties.state != state:
        raise not_ready(server.name, server.properties.state)
    return server


def backups(cloud: Cloud, call: Call) -> Answer:
    """Return the backups of a server: one a day since its creation and those asked for, as long as they are kept."""
    server = cloud.server(call)
    now, kept = cloud.clock.now(), server.properties.backup.backup_retention_days
    age_days = (now - server.created_at).days if server.is_created else -1
    moments = [server.created_at + timedelta(days=day) for day in range(age_days + 1)]
    entries = [(moment, f"backup_{int(moment.timestamp())}") for moment in moments]
    entries += [(moment, name) for name, moment in server.backups.items()]
    entries = sorted(entry for entry in entries if entry[0] > now - timedelta(days=kept))
    return page(cloud, call, entries, lambda entry: backup_view(server, *entry))


def put_backup(cloud: Cloud, call: Call) -> Answer:
    """Take a backup; the server is Updating meanwhile (recorded, 2024-08-01)."""
    server = cloud.changeable(call)
    return started(cloud, call, server, effects.TakeBackup(server.name, call.names["backup"]))


def check_name(cloud: Cloud, call: Call) -> Answer:
    """Return whether a server may have a name: it is one, and nobody has it anywhere in Azure."""
    name = call.body.get("name")
    if not isinstance(name, str):
        raise missing_value("name")
    content: dict[str, Any] = {"name": name, "type": call.body.get("type"), "nameAvailable": True}
    if not rules.is_name(name):
        content |= {"nameAvailable": False, "reason": "Invalid", "message": "Specified server name is invalid."}
    elif name in cloud.resources.servers:
        taken = "Specified server name is already used."
        content |= {"nameAvailable": False, "reason": "AlreadyExists", "message": taken}
    return json_answer(content)


def _state(cloud: Cloud, state: str) -> str:
    return "Disabled" if cloud.behaviour.subscription_disabled else state


def _refuse_envelope(body: Mapping[str, Any]) -> None:
    unknown = sorted(body.keys() - _ENVELOPE)
    if unknown:
        message = f"The request content was invalid: 'Could not find member '{unknown[0]}'.'"
        raise bad_request("InvalidRequestContent", message)


def _location(call: Call, present: Server | None, *, is_required: bool = True) -> str:
    """Return the region of a request, as it is compared.

    Raises:
        Refusal: It is missing, none of Azure's, or not where the server is.
    """
    requested = call.body.get("location")
    if not requested:
        if is_required:
            raise GatewayRefusal(
                "LocationRequired", "The location property is required for this definition.", status=400
            )
        return present.location if present is not None else ""
    key = location_key(str(requested))
    if present is not None and key != present.location:
        message = (
            f"The resource '{present.name}' already exists in location '{present.location}' in resource group "
            f"'{present.group}'. A resource with the same name cannot be created in location '{key}'. "
            "Please select a new resource name."
        )
        raise GatewayRefusal("InvalidResourceLocation", message, status=409)
    if key not in LOCATIONS:
        message = (
            f"The provided location '{requested}' is not available for resource type "
            "'Microsoft.DBforPostgreSQL/flexibleServers'. List of available regions for the resource type is "
            f"'{','.join(LOCATIONS)}'."
        )
        raise GatewayRefusal("LocationNotAvailableForResourceType", message, status=400)
    return key


def _tags(body: Mapping[str, Any]) -> dict[str, str] | None:
    tags = body.get("tags")
    if tags is None:
        return None
    if len(tags) > _MOST_TAGS or len({name.lower() for name in tags}) < len(tags):
        message = f"At most {_MOST_TAGS} tags, whose names differ in more than letter case, are supported."
        raise GatewayRefusal("InvalidTags", message, status=400)
    return {str(name): str(value) for name, value in tags.items()}


def _source(cloud: Cloud, mode: str, properties: dict[str, Any]) -> Server | None:
    """Return the server whose data a new one takes over, None for an empty one.

    Raises:
        Refusal: It is not there, or a value is missing.
    """
    if mode not in {"PointInTimeRestore", "ReviveDropped"}:
        return None
    arm_id = properties.get("sourceServerResourceId")
    if arm_id is None:
        raise missing_value("sourceServerResourceId")
    if "pointInTimeUTC" not in properties:
        raise missing_value("pointInTimeUTC")
    _refuse_moment(str(properties["pointInTimeUTC"]))
    if mode == "ReviveDropped":
        dropped = cloud.resources.dropped_of(arm_id)
        source = None if dropped is None else dropped.server
    else:
        source = cloud.resources.by_arm_id(arm_id)
    if source is None or not source.is_created:
        raise Refusal("SourceServerNotFound", f"The source server '{arm_id}' was not found.", status=404)
    return source


def _refuse_moment(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise invalid_value("pointInTimeUTC") from None


ACTIONS: dict[str, Handler] = {
    "flexibleServers.put": put,
    "flexibleServers.patch": patch,
    "flexibleServers.get": get,
    "flexibleServers.list": list_in_group,
    "flexibleServers.listBySubscription": list_in_subscription,
    "flexibleServers.delete": delete,
    "flexibleServers.start": start,
    "flexibleServers.stop": stop,
    "flexibleServers.restart": restart,
    "backups.list": backups,
    "backups.put": put_backup,
    "checkNameAvailability.post": check_name,
}
