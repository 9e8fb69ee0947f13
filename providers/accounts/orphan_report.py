"""What an account holds without a resource, in the status of its ProviderConfig, on request.

Nobody lists for it unasked: a requested reconcile of the ProviderConfig (`fairlead orphans`, `fairlead import find`)
lists each kind once. What a status has no room for is asked for by another request, from where this one ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec
import structlog

from apis.names import FIND, RECONCILE_REQUESTED_AT
from providers.accounts.limits import Limiter
from providers.external.client import KeptBackup
from providers.external.cloud_api.tags import RELEASED
from providers.external.ownership import Owner
from runtime.conditions import timestamp
from runtime.errors import Failure
from runtime.objects import Object, annotations_of

ORPHANS: Final = "orphans"
UNMANAGED: Final = "unmanaged"
BACKUPS: Final = "backups"
# As many as the CRD takes.
MOST: Final = 200
MOST_UNMANAGED: Final = 1_000

_log = structlog.get_logger("providers.accounts.orphan_report")


@dataclass(frozen=True, slots=True)
class Search:
    """Which part of what has no resource is meant.

    `name` is a pattern of a shell, `tags` what a thing has all of, `after` the last `<kind>/<name>` of the part before.
    `within` is a server into which is looked, in the place of the account's list. `token` is that of the request.
    `backups`: what the account keeps of databases that are gone is listed, too.
    """

    token: str = ""
    name: str = "*"
    tags: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    within: str = ""
    backups: bool = False

    def means(self, kind: str, name: str, tags: Mapping[str, str]) -> bool:
        """Return whether a thing is of this part."""
        is_called = fnmatchcase(name, self.name) or fnmatchcase(name.rpartition("/")[2], self.name)
        return is_called and self.tags.items() <= tags.items() and f"{kind}/{name}" > self.after


def search_of(config: Object) -> Search:
    """Return what the present request of a ProviderConfig asks for; all, where its annotation is of another. Pure."""
    annotations = annotations_of(config)
    try:
        search = msgspec.json.decode(annotations.get(FIND, "{}"), type=Search)
    except msgspec.DecodeError:
        return Search()
    return search if search.token == annotations.get(RECONCILE_REQUESTED_AT) else Search()


class Reports(NamedTuple):
    """Two fields of a ProviderConfig's status: what was made by this installation, and what others made."""

    orphans: Object
    unmanaged: Object


async def reports_of(config: str, limiters: Iterable[Limiter], search: Search = Search()) -> Reports:
    """List every kind in the account of a ProviderConfig; return what has no resource.

    A kind that cannot be listed leaves the answer incomplete, and what other kinds show stands.
    """
    orphans: list[Object] = []
    unmanaged: list[Object] = []
    complete = True
    for limiter in sorted(limiters, key=lambda limiter: limiter.kind):
        try:
            listed = await limiter.list_without_resource(config, search.within)
        except Failure as failure:
            _log.info("an account cannot be listed", config=config, kind=limiter.kind, error=str(failure))
            complete = False
            continue
        complete = complete and listed.complete
        kind, tags = limiter.kind, listed.tags
        meant = {name for name in (*listed.orphans, *listed.unmanaged) if search.means(kind, name, tags.get(name, {}))}
        orphans += [
            {**item_of(kind, name, owner), **_since(tags.get(name, {}))}
            for name, owner in sorted(listed.orphans.items())
            if name in meant
        ]
        unmanaged += [{"kind": kind, "name": name} for name in sorted(meant - listed.orphans.keys())]
    return Reports(_report(orphans, MOST, complete=complete), _report(unmanaged, MOST_UNMANAGED, complete=complete))


async def backups_of(config: str, limiters: Iterable[Limiter]) -> Object:
    """List what the account of a ProviderConfig keeps of this installation's databases that are gone."""
    items: list[Object] = []
    complete = True
    for limiter in sorted(limiters, key=lambda limiter: limiter.kind):
        try:
            kept = await limiter.list_backups(config)
        except Failure as failure:
            _log.info("backups cannot be listed", config=config, kind=limiter.kind, error=str(failure))
            complete = False
            continue
        items += [_backup_of(limiter.kind, backup) for backup in sorted(kept, key=lambda kept: kept.name)]
    return _report(items, MOST, complete=complete)


def _backup_of(kind: str, backup: KeptBackup) -> Object:
    times = {"takenAt": backup.taken_at, "until": backup.until}
    size = {"sizeGiB": backup.size_gib} if backup.size_gib else {}
    about = {"database": backup.database, **{field: text for field, text in times.items() if text}}
    return {**item_of(kind, backup.name, backup.owner), **about, **size}


def item_of(kind: str, name: str, owner: Owner) -> Object:
    """Return one entry: its name in the cloud, and what its owner tags say for people. Pure."""
    read = {"namespace": owner.namespace, "claim": owner.name, "resource": owner.resource}
    return {"kind": kind, "name": name, **{field: text for field, text in read.items() if text}}


def _since(tags: Mapping[str, str]) -> Object:
    """Return since when a thing is orphaned, where its tags say it."""
    seconds = tags.get(RELEASED, "")
    return {"since": timestamp(datetime.fromtimestamp(int(seconds), UTC))} if seconds.isdecimal() else {}


def _report(items: list[Object], most: int, *, complete: bool) -> Object:
    left = {"left": len(items) - most} if len(items) > most else {}
    return {"complete": complete and not left, "items": items[:most], **left}
