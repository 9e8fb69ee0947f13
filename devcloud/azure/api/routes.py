"""The paths of ARM that are simulated: the action that each calls, the right that it needs, its api-versions. Pure."""

import msgspec

from devcloud.azure.state.api_versions import (
    ACTIVITY_VERSIONS,
    GROUP_VERSIONS,
    LOCK_VERSIONS,
    SUBSCRIPTION_VERSIONS,
    VERSIONS,
)
from devcloud.simulator.rest import Route, Routes

_PROVIDER = "Microsoft.DBforPostgreSQL"
_SUBSCRIPTION = "subscriptions/{subscription}"
_GROUP = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_SERVERS = f"providers/{_PROVIDER}/flexibleServers"
_SERVER = f"{_GROUP}/{_SERVERS}/{{server}}"
_LOCATION = f"{_SUBSCRIPTION}/providers/{_PROVIDER}/locations/{{location}}"
_LOCK = "providers/Microsoft.Authorization/locks/{lock}"
_RIGHT = f"{_PROVIDER}/flexibleServers"
_GROUP_RIGHT = "Microsoft.Resources/subscriptions/resourceGroups"


class Rights(msgspec.Struct, frozen=True):
    """What an action needs.

    Attributes:
        action: As roles name it.
        versions: The api-versions that it has.
        resource_type: As ARM names it in the refusal of another api-version.
    """

    action: str
    versions: tuple[str, ...] = VERSIONS
    resource_type: str = "flexibleServers"


