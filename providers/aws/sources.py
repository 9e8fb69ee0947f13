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
    """Find what is kept of a claim: its instance, the automated backups of a deleted one, a snapshot."""
    claim = moment.source_claim or ""
    for kept in (_instances, _backups):
        theirs = [one async for one in kept(account) if _is_of(owner, claim, one)]
        if theirs:
            newest = max(theirs, key=lambda one: str(one.get("InstanceCreateTime", "")))
            instant = PointInTime(source_dbi_resource_id=str(newest["DbiResourceId"]), restore_time=moment.restore_time)
            return RestoreFrom(point_in_time=instant), newest
    snapshots = account.pages("describe_db_snapshots", f"list the snapshots of claim {claim}", "DBSnapshots")
    ready = [one async for one in snapshots if one.get("Status") == "available" and _is_of(owner, claim, one)]
    if not ready or moment.restore_time is not None:
        when = "" if moment.restore_time is None else f" of {moment.restore_time}"
        raise Blocked("ReferenceNotFound", f"no instance and no backup{when} of claim {claim} is kept to restore from")
    newest = max(ready, key=lambda one: str(one.get("SnapshotCreateTime", "")))
    return RestoreFrom(db_snapshot_identifier=str(newest["DBSnapshotIdentifier"])), newest


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
