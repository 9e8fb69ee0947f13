"""Who made what is inside a server, which carries no tag, and whether a server was deleted, by ARM's activity log.

Impure: it asks ARM.

"Activity Logs - List" of the REST reference, "Azure Activity Log event schema": each change has the id of its request,
which the client may choose (`x-ms-correlation-request-id`), so that a create of ours is known again. An entry comes
after some minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from providers.azure.arm import AzureAccount
from providers.external.client import Target
from providers.external.ownership import Owner
from runtime.errors import Blocked, Failure, Terminal

CORRELATION: Final = "x-ms-correlation-request-id"
_API_VERSION: Final = "2015-04-01"
_MARGIN: Final = timedelta(minutes=5)
# Entries are there within 20 minutes ("Azure activity log", FAQ).
_LONGEST_LAG: Final = timedelta(minutes=30)


def correlation_of(target: Target[Any]) -> str:
    """Return the id of the request that creates an object: nobody else can know it."""
    text = hashlib.sha256(f"{target.own_password}\0{target.name}".encode()).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


async def proven_owner(account: AzureAccount, path: str, target: Target[Any]) -> Owner | None:
    """Return the owner of what turned up after a create without an answer, where the log proves that this made it.

    None where it was another's, where the log may not be read, and where it never shows who it was: of what is made by
    SQL it has nothing.

    Raises:
        Blocked: `Creating`: the log does not show it yet.
        Failure: The log cannot be read now.
    """
    if target.unanswered is None:
        return None
    since, until = target.unanswered - _MARGIN, account.now() + _MARGIN
    try:
        made_by = maker_in(await _events(account, path, since, until, target))
    except (Terminal, Blocked):
        return None
    if not made_by and until - _MARGIN - target.unanswered < _LONGEST_LAG:
        text = f"{target.name} is there after a create without an answer; the activity log will show who made it"
        raise Blocked("Creating", text)
    return target.owner if made_by == correlation_of(target) else None


async def is_deleted(account: AzureAccount, path: str, target: Target[Any]) -> bool:
    """Return whether the log shows that what is to be deleted was; False where it may not be read, or shows nothing."""
    if not target.is_new:
        return False
    until = account.now() + _MARGIN
    try:
        events = await _events(account, path, until - _LONGEST_LAG, until, target)
    except Failure:
        return False
    done = [event for event in events if _value(event, "status").lower() == "succeeded"]
    last = max(done, key=lambda event: str(event.get("eventTimestamp", "")), default={})
    return _verb(last) == "delete"


async def _events(
    account: AzureAccount, path: str, since: datetime, until: datetime, target: Target[Any]
) -> list[Mapping[str, Any]]:
    """Return the changes of one resource within a time."""
    times = f"eventTimestamp ge '{_text(since)}' and eventTimestamp le '{_text(until)}'"
    query = {"$filter": f"{times} and resourceUri eq '{path}'"}
    path_of_log = f"{account.subscription}/providers/Microsoft.Insights/eventtypes/management/values"
    action = f"read the activity log of {target.name}"
    pages = account.pages(path_of_log, action, api_version=_API_VERSION, query=query)
    return [event async for event in pages]


def maker_in(events: Sequence[Mapping[str, Any]]) -> str:
    """Return the id of the request that made what is there by the log of its changes; empty where it shows none. Pure.

    The first write after the last deletion made it, and others after that changed nothing.
    """
    made_by = ""
    for event in sorted(events, key=lambda event: str(event.get("eventTimestamp", ""))):
        verb = _verb(event)
        if _value(event, "status").lower() != "succeeded":
            continue
        request = str(event.get("correlationId", "")).lower() if verb == "write" else ""
        made_by = "" if verb == "delete" else made_by or request
    return made_by


def _verb(event: Mapping[str, Any]) -> str:
    return _value(event, "operationName").rpartition("/")[2].lower()


def _value(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    return str(value.get("value", "")) if isinstance(value, Mapping) else ""


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
