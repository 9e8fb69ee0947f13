"""`fairlead backups`: what is kept of databases whose resource is gone, and how each comes back, or ends for good."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

from apis import names
from apis.kept import called
from fairlead import account_lists
from fairlead.account_lists import Search, Without, provider_configs, without_resource
from fairlead.cluster import connected
from fairlead.kube_options import Server
from fairlead.tree import age_text
from runtime.conditions import instant, timestamp
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource

How: TypeAlias = Literal["orphaned", "retired", "a backup"]
_RETIRED: Final = re.compile(r"retired_(\d{4})(\d{2})(\d{2})_")


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that is kept: a database that lives on, a retired one, or a backup, and of whom it was.

    `database` is the name that a backup's database had; `since` when it was orphaned, retired or taken; `until` when
    its cloud deletes it by itself; `size_gib` is 0 where that is not known.
    """

    config: str
    cloud: str
    kind: str
    name: str
    how: How
    namespace: str = ""
    claim: str = ""
    resource: str = ""
    database: str = ""
    since: datetime | None = None
    until: str = ""
    size_gib: int = 0
    is_newest: bool = False

    @property
    def back(self) -> str:
        """What a person types or writes to have it again.

        A claim of the same name has the names of the former database and its login, which a backup brings along.
        """
        if self.how != "a backup":
            return f"fairlead import write {self.config} {self.name} -n {self.namespace or 'NAMESPACE'}"
        if self.is_newest:
            source = f"{{claim: {self.claim}}}"
        elif self.claim and self.is_automated and self.since:
            source = f"{{claim: {self.claim}, time: '{timestamp(self.since)}'}}"
        else:
            source = f"{{backup: {self.name}}}"
        return f"claim {self.claim or '?'} in namespace {self.namespace or '?'} again, with spec.restoreFrom: {source}"

    @property
    def is_automated(self) -> bool:
        """Whether these are RDS's automated backups of a deleted instance, which have no name but the instance's id."""
        return self.how == "a backup" and self.name.startswith("db-") and self.name[3:].isupper()

    @property
    def for_good(self) -> str:
        """What a person types to be rid of it for ever, with a right of one's own in the cloud or by an adoption."""
        if self.how != "a backup":
            return "write it so, adopt it, give it spec.deletionPolicy: Delete, and delete the object"
        if self.cloud == "gcp":
            return f"gcloud sql backups delete {self.name}"
        if self.is_automated:
            return f"aws rds delete-db-instance-automated-backup --dbi-resource-id {self.name}"
        return f"aws rds delete-db-snapshot --db-snapshot-identifier {self.name}"

    def json(self) -> Object:
        """Return it as plain JSON data."""
        return {
            "config": self.config,
            "kind": self.kind,
            "name": self.name,
            "how": self.how,
            "namespace": self.namespace,
            "claim": self.claim,
            "resource": self.resource,
            "database": self.database,
            "since": timestamp(self.since) if self.since else None,
            "until": self.until or None,
            "sizeGiB": self.size_gib or None,
            "back": self.back,
            "forGood": self.for_good,
        }

    def lines(self, now: datetime) -> Iterator[str]:
        """Yield what people read."""
        age = f" {age_text(now - self.since)} ago" if self.since else ""
        size = f", {self.size_gib} GiB" if self.size_gib else ""
        until = f", until {self.until}" if self.until else ""
        state = f"{self.how}{f' of {self.database}' if self.database else ''}"
        yield f"{called(self.kind, self.name, self.namespace, self.claim)}: {state}{age}{size}{until}"
        yield f"  back: {self.back}"
        yield f"  for good: {self.for_good}"


@dataclass(frozen=True, slots=True)
class Account:
    """What one ProviderConfig's account keeps; `complete`: there is no more."""

    config: str
    complete: bool
    kept: tuple[Kept, ...]


async def backups(reference: str, server: Server, *, namespace: str, claim: str) -> tuple[Account, ...]:
    """Have each provider list its accounts, or one ProviderConfig's; return what they keep of a namespace and a claim.

    An empty namespace or claim means all. Raises CommandError where a provider has not answered within a minute.
    """
    async with connected(server) as kube:
        configs = await provider_configs(kube, reference)
        accounts = await asyncio.gather(*(_account(kube, resource, key) for resource, key in configs))

    def is_meant(item: Kept) -> bool:
        return namespace in ("", item.namespace) and claim in ("", item.claim)

    return tuple(replace(account, kept=tuple(filter(is_meant, account.kept))) for account in accounts)


async def _account(kube: Kube, resource: Resource, key: Key) -> Account:
    report = await without_resource(kube, resource, key, Search(backups=True))
    cloud = resource.group.removesuffix(names.GROUP_SUFFIX)
    config = account_lists.called(resource, key)
    return Account(config, report.complete, kept_of(config, cloud, report))


def kept_of(config: str, cloud: str, report: Without) -> tuple[Kept, ...]:
    """Return what an account keeps, as its provider listed it, by kind and name. Pure."""
    kept = [_kept(config, cloud, item, "orphaned") for item in report.orphans]
    backups = [_kept(config, cloud, item, "a backup") for item in report.backups]
    newest = {(item.namespace, item.claim): item.name for item in sorted(backups, key=_taken_at)}
    kept += [
        replace(item, is_newest=newest[item.namespace, item.claim] == item.name and bool(item.claim))
        for item in backups
    ]
    return tuple(sorted(kept, key=lambda item: (item.namespace, item.claim, item.kind, item.name)))


def _taken_at(item: Kept) -> str:
    return timestamp(item.since) if item.since else ""


def _kept(config: str, cloud: str, item: Object, how: How) -> Kept:
    name = str(item["name"])
    retired = _RETIRED.match(name) if how == "orphaned" else None
    said = str(item.get("since") or item.get("takenAt") or "")
    since = f"{'-'.join(retired.groups())}T00:00:00Z" if retired else said
    texts = {field: str(item.get(field) or "") for field in ("namespace", "claim", "resource", "database", "until")}
    return Kept(
        config,
        cloud,
        str(item["kind"]),
        name,
        "retired" if retired else how,
        since=instant(since),
        size_gib=int(item.get("sizeGiB") or 0),
        namespace=texts["namespace"],
        claim=texts["claim"],
        resource=texts["resource"],
        database=texts["database"],
        until=texts["until"],
    )