_TABLE: tuple[tuple[str, str, str, Rights], ...] = (
    ("PUT", _SERVER, "flexibleServers.put", Rights(f"{_RIGHT}/write")),
    ("PATCH", _SERVER, "flexibleServers.patch", Rights(f"{_RIGHT}/write")),
    ("GET", _SERVER, "flexibleServers.get", Rights(f"{_RIGHT}/read")),
    ("DELETE", _SERVER, "flexibleServers.delete", Rights(f"{_RIGHT}/delete")),
    ("GET", f"{_GROUP}/{_SERVERS}", "flexibleServers.list", Rights(f"{_RIGHT}/read")),
    ("GET", f"{_SUBSCRIPTION}/{_SERVERS}", "flexibleServers.listBySubscription", Rights(f"{_RIGHT}/read")),
    ("POST", f"{_SERVER}/start", "flexibleServers.start", Rights(f"{_RIGHT}/start/action")),
    ("POST", f"{_SERVER}/stop", "flexibleServers.stop", Rights(f"{_RIGHT}/stop/action")),
    ("POST", f"{_SERVER}/restart", "flexibleServers.restart", Rights(f"{_RIGHT}/restart/action")),
    ("GET", f"{_SERVER}/backups", "backups.list", Rights(f"{_RIGHT}/backups/read", VERSIONS[1:])),
    ("PUT", f"{_SERVER}/backups/{{backup}}", "backups.put", Rights(f"{_RIGHT}/backups/write", VERSIONS[2:])),
    ("PUT", f"{_SERVER}/databases/{{database}}", "databases.put", Rights(f"{_RIGHT}/databases/write")),
    ("GET", f"{_SERVER}/databases/{{database}}", "databases.get", Rights(f"{_RIGHT}/databases/read")),
    ("DELETE", f"{_SERVER}/databases/{{database}}", "databases.delete", Rights(f"{_RIGHT}/databases/delete")),
    ("GET", f"{_SERVER}/databases", "databases.list", Rights(f"{_RIGHT}/databases/read")),
    ("PUT", f"{_SERVER}/firewallRules/{{rule}}", "firewallRules.put", Rights(f"{_RIGHT}/firewallRules/write")),
    ("GET", f"{_SERVER}/firewallRules/{{rule}}", "firewallRules.get", Rights(f"{_RIGHT}/firewallRules/read")),
    ("DELETE", f"{_SERVER}/firewallRules/{{rule}}", "firewallRules.delete", Rights(f"{_RIGHT}/firewallRules/delete")),
    ("GET", f"{_SERVER}/firewallRules", "firewallRules.list", Rights(f"{_RIGHT}/firewallRules/read")),
    (
        "PUT",
        f"{_SERVER}/configurations/{{configuration}}",
        "configurations.put",
        Rights(f"{_RIGHT}/configurations/write"),
    ),
    (
        "DELETE",
        f"{_SERVER}/configurations/{{configuration}}",
        "configurations.delete",
        Rights(f"{_RIGHT}/configurations/delete"),
    ),
    (
        "PATCH",
        f"{_SERVER}/configurations/{{configuration}}",
        "configurations.patch",
        Rights(f"{_RIGHT}/configurations/write"),
    ),
    (
        "GET",
        f"{_SERVER}/configurations/{{configuration}}",
        "configurations.get",
        Rights(f"{_RIGHT}/configurations/read"),
    ),
    ("GET", f"{_SERVER}/configurations", "configurations.list", Rights(f"{_RIGHT}/configurations/read")),
    (
        "POST",
        f"{_SUBSCRIPTION}/providers/{_PROVIDER}/checkNameAvailability",
        "checkNameAvailability.post",
        Rights(f"{_PROVIDER}/checkNameAvailability/action", resource_type="checkNameAvailability"),
    ),
    (
        "POST",
        f"{_LOCATION}/checkNameAvailability",
        "checkNameAvailability.post",
        Rights(f"{_PROVIDER}/locations/checkNameAvailability/action", VERSIONS[1:], "locations/checkNameAvailability"),
    ),
    (
        "GET",
        f"{_LOCATION}/azureAsyncOperation/{{operation}}",
        "azureAsyncOperation.get",
        Rights(f"{_PROVIDER}/locations/azureAsyncOperation/read"),
    ),
    (
        "GET",
        f"{_LOCATION}/operationResults/{{operation}}",
        "operationResults.get",
        Rights(f"{_PROVIDER}/locations/operationResults/read"),
    ),
    (
        "GET",
        _SUBSCRIPTION,
        "subscriptions.get",
        Rights("Microsoft.Resources/subscriptions/read", SUBSCRIPTION_VERSIONS, "subscriptions"),
    ),
    (
        "GET",
        f"{_SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values",
        "activities.list",
        Rights("Microsoft.Insights/eventtypes/values/read", ACTIVITY_VERSIONS, "eventtypes"),
    ),
    ("PUT", _GROUP, "resourceGroups.put", Rights(f"{_GROUP_RIGHT}/write", GROUP_VERSIONS, "resourceGroups")),
    ("GET", _GROUP, "resourceGroups.get", Rights(f"{_GROUP_RIGHT}/read", GROUP_VERSIONS, "resourceGroups")),
    ("DELETE", _GROUP, "resourceGroups.delete", Rights(f"{_GROUP_RIGHT}/delete", GROUP_VERSIONS, "resourceGroups")),
    (
        "GET",
        f"{_SUBSCRIPTION}/resourceGroups",
        "resourceGroups.list",
        Rights(f"{_GROUP_RIGHT}/read", GROUP_VERSIONS, "resourceGroups"),
    ),
    (
        "GET",
        f"{_SUBSCRIPTION}/operationresults/{{job}}",
        "resourceGroups.result",
        Rights("Microsoft.Resources/subscriptions/operationresults/read", GROUP_VERSIONS, "resourceGroups"),
    ),
    *(
        (
            method,
            f"{scope}/{_LOCK}",
            f"locks.{method.lower()}",
            Rights(f"Microsoft.Authorization/locks/{right}", LOCK_VERSIONS, "locks"),
        )
        for method, right in (("PUT", "write"), ("GET", "read"), ("DELETE", "delete"))
        for scope in (_GROUP, _SERVER)
    ),
)
ROUTES = Routes(
    [Route(method, path, f"{action} {index}") for index, (method, path, action, _) in enumerate(_TABLE)],
    ignore_case=True,
)


class Matched(msgspec.Struct, frozen=True):
    """What a method and a path call, and what that needs."""

    action: str
    rights: Rights
    names: dict[str, str]


def match(method: str, path: str) -> Matched | None:
    """Return what a request calls, by its method and its path in any letter case; None for nothing."""
    matched = ROUTES.match(method, path)
    if matched is None:
        return None
    action, _, index = matched.action.partition(" ")
    return Matched(action, _TABLE[int(index)][3], dict(matched.parameters))
