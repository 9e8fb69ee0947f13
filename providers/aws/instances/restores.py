"""What a new instance begins with: whose it is, and whether this namespace may have it.

A backup holds somebody's data. What carries our tags of this very namespace, by its uid, is restored. Any other one,
that of a former namespace of the same name included, needs the platform's consent, which names it; where
`allowAdoption` is set its own name will do.

Impure: it calls the SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from apis.names import CONSENT
from providers.aws.account import AwsAccount
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.aws.tag_lists import decoded_tags
from providers.external.client import Target
from providers.external.cloud_api.tags import owner_from
from providers.external.ownership import Owner
from runtime import kubectl
from runtime.conditions import timestamp
from runtime.errors import Blocked, Terminal

Where = Target[RDSInstanceParameters]
Answer = Mapping[str, Any]
Kept = tuple[list[Answer], list[Answer], list[Answer]]
"""What is kept of a claim: instances, automated backups, final snapshots."""


async def resolved(account: AwsAccount, target: Where) -> Where:
    """Return the target with a source that RDS knows by itself, and that may be used.

    Raises:
        Blocked: `ReferenceNotFound`: there is no such source, or nothing is kept of the claim.
        Terminal: `AdoptionRefused`: it is another namespace's, or nobody's. `InvalidValue`: its login is another one.
    """
    source = _own(target.restore) if target.restore else target.spec.restore_from
    if source is None:
        return target
    if source.point_in_time is not None and source.point_in_time.source_claim is not None:
        source, answer = await _of_claim(account, target, source.point_in_time)
        allowed = _may_have(target, answer)
    else:
        answer = await _named(account, source)
        allowed = account.config.allow_adoption or _may_have(target, answer)
    if not allowed:
        raise Terminal("AdoptionRefused", _refused(target, answer))
    _same_login(target.spec, answer)
    return replace(target, spec=msgspec.structs.replace(target.spec, restore_from=source))


def _own(backup: str) -> RestoreFrom:
    """Return the source that a backup's name stands for: a DbiResourceId begins with `db-` and is in capitals."""
    if backup.startswith("db-") and backup[3:].isupper():
        return RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id=backup))
    return RestoreFrom(db_snapshot_identifier=backup)


async def own_backups(account: AwsAccount, target: Where) -> tuple[str, ...]:
    """Return by name what is kept of this very resource and may be restored in its namespace, the newest first.

    That it is of this resource is said by its owner's tags, and that it is of this namespace by their uid.
    """
    snapshots = account.pages("describe_db_snapshots", "list the snapshots", "DBSnapshots")
    kept: list[tuple[str, Answer]] = [
        (_taken_at(answer), answer) async for answer in snapshots if answer.get("Status") == "available"
    ]
    kept += [(_ends_at(answer), answer) async for answer in _backups(account)]
    own = [
        (when, id_of(answer))
        for when, answer in kept
        if target.owner.owns(owner_of(answer)) and _may_have(target, answer)
    ]
    return tuple(name for _, name in sorted(own, reverse=True))


async def kept_answers(account: AwsAccount) -> AsyncIterator[Answer]:
    """Yield the snapshots that are not automated, and the automated backups of deleted instances."""
    async for snapshot in account.pages("describe_db_snapshots", "list the snapshots", "DBSnapshots"):
        if snapshot.get("Status") == "available" and snapshot.get("SnapshotType") != "automated":
            yield snapshot
    async for backup in _backups(account):
        if backup.get("Status") == "retained":
            yield backup


def taken_at(answer: Answer) -> str:
    """Return of when the data of a backup are (RFC 3339), empty where RDS does not say it."""
    taken = answer.get("OriginalSnapshotCreateTime") or answer.get("SnapshotCreateTime")
    when = taken or (answer.get("RestoreWindow") or {}).get("LatestTime")
    return timestamp(when) if isinstance(when, datetime) else ""


