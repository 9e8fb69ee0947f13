"""What a new instance begins with: whose it is, and whether this namespace may have it.

A backup holds another's data. Without `allowAdoption` only what carries our tags of the same namespace is restored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from providers.aws.account import AwsAccount
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.aws.names import decoded_tags, owner_from
from providers.cloud import Target
from providers.identity import Owner
from runtime.errors import Blocked, Terminal

Where = Target[RDSInstanceParameters]
Answer = Mapping[str, Any]


async def resolved(account: AwsAccount, target: Where) -> Where:
    """Return the target with a source that RDS knows by itself, and that may be used.

    Raises:
        Blocked: `ReferenceNotFound`: there is no such source, or nothing is kept of the claim.
        Terminal: `AdoptionRefused`: it is another namespace's, or nobody's. `InvalidValue`: its login is another one.
    """
    source = target.spec.restore_from
    if source is None:
        return target
    if source.point_in_time is not None and source.point_in_time.source_claim is not None:
        source, found = await _of_claim(account, target.owner, source.point_in_time)
    else:
        found = await _named(account, source)
        if not account.config.allow_adoption and not _is_neighbour(target.owner, found):
            raise Terminal(
                "AdoptionRefused",
                f"{_name_of(found)} carries no tag of this namespace, and the ProviderConfig has no allowAdoption; ask"
                " the platform team",
            )
    _same_login(target.spec, found)
    return replace(target, spec=msgspec.structs.replace(target.spec, restore_from=source))


def _same_login(spec: RDSInstanceParameters, found: Answer) -> None:
    """Refuse a login that the restored instance would not have: RDS keeps the administrator's name."""
    kept = found.get("MasterUsername")
    if kept is not None and kept != spec.master_username:
        raise Terminal(
            "InvalidValue",
            f"the login of {_name_of(found)} is {kept}, and a restore keeps it, but masterUsername is"
            f" {spec.master_username}; make it anew with {kept} (in a claim: username)",
        )


def _name_of(found: Answer) -> str:
    snapshot = found.get("DBSnapshotIdentifier")
    return f"snapshot {snapshot}" if snapshot else f"instance {found.get('DBInstanceIdentifier', '')}"


async def _named(account: AwsAccount, source: RestoreFrom) -> Answer:
    """Read what a source names, wherever RDS keeps it."""
    moment = source.point_in_time
    if moment is None:
        name = source.db_snapshot_identifier or ""
        answer = await account.call("describe_db_snapshots", f"look at snapshot {name}", DBSnapshotIdentifier=name)
        found: list[Answer] = answer.get("DBSnapshots") or []
    else:
        name = moment.source_db_instance_identifier or moment.source_dbi_resource_id or ""
        key = "DBInstanceIdentifier" if moment.source_db_instance_identifier is not None else "DbiResourceId"
        found = [one async for one in _instances(account) if one.get(key) == name]
        found += [one async for one in _backups(account) if one.get(key) == name]
    if not found:
        raise Blocked("ReferenceNotFound", f"there is no {name} to restore from")
    return found[0]


async def _of_claim(account: AwsAccount, owner: Owner, moment: PointInTime) -> tuple[RestoreFrom, Answer]:
    """Find what is kept of a claim: its instance; of a deleted one the snapshot or the backups that end later.

    What is committed between the last upload of a log, which automated backups end at, and the deletion is in the final
    snapshot alone ("Backing up and restoring", LatestRestorableTime: typically within the last five minutes).
    """
    claim = moment.source_claim or ""
    living = [one async for one in _instances(account) if _is_of(owner, claim, one)]
    if living:
        return _instant(max(living, key=_born), moment)
    backup = max([one async for one in _backups(account) if _is_of(owner, claim, one)], key=_born, default=None)
    final = await _newest_snapshot(account, owner, claim) if moment.restore_time is None else None
    if final is not None and (backup is None or _ends(backup) <= _taken(final)):
        return RestoreFrom(db_snapshot_identifier=str(final["DBSnapshotIdentifier"])), final
    if backup is not None:
        return _instant(backup, moment)
    when = "" if moment.restore_time is None else f" of {moment.restore_time}"
    raise Blocked("ReferenceNotFound", f"no instance and no backup{when} of claim {claim} is kept to restore from")


def _instant(kept: Answer, moment: PointInTime) -> tuple[RestoreFrom, Answer]:
    instant = PointInTime(source_dbi_resource_id=str(kept["DbiResourceId"]), restore_time=moment.restore_time)
    return RestoreFrom(point_in_time=instant), kept


async def _newest_snapshot(account: AwsAccount, owner: Owner, claim: str) -> Answer | None:
    found = account.pages("describe_db_snapshots", f"list the snapshots of claim {claim}", "DBSnapshots")
    ready = [one async for one in found if one.get("Status") == "available" and _is_of(owner, claim, one)]
    # An automated one is a part of the backups.
    return max((one for one in ready if one.get("SnapshotType") != "automated"), key=_taken, default=None)


def _born(kept: Answer) -> str:
    return str(kept.get("InstanceCreateTime", ""))


def _ends(backup: Answer) -> str:
    return str((backup.get("RestoreWindow") or {}).get("LatestTime", ""))


def _taken(snapshot: Answer) -> str:
    """Return of when its data are: a copy's own time is that of the copying."""
    return str(snapshot.get("OriginalSnapshotCreateTime") or snapshot.get("SnapshotCreateTime", ""))


def _instances(account: AwsAccount) -> AsyncIterator[Answer]:
    return account.pages("describe_db_instances", "list the instances", "DBInstances")


def _backups(account: AwsAccount) -> AsyncIterator[Answer]:
    key = "DBInstanceAutomatedBackups"
    return account.pages("describe_db_instance_automated_backups", "list the automated backups", key)


def _owner_of(answer: Answer) -> Owner | None:
    return owner_from(decoded_tags(answer.get("TagList") or ()))


def _is_neighbour(owner: Owner, answer: Answer) -> bool:
    found = _owner_of(answer)
    return found is not None and (found.installation, found.namespace) == (owner.installation, owner.namespace)


def _is_of(owner: Owner, claim: str, answer: Answer) -> bool:
    found = _owner_of(answer)
    return found is not None and _is_neighbour(owner, answer) and found.name == claim[:63]
