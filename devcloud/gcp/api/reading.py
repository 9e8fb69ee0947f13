"""The methods that only read: operations, flags, tiers, how to connect, who a project is."""

from devcloud.gcp.api.calls import Call, Cloud, page
from devcloud.gcp.api.views import operation_view
from devcloud.gcp.state import catalog, flags
from devcloud.gcp.state.settings import Json
from devcloud.simulator.messages import Refusal

_MOST = 500
_TIERS = {"db-f1-micro": 0.6, "db-g1-small": 1.7, "db-custom-1-3840": 3.75, "db-custom-2-7680": 7.5}
_GIB = 1024**3


def get_operation(cloud: Cloud, call: Call) -> Json:
    """Return an operation."""
    operation = cloud.operations.get(call.parameters["operation"])
    if operation is None or not operation.target.startswith(f"{call.project}:"):
        raise Refusal("operationDoesNotExist", "The Cloud SQL instance operation does not exist.")
    return operation_view(operation, call.version)


def list_operations(cloud: Cloud, call: Call) -> Json:
    """Return the operations of an instance, or of the whole project, newest first."""
    name = call.parameters.get("instance", "")
    target = f"{call.project}:{name}" if name else None
    known = [item for item in cloud.operations.list_of(target) if item.target.startswith(f"{call.project}:")]
    items, token = page(known, call, size=_MOST)
    answer: Json = {"kind": "sql#operationsList"}
    if items:
        answer["items"] = [operation_view(operation, call.version) for operation in items]
    if token:
        answer["nextPageToken"] = token
    return answer


def list_flags(cloud: Cloud, call: Call) -> Json:
    """Return the flags that instances may set."""
    del cloud, call
    items = []
    for name, flag in flags.FLAGS.items():
        item: Json = {
            "appliesTo": list(catalog.VERSIONS),
            "kind": "sql#flag",
            "name": name,
            "requiresRestart": flag.restarts,
            "type": flag.type,
        }
        if flag.type == "INTEGER":
            item |= {"minValue": str(int(flag.low)), "maxValue": str(int(flag.high))}
        if flag.values:
            item["allowedStringValues"] = list(flag.values)
        items.append(item)
    return {"items": items, "kind": "sql#flagsList"}


def list_tiers(cloud: Cloud, call: Call) -> Json:
    """Return some tiers; custom ones are computed, and in no list of Google's either."""
    del cloud, call
    items = [
        {"kind": "sql#tier", "tier": tier, "RAM": str(int(gib * _GIB)), "region": list(catalog.REGIONS)}
        for tier, gib in _TIERS.items()
    ]
    return {"items": items, "kind": "sql#tiersList"}


def get_connect_settings(cloud: Cloud, call: Call) -> Json:
    """Return what a connector needs to know of an instance."""
    shown = cloud.world.instance(call.project, call.instance).shown
    names = ("serverCaCert", "ipAddresses", "region", "databaseVersion", "backendType", "connectionName")
    return {"kind": "sql#connectSettings", **{name: shown[name] for name in names if name in shown}}


def get_project(cloud: Cloud, call: Call) -> Json:
    """Return who a project is (Resource Manager v3): its number is what no other project ever has."""
    del call
    project = cloud.project
    return {
        "name": f"projects/{project.number}",
        "projectId": project.id,
        "state": "ACTIVE",
        "displayName": project.id,
    }