def _same_login(spec: RDSInstanceParameters, answer: Answer) -> None:
    """Refuse a login that the restored instance would not have: RDS keeps the administrator's name."""
    kept = answer.get("MasterUsername")
    if kept is not None and kept != spec.master_username:
        raise Terminal(
            "InvalidValue",
            f"the login of {_name_of(answer)} is {kept}, and a restore keeps it, but masterUsername is"
            f" {spec.master_username}; make it anew with {kept} (in a claim: username)",
        )


def _name_of(answer: Answer) -> str:
    snapshot = answer.get("DBSnapshotIdentifier")
    return f"snapshot {snapshot}" if snapshot else f"instance {answer.get('DBInstanceIdentifier', '')}"


async def _named(account: AwsAccount, source: RestoreFrom) -> Answer:
    """Read what a source names, wherever RDS keeps it."""
    moment = source.point_in_time
    if moment is None:
        name = source.db_snapshot_identifier or ""
        answer = await account.call("describe_db_snapshots", f"look at snapshot {name}", DBSnapshotIdentifier=name)
        answers: list[Answer] = answer.get("DBSnapshots") or []
    else:
        name = moment.source_db_instance_identifier or moment.source_dbi_resource_id or ""
        key = "DBInstanceIdentifier" if moment.source_db_instance_identifier is not None else "DbiResourceId"
        answers = [answer async for answer in _instances(account) if answer.get(key) == name]
        answers += [answer async for answer in _backups(account) if answer.get(key) == name]
    if not answers:
        raise Blocked("ReferenceNotFound", f"there is no {name} to restore from")
    return answers[0]


async def _of_claim(account: AwsAccount, target: Where, moment: PointInTime) -> tuple[RestoreFrom, Answer]:
    """Find what is kept of a claim: its instance; of a deleted one the snapshot or the backups that end later.

    What is committed between the last upload of a log, which automated backups end at, and the deletion is in the final
    snapshot alone ("Backing up and restoring", LatestRestorableTime: typically within the last five minutes). What may
    be had goes before what needs a consent.
    """
    claim = moment.source_claim or ""
    living = [answer async for answer in _instances(account) if _is_of(target.owner, claim, answer)]
    backups = [answer async for answer in _backups(account) if _is_of(target.owner, claim, answer)]
    finals = [] if moment.restore_time is not None else await _snapshots(account, target.owner, claim)
    living, backups, finals = _of_one_resource(target.owner, claim, (living, backups, finals))
    mine = [answer for answer in living if _may_have(target, answer)]
    if mine:
        return _instant(max(mine, key=_created_at), moment)
    for allowed in (True, False):
        if living and not allowed:
            return _instant(max(living, key=_created_at), moment)
        backup = max(
            (answer for answer in backups if _may_have(target, answer) is allowed), key=_created_at, default=None
        )
        final = max((answer for answer in finals if _may_have(target, answer) is allowed), key=_taken_at, default=None)
        if final is not None and (backup is None or _ends_at(backup) <= _taken_at(final)):
            return RestoreFrom(db_snapshot_identifier=str(final["DBSnapshotIdentifier"])), final
        if backup is not None:
            return _instant(backup, moment)
    when = "" if moment.restore_time is None else f" of {moment.restore_time}"
    raise Blocked("ReferenceNotFound", f"no instance and no backup{when} of claim {claim} is kept to restore from")


def _of_one_resource(owner: Owner, claim: str, kept: Kept) -> Kept:
    """Leave what is kept of one resource of the claim: of the one with this resource's name, else of the only one.

    Raises:
        Terminal: `InvalidValue`: several are kept, and none by that name: one of them may not be taken for another.
    """
    names = {former.resource for answers in kept for answer in answers if (former := owner_of(answer)) is not None}
    if len(names) > 1 and owner.resource not in names:
        raise Terminal(
            "InvalidValue",
            f"several resources of claim {claim} are kept: {', '.join(sorted(names))}, and none of them is called"
            f" {owner.resource}; name the snapshot or the instance itself in restoreFrom",
        )
    wanted = owner.resource if owner.resource in names else next(iter(names), "")
    living, backups, finals = (
        [answer for answer in answers if (former := owner_of(answer)) is not None and former.resource == wanted]
        for answers in kept
    )
    return living, backups, finals


