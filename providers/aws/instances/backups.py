"""Snapshots and automated backups of instances. Impure: it calls the SDK."""

from __future__ import annotations

from typing import Any

from providers.aws.account import AwsAccount
from providers.aws.instances import restores
from providers.aws.instances.final_snapshots import failed_message, stem_of
from providers.aws.models import RDSInstanceParameters
from providers.external.client import KeptBackup, Target
from runtime.errors import Blocked

_FAILED = frozenset({"failed", "incompatible-restore"})


class InstanceBackups:
    """Backups of instances."""

    def __init__(self, account: AwsAccount) -> None:
        self._account = account

    async def latest(self, target: Target[RDSInstanceParameters]) -> str:
        """Return the newest snapshot that is available; of a leaving instance only its final snapshots count.

        Raises:
            Blocked: `BackupImpossible`: the final snapshot failed, and there is no other one.
        """
        snapshots = await self.snapshots(target.name, target.incarnation)
        if target.leaving:
            stem = stem_for(target, target.incarnation)
            snapshots = [snapshot for snapshot in snapshots if str(snapshot["DBSnapshotIdentifier"]).startswith(stem)]
        available = [snapshot for snapshot in snapshots if snapshot.get("Status") == "available"]
        failed = [snapshot for snapshot in snapshots if snapshot.get("Status") in _FAILED]
        if target.leaving and failed and len(failed) == len(snapshots):
            raise Blocked("BackupImpossible", failed_message(target.name, str(failed[-1]["DBSnapshotIdentifier"])))
        available.sort(key=lambda snapshot: str(snapshot.get("SnapshotCreateTime", "")))
        return str(available[-1]["DBSnapshotIdentifier"]) if available else ""

    async def restorable(self, target: Target[RDSInstanceParameters]) -> tuple[str, ...]:
        """Return the snapshots, and automated backups by their DbiResourceId, that a lost instance may begin with."""
        return await restores.own_backups(self._account, target)

    async def kept(self) -> tuple[KeptBackup, ...]:
        """List the snapshots that people or a deletion made, and the automated backups of what is gone."""
        kept: list[KeptBackup] = []
        async for answer in restores.kept_answers(self._account):
            owner = restores.owner_of(answer)
            if owner is not None:
                database = str(answer.get("DBInstanceIdentifier", ""))
                size_gib, taken_at = int(answer.get("AllocatedStorage") or 0), restores.taken_at(answer)
                kept.append(KeptBackup(restores.id_of(answer), owner, database, taken_at, size_gib=size_gib))
        return tuple(kept)

    async def snapshots(self, name: str, incarnation: str) -> list[dict[str, Any]]:
        """List the snapshots of an instance; of this incarnation where one is named."""
        answers = self._account.pages(
            "describe_db_snapshots", f"list the snapshots of {name}", "DBSnapshots", DBInstanceIdentifier=name
        )
        return [
            snapshot
            async for snapshot in answers
            if not incarnation or snapshot.get("DbiResourceId", incarnation) == incarnation
        ]


def stem_for(target: Target[RDSInstanceParameters], incarnation: str) -> str:
    """Return what the names of the final snapshots of an incarnation begin with."""
    return stem_of(target.name, incarnation, target.spec.final_db_snapshot_identifier_prefix)
