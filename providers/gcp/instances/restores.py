"""What a new instance begins with: a backup, or the state of another instance, and whether this namespace may have it.

A clone (method `instances.clone`) has the settings of its source, its labels too, until a patch makes them those of the
spec; region, version and private network stay those of the source ("About restoring an instance").

Impure: it sends requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apis.names import CONSENT
from providers.external.client import Target
from providers.external.cloud_api.refusals import NotThere
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount
from providers.gcp.instances.backups import InstanceBackups
from providers.gcp.instances.facts import Answer, member, number, settings_of
from providers.gcp.instances.instance_list import owner_in, read_instances
from providers.gcp.models import Clone, CloudSQLInstanceParameters
from runtime import kubectl
from runtime.errors import Blocked, Terminal, Transient

Where = Target[CloudSQLInstanceParameters]
_PENDING = frozenset({"PENDING_CREATE", "PENDING_DELETE"})


@dataclass(frozen=True, slots=True)
class FromBackup:
    """A backup, by its whole name; the new instance's disk is at least as large as that of its instance."""

    name: str
    disk_gb: int


@dataclass(frozen=True, slots=True)
class FromInstance:
    """An instance as it was at a time, RFC 3339, empty for as it is; the new one's disk is as large.

    `deleted_at` is when it was deleted, where it is gone.
    """

    name: str
    point_in_time: str
    disk_gb: int
    deleted_at: str = ""


Source = FromBackup | FromInstance


class Restores:
    """The sources of new instances in one project."""

    def __init__(self, account: GcpAccount, backups: InstanceBackups) -> None:
        self._account = account
        self._backups = backups

    async def source_of(self, target: Where) -> Source | None:
        """Return what a new instance begins with; None for nothing.

        Raises:
            Blocked: `ReferenceNotFound`: there is no such source, or nothing is kept of the claim.
            Terminal: `AdoptionRefused`: it is another namespace's, or nobody's. `InvalidValue`: a clone of it could
                never be as the spec has it.
        """
        if target.restore:
            return _backed_up(await self._read(target.restore))
        wanted = target.spec.restore_from
        if wanted is None:
            return None
        if wanted.clone is None:
            return await self._backup(target, wanted.backup or "")
        if wanted.clone.source_claim is None:
            return await self._named(target, wanted.clone)
        return await self._of_claim(target, wanted.clone)

    async def _backup(self, target: Where, name: str) -> FromBackup:
        backup = await self._read(name)
        self._allow(target, name, member(backup, "instanceSettings"), named=True)
        return _backed_up(backup)

    async def _read(self, name: str) -> Answer:
        return {**await self._account.call("backups.get", f"look at backup {name}", name=name), "name": name}

    async def _named(self, target: Where, clone: Clone) -> FromInstance:
        name = clone.source_instance or ""
        try:
            answer = await self._account.call("instances.get", f"look at instance {name}", instance=name)
        except NotThere:
            text = f"there is no instance {name} to clone; of a deleted one name a backup in restoreFrom.backup"
            raise Blocked("ReferenceNotFound", text) from None
        self._allow(target, name, answer, named=True)
        return _cloned(target, clone, answer)

    async def _of_claim(self, target: Where, clone: Clone) -> Source:
        """Return the instance of a claim of this namespace; of a deleted one its last backup, or it at a time."""
        claim = clone.source_claim or ""
        instances, is_whole = await read_instances(self._account)
        if not is_whole:
            raise Transient(f"a region of the project did not answer; where claim {claim} is, is not known")
        living = [
            (owner, answer)
            for answer in instances
            if (owner := owner_in(answer)) is not None
            and _is_of(target, claim, owner)
            and str(answer.get("name", "")) != target.name
            and answer.get("state") not in _PENDING
        ]
        source = _chosen(target, claim, living)
        if source is not None:
            self._allow(target, str(source["name"]), source, named=False)
            return _cloned(target, clone, source)
        backups = [
            (owner, backup)
            for backup in await self._backups.whole()
            if (owner := owner_in(_instance(backup))) is not None
            and _is_of(target, claim, owner)
            # To a time an instance is restored by its logs, which go with its backups of every day.
            and (clone.point_in_time is None or (backup.get("instanceDeletionTime") and backup.get("type") != "FINAL"))
        ]
        kept = _chosen(target, claim, backups)
        if kept is not None:
            self._allow(target, str(kept["name"]), _instance(kept), named=False)
            return _backed_up(kept) if clone.point_in_time is None else _cloned(target, clone, kept)
        when = "" if clone.point_in_time is None else f" to restore to {clone.point_in_time}"
        text = f"no instance of claim {claim} of this namespace is there{when}"
        which = "" if clone.point_in_time is None else " that kept no backup of every day (retainBackupsOnDelete)"
        raise Blocked("ReferenceNotFound", f"{text}; of a deleted one{which} name a backup in restoreFrom.backup")

    def _allow(self, target: Where, name: str, instance: Answer, *, named: bool) -> None:
        """Refuse what is not proven to be of this namespace; where adoption is allowed its own name will do."""
        is_agreed = name in target.agreed or (named and self._account.config.allow_adoption)
        if is_agreed or _is_of_namespace(instance, target):
            return
        consent = kubectl.annotate(target.address, CONSENT, f"restoreFrom={name}")
        kind = "backup" if "/" in name else "instance"
        raise Terminal(
            "AdoptionRefused",
            f"{kind} {name} is not proven to be of this namespace {target.owner.namespace}; the platform team"
            f" agrees to it by {consent}, or, for what is named by itself, by allowAdoption in the ProviderConfig",
        )


