"""The record of what was done in a cloud: one line of the log for each call that an intent names."""

from __future__ import annotations

from typing import Any

import structlog

from providers.managed.outcome import calls_of
from providers.managed.plan import Plan
from providers.managed.snapshot import Snapshot, unknown_of
from runtime.errors import Failure
from runtime.objects import key_of, uid_of

_log = structlog.get_logger("providers.managed.audit")


def record(snapshot: Snapshot[Any], plan: Plan, failure: BaseException | None) -> None:
    """Write down each call of a pass and what came of it: `done`, or the reason or type of what stopped the pass."""
    match failure:
        case None:
            result = "done"
        case Failure():
            result = unknown_of(failure).reason
        case _:
            result = type(failure).__name__
    for call in calls_of(snapshot, plan):
        _log.info(
            "audit",
            action=call.kind,
            kind=str(snapshot.obj.get("kind", "")),
            object=str(key_of(snapshot.obj)),
            uid=uid_of(snapshot.obj),
            target=call.target,
            incarnation=call.incarnation,
            account=snapshot.account.id if snapshot.account is not None else "",
            result=result,
        )
