"""The activity log of a subscription: who asked for which change of what, as Azure Monitor lists it.

"Activity Logs - List" of the REST reference 2015-04-01. A client's own `x-ms-correlation-request-id` is the entry's.
"""

import re
import uuid
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from devcloud.azure.api.calls import Call, Cloud, Handler, page
from devcloud.azure.refusals import bad_request
from devcloud.azure.resources import Activity
from devcloud.azure.state.views import time_text
from devcloud.simulator.messages import Answer

_FILTER = re.compile(
    r"eventTimestamp ge '(?P<since>[^']+)' and eventTimestamp le '(?P<until>[^']+)' and resourceUri eq '(?P<of>[^']+)'"
)


def record(cloud: Cloud, call: Call, answer: Answer, right: str) -> None:
    """Record a change that was accepted."""
    url = answer.headers.get("Azure-AsyncOperation", "")
    operation = uuid.UUID(urlsplit(url).path.rpartition("/")[2]).hex if url else ""
    who = call.grant.principal if call.grant is not None else ""
    entry = Activity(cloud.clock.now(), who, call.correlation_id, right, call.path.lower(), operation)
    cloud.resources.activities.append(entry)


def list_activities(cloud: Cloud, call: Call) -> Answer:
    """Return the changes of one resource within a time, those apart that are too new to be shown.

    Raises:
        Refusal: Its filter is of another pattern.
    """
    matched = _FILTER.fullmatch(call.query.get("$filter", ""))
    if matched is None:
        raise bad_request("BadRequest", "The filter is not simulated.")
    since, until = (datetime.fromisoformat(matched[name]) for name in ("since", "until"))
    shown_until = min(until, cloud.clock.now() - timedelta(seconds=cloud.behaviour.activity_lag_s))
    present = cloud.resources.activities
    entries = [entry for entry in present if entry.resource == matched["of"].lower() and since <= entry.at]
    return page(cloud, call, [entry for entry in entries if entry.at <= shown_until], lambda entry: _view(cloud, entry))


def _view(cloud: Cloud, entry: Activity) -> dict[str, Any]:
    operation = cloud.resources.operations.get(entry.operation)
    ended = "Started" if operation is not None and operation.status != "DONE" else "Succeeded"
    is_failed = operation is not None and operation.status == "DONE" and operation.error is not None
    return {
        "caller": entry.caller,
        "correlationId": entry.correlation_id,
        "eventTimestamp": time_text(entry.at),
        "operationName": {"value": entry.right},
        "resourceId": entry.resource,
        "status": {"value": "Failed" if is_failed else ended},
    }


ACTIONS: dict[str, Handler] = {"activities.list": list_activities}
