"""What an account holds without a resource, in the status of its ProviderConfig, on request.

Nobody lists for it unasked: a requested reconcile of the ProviderConfig (`fairlead orphans`, `fairlead import find`)
lists each kind once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import structlog

from providers.accounts.limits import Limiter
from providers.external.ownership import Owner
from runtime.errors import Failure
from runtime.objects import Object

ORPHANS: Final = "orphans"
UNMANAGED: Final = "unmanaged"
# As many as the CRD takes.
MOST: Final = 200
MOST_UNMANAGED: Final = 1_000

_log = structlog.get_logger("providers.accounts.orphan_report")


class Reports(NamedTuple):
    """Two fields of a ProviderConfig's status: what was made by this installation, and what others made."""

    orphans: Object
    unmanaged: Object


async def reports_of(config: str, limiters: Iterable[Limiter]) -> Reports:
    """List every kind in the account of a ProviderConfig; return what has no resource.

    A kind that cannot be listed leaves the answer incomplete, and what other kinds show stands.
    """
    orphans: list[Object] = []
    unmanaged: list[Object] = []
    complete = True
    for limiter in limiters:
        try:
            listed = await limiter.list_without_resource(config)
        except Failure as failure:
            _log.info("an account cannot be listed", config=config, kind=limiter.kind, error=str(failure))
            complete = False
            continue
        complete = complete and listed.complete
        orphans += [item_of(limiter.kind, name, owner) for name, owner in sorted(listed.orphans.items())]
        unmanaged += [{"kind": limiter.kind, "name": name} for name in sorted(listed.unmanaged)]
    return Reports(_report(orphans, MOST, complete=complete), _report(unmanaged, MOST_UNMANAGED, complete=complete))


def item_of(kind: str, name: str, owner: Owner) -> Object:
    """Return one entry: its name in the cloud, and what its owner tags say for people. Pure."""
    read = {"namespace": owner.namespace, "claim": owner.name, "resource": owner.resource}
    return {"kind": kind, "name": name, **{field: text for field, text in read.items() if text}}


def _report(items: list[Object], most: int, *, complete: bool) -> Object:
    return {"complete": complete and len(items) <= most, "items": items[:most]}
