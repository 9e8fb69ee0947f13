"""Subscriptions, resource groups and management locks: what ARM itself keeps."""

import base64
import uuid

import msgspec

from devcloud.azure.api.calls import Call, Cloud, Handler, page, signed, spec_of
from devcloud.azure.lifecycle import effects
from devcloud.azure.refusals import GatewayRefusal
from devcloud.azure.state.catalog import location_key
from devcloud.azure.state.model import Group, Lock, group_id, server_id
from devcloud.azure.state.views import group_view, lock_view
from devcloud.simulator.messages import Answer, json_answer
from devcloud.simulator.operations import Operation


def subscription(cloud: Cloud, call: Call) -> Answer:
    """Return a subscription and its tenant: what a credential can be compared with."""
    tenant = cloud.directory.subscriptions[call.subscription.lower()]
    return json_answer(
        {
            "id": f"/subscriptions/{call.subscription}",
            "subscriptionId": call.subscription,
            "tenantId": tenant,
            "displayName": "fairlead devcloud",
            "state": "Disabled" if cloud.behaviour.subscription_disabled else "Enabled",
        }
    )


def put_group(cloud: Cloud, call: Call) -> Answer:
    """Create a resource group (201), or change its tags (200)."""
    location = call.body.get("location")
    if not location:
        raise GatewayRefusal("LocationRequired", "The location property is required for this definition.", status=400)
    present = cloud.resources.group(call.subscription, call.names["group"])
    if present is not None and location_key(present.location) != location_key(str(location)):
        message = (
            f"Invalid resource group location '{location}'. The Resource group already exists in location "
            f"'{present.location}'."
        )
        raise GatewayRefusal("InvalidResourceGroupLocation", message, status=409)
    name = call.names["group"] if present is None else present.name
    group = Group(
        subscription=call.subscription, name=name, location=location_key(str(location)), tags=call.body.get("tags")
    )
    cloud.resources.keep_group(group)
    return json_answer(group_view(group), status=201 if present is None else 200)


def get_group(cloud: Cloud, call: Call) -> Answer:
    """Return a resource group."""
    return json_answer(group_view(cloud.group(call)))


def list_groups(cloud: Cloud, call: Call) -> Answer:
    """Return the resource groups of a subscription."""
    owned = sorted(key for key in cloud.resources.groups if key[0] == call.subscription.lower())
    return page(cloud, call, [cloud.resources.groups[key] for key in owned], group_view)


def delete_group(cloud: Cloud, call: Call) -> Answer:
    """Delete a resource group and all in it; the answer has no body and `Location` alone (recorded)."""
    group = cloud.group(call)
    job = _job(group)
    effect = effects.DropGroup(group.subscription, group.name, job)
    cloud.resources.drop_group(group, spec_of(call, effect))
    return Answer(status=202, body=b"", headers=_job_headers(cloud, call, job))


def group_result(cloud: Cloud, call: Call) -> Answer:
    """Return whether a resource group is gone: 202 until then, with the same `Location`; then 200, without a body."""
    job = call.names["job"]
    for operation in cloud.resources.operations.list_of():
        if operation.effect.get("job") == job:
            return _group_answer(cloud, call, operation, job)
    raise GatewayRefusal("OperationNotFound", f"The operation '{job}' was not found.", status=404)


def _group_answer(cloud: Cloud, call: Call, operation: Operation, job: str) -> Answer:
    if operation.status != "DONE":
        return Answer(status=202, body=b"", headers=_job_headers(cloud, call, job))
    if operation.error is not None:
        content = {"error": msgspec.to_builtins(operation.error)}
        return json_answer(content, status=409)
    return Answer(status=200, body=b"")


def _job(group: Group) -> str:
    """Return the name of a deletion as ARM makes it: JSON in base 64, without padding (recorded)."""
    name = f"RESOURCEGROUPDELETIONJOB-{group.name.upper().replace('-', ':2D')}-{group.location.upper()}"
    content = {"jobId": f"{name}-{uuid.uuid4().hex[:6].upper()}", "jobLocation": group.location}
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")


def _job_headers(cloud: Cloud, call: Call, job: str) -> dict[str, str]:
    url = signed(cloud, call, f"/subscriptions/{call.subscription}/operationresults/{job}")
    return {"Location": url, "Retry-After": "15"}


# Locks


def _scope(cloud: Cloud, call: Call) -> str:
    if "server" in call.names:
        return cloud.server(call).arm_id
    group = cloud.group(call)
    return group_id(group.subscription, group.name)


def put_lock(cloud: Cloud, call: Call) -> Answer:
    """Create or change a lock of a resource group or a server."""
    level = str((call.body.get("properties") or {}).get("level", ""))
    known = {name.lower(): name for name in ("CanNotDelete", "ReadOnly")}.get(level.lower())
    if known is None:
        raise GatewayRefusal("InvalidLockLevel", f"The lock level '{level}' is invalid.", status=400)
    scope, name = _scope(cloud, call), call.names["lock"]
    key = scope.lower(), name.lower()
    status = 200 if key in cloud.resources.locks else 201
    lock = msgspec.convert({"scope": scope, "name": name, "level": known}, Lock)
    cloud.resources.locks[key] = lock
    cloud.resources.changes += 1
    return json_answer(lock_view(lock), status=status)


def get_lock(cloud: Cloud, call: Call) -> Answer:
    """Return a lock."""
    lock = cloud.resources.locks.get((_scope(cloud, call).lower(), call.names["lock"].lower()))
    if lock is None:
        raise GatewayRefusal("LockNotFound", f"The lock '{call.names['lock']}' could not be found.", status=404)
    return json_answer(lock_view(lock))


def delete_lock(cloud: Cloud, call: Call) -> Answer:
    """Delete a lock; of one that is not there, nothing is answered (204)."""
    lock = cloud.resources.locks.pop((_scope(cloud, call).lower(), call.names["lock"].lower()), None)
    cloud.resources.changes += 1
    return Answer(status=204 if lock is None else 200, body=b"")


def scope_of(call: Call) -> str:
    """Return the id of what a call concerns, as roles and locks see it."""
    names = call.names
    if "server" in names:
        scope = server_id(call.subscription, names["group"], names["server"])
        children = {"database": "databases", "rule": "firewallRules", "configuration": "configurations"}
        return scope + "".join(f"/{kind}/{names[name]}" for name, kind in children.items() if name in names)
    if "group" in names:
        return group_id(call.subscription, names["group"])
    return f"/subscriptions/{call.subscription}"


ACTIONS: dict[str, Handler] = {
    "subscriptions.get": subscription,
    "resourceGroups.put": put_group,
    "resourceGroups.get": get_group,
    "resourceGroups.list": list_groups,
    "resourceGroups.delete": delete_group,
    "resourceGroups.result": group_result,
    "locks.put": put_lock,
    "locks.get": get_lock,
    "locks.delete": delete_lock,
}