def _instant(kept: Answer, moment: PointInTime) -> tuple[RestoreFrom, Answer]:
    instant = PointInTime(source_dbi_resource_id=str(kept["DbiResourceId"]), restore_time=moment.restore_time)
    return RestoreFrom(point_in_time=instant), kept


async def _snapshots(account: AwsAccount, owner: Owner, claim: str) -> list[Answer]:
    answers = account.pages("describe_db_snapshots", f"list the snapshots of claim {claim}", "DBSnapshots")
    ready = [
        snapshot
        async for snapshot in answers
        if snapshot.get("Status") == "available" and _is_of(owner, claim, snapshot)
    ]
    # An automated one is a part of the backups.
    return [snapshot for snapshot in ready if snapshot.get("SnapshotType") != "automated"]


def _created_at(kept: Answer) -> str:
    return str(kept.get("InstanceCreateTime", ""))


def _ends_at(backup: Answer) -> str:
    return str((backup.get("RestoreWindow") or {}).get("LatestTime", ""))


def _taken_at(snapshot: Answer) -> str:
    """Return of when its data are: a copy's own time is that of the copying."""
    return str(snapshot.get("OriginalSnapshotCreateTime") or snapshot.get("SnapshotCreateTime", ""))


def _instances(account: AwsAccount) -> AsyncIterator[Answer]:
    return account.pages("describe_db_instances", "list the instances", "DBInstances")


def _backups(account: AwsAccount) -> AsyncIterator[Answer]:
    key = "DBInstanceAutomatedBackups"
    return account.pages("describe_db_instance_automated_backups", "list the automated backups", key)


def owner_of(answer: Answer) -> Owner | None:
    """Return whose a backup or an instance is by its tags, None where they do not say it."""
    return owner_from(decoded_tags(answer.get("TagList") or ()))


def id_of(answer: Answer) -> str:
    """Return by what a consent names it: a snapshot's identifier, else the DbiResourceId."""
    return str(answer.get("DBSnapshotIdentifier") or answer.get("DbiResourceId", ""))


def _may_have(target: Where, answer: Answer) -> bool:
    """Return whether it is proven to be of this very namespace, or the platform agreed to it by its id."""
    owner = owner_of(answer)
    ours = owner is not None and owner.installation == target.owner.installation
    proven = ours and owner is not None and owner.namespace_uid == target.owner.namespace_uid != ""
    return proven or id_of(answer) in target.agreed


def _refused(target: Where, answer: Answer) -> str:
    """Return whose it may be, and who can agree to it how."""
    owner, backups = target.owner, (*target.agreed, id_of(answer))
    entries = ",".join(f"restoreFrom={backup}" for backup in backups)
    consent = kubectl.annotate(target.address, CONSENT, entries, overwrites=bool(target.agreed))
    theirs = owner_of(answer)
    if theirs is not None and (theirs.installation, theirs.namespace) == (owner.installation, owner.namespace):
        whose = f"is not proven to be of this namespace {owner.namespace}: its uid is another one, or not recorded"
    else:
        whose = "carries no tag of this namespace"
    return (
        f"{_name_of(answer)} {whose}; the platform team agrees to it by {consent}, or, for what is named by itself, by"
        " allowAdoption in the ProviderConfig"
    )


def _is_of(owner: Owner, claim: str, answer: Answer) -> bool:
    """Return whether it was made for a claim of this name in a namespace of this name."""
    former = owner_of(answer)
    return (
        former is not None
        and (former.installation, former.namespace) == (owner.installation, owner.namespace)
        and former.name == claim[:63]
    )