def _is_of_namespace(instance: Answer, target: Where) -> bool:
    owner = owner_in(instance)
    if owner is None or owner.installation != target.owner.installation:
        return False
    return owner.namespace_uid == target.owner.namespace_uid != ""


def _is_of(target: Where, claim: str, owner: Owner) -> bool:
    """Return whether something was made for a claim of this name in a namespace of this name."""
    ours = (target.owner.installation, target.owner.namespace, claim[:63])
    return (owner.installation, owner.namespace, owner.name) == ours


def _chosen(target: Where, claim: str, kept: Iterable[tuple[Owner, Answer]]) -> Answer | None:
    """Return of what is kept of a claim that of this resource's name, else of the only one.

    Of several identities that of this namespace goes first, then the newest. Of one identity the first instance is the
    source: a clone of it has its labels at first; and the last backup.

    Raises:
        Terminal: `InvalidValue`: several resources are kept, and none of that name.
    """
    kept = tuple(kept)
    resources = {owner.resource for owner, _ in kept}
    if len(resources) > 1 and target.owner.resource not in resources:
        raise Terminal(
            "InvalidValue",
            f"several resources of claim {claim} are kept: {', '.join(sorted(resources))}, and none of them is called"
            f" {target.owner.resource}; name the instance or the backup itself in restoreFrom",
        )
    wanted = target.owner.resource if target.owner.resource in resources else next(iter(resources), "")
    own = [(owner, answer) for owner, answer in kept if owner.resource == wanted]
    by_identity: dict[str, Answer] = {}
    for owner, answer in sorted(own, key=lambda entry: _began(entry[1])):
        if "backupInterval" in answer:
            by_identity[owner.identity] = answer
        else:
            by_identity.setdefault(owner.identity, answer)
    return max(
        by_identity.values(),
        key=lambda answer: (_is_of_namespace(_instance(answer), target), _began(answer)),
        default=None,
    )


def _instance(answer: Answer) -> Answer:
    return member(answer, "instanceSettings") or answer


def _began(answer: Answer) -> str:
    """Return when an instance was created, or of when a backup is."""
    return str(member(answer, "backupInterval").get("endTime") or answer.get("createTime", ""))


def _backed_up(backup: Answer) -> FromBackup:
    return FromBackup(str(backup["name"]), _disk_gb(member(backup, "instanceSettings")))


def _disk_gb(instance: Answer) -> int:
    return number(settings_of(instance).get("dataDiskSizeGb"))


def _cloned(target: Where, clone: Clone, source: Answer) -> FromInstance:
    """Return the instance to clone, by what was answered about it or its backup; refuse what could never be as asked.

    Raises:
        Terminal: `InvalidValue`.
    """
    deleted_at, instance = str(source.get("instanceDeletionTime", "")), _instance(source)
    name, spec = str(source["instance"] if deleted_at else source["name"]), target.spec
    network = member(settings_of(instance), "ipConfiguration").get("privateNetwork")
    rows = (
        ("region", spec.region, instance.get("region")),
        ("databaseVersion", spec.database_version, instance.get("databaseVersion")),
        ("privateNetwork", _network(spec.private_network), _network(network)),
    )
    for field, want, have in rows:
        if have and want != have:
            text = f"a clone of instance {name} has its {field} {have}, and no change makes that {want}"
            more = "; name that one, and have it upgraded afterwards" if field == "databaseVersion" else ""
            raise Terminal("InvalidValue", text + more)
    return FromInstance(name, clone.point_in_time or "", _disk_gb(instance), deleted_at)


def _network(name: Any) -> str:
    """Return a network without its project, which the API may write by its number."""
    return str(name or "").rpartition("/global/networks/")[2]
