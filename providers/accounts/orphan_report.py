"""What an account holds of this installation without a resource, in the status of its ProviderConfig, on request.

Nobody lists for it at rest: a requested reconcile of the ProviderConfig (`fairlead orphans`) lists each kind once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from providers.accounts.limits import Limiter
from providers.external.ownership import Owner
from runtime.errors import Failure
from runtime.objects import Object

FIELD: Final = "orphans"
# As many as the CRD takes.
MOST: Final = 200

_log = structlog.get_logger("providers.accounts.orphan_report")


async def orphans_of(config: str, limiters: Iterable[Limiter]) -> Object:
    """List every kind in the account of a ProviderConfig; return the content of its status `orphans`.

    A kind that cannot be listed leaves the answer incomplete, and what other kinds show stands.
    """
    items: list[Object] = []
    complete = True
    for limiter in limiters:
        try:
            orphans, is_whole = await limiter.list_orphans(config)
        except Failure as failure:
            _log.info("orphans cannot be listed", config=config, kind=limiter.kind, error=str(failure))
            complete = False
            continue
        complete = complete and is_whole
        items += [item_of(limiter.kind, name, owner) for name, owner in sorted(orphans.items())]
    return {"complete": complete and len(items) <= MOST, "items": items[:MOST]}


def item_of(kind: str, name: str, owner: Owner) -> Object:
    """Return one entry: its name in the cloud, and what its owner tags say for people. Pure."""
    read = {"namespace": owner.namespace, "claim": owner.name, "resource": owner.resource}
    return {"kind": kind, "name": name, **{field: text for field, text in read.items() if text}}
