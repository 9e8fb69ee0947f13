"""Final and other backups of instances, which outlive them. Impure: it sends requests.

https://cloud.google.com/sql/docs/postgres/backup-recovery/backups, resource `projects.backups`: a final backup is made
by instances.delete and has the type FINAL; `instanceSettings` is the instance as it was.
"""

from __future__ import annotations

from typing import Any

from providers.external.client import KeptBackup, Target
from providers.gcp.account import GcpAccount
from providers.gcp.instances.facts import Answer, member
from providers.gcp.instances.instance_list import owner_in
from providers.gcp.models import CloudSQLInstanceParameters
from runtime.errors import Blocked, Transient

Where = Target[CloudSQLInstanceParameters]
_DONE, _FAILED, _FINAL, _ON_DEMAND = "SUCCESSFUL", "FAILED", "FINAL", "ON_DEMAND"
_BYTES_OF_A_GIB = 2**30


class InstanceBackups:
    """Backups of instances."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account

    async def latest(self, target: Where) -> str:
        """Return the newest backup that is whole; of a leaving instance only its final backup counts.

        Raises:
            Blocked: `BackupImpossible`: the final backup failed, and there is no other one.
        """
        backups = await self._of(target.name, target.incarnation)
        if target.leaving:
            backups = [backup for backup in backups if backup.get("type") == _FINAL]
        whole = [backup for backup in backups if backup.get("state") == _DONE]
        if target.leaving and not whole and any(backup.get("state") == _FAILED for backup in backups):
            said = str(member(backups[0], "error").get("message", "")) or "no cause was given"
            raise Blocked("BackupImpossible", f"the final backup of {target.name} failed: {said}"[:400])
        return str(whole[0]["name"]) if whole else ""

    async def restorable(self, target: Where) -> tuple[str, ...]:
        """List the backups that a lost instance may begin with: those of this very instance, made for this claim."""
        backups = await self._of(target.name, target.incarnation)
        return tuple(
            str(backup["name"]) for backup in backups if backup.get("state") == _DONE and _is_own(backup, target)
        )

    async def whole(self) -> list[dict[str, Any]]:
        """Return the backups of the project that are whole, those of deleted instances too."""
        backups = await self._listed("list the backups of the project")
        return [backup for backup in backups if backup.get("state") == _DONE]

    async def kept(self) -> tuple[KeptBackup, ...]:
        """List the backups that are not a living instance's own."""
        return tuple(
            KeptBackup(
                str(backup["name"]),
                owner,
                str(backup.get("instance", "")).rpartition("/")[2].rpartition(":")[2],
                _made_at(backup),
                str(backup.get("expiryTime", "")),
                _gib(backup.get("maxChargeableBytes")),
            )
            for backup in await self.whole()
            if backup.get("type") in (_FINAL, _ON_DEMAND)
            and (owner := owner_in(member(backup, "instanceSettings"))) is not None
        )

    async def _of(self, name: str, incarnation: str) -> list[dict[str, Any]]:
        """Return the backups of an instance, the newest first; of this incarnation where one is named."""
        backups = await self._listed(f"list the backups of {name}", filter=f"instance:{name}")
        own = [backup for backup in backups if _is_of_instance(backup, name, incarnation)]
        return sorted(own, key=_made_at, reverse=True)

    async def _listed(self, action: str, **chosen: str) -> list[dict[str, Any]]:
        parent = f"projects/{self._account.project}"
        backups: list[dict[str, Any]] = []
        async for page in self._account.pages("backups.list", action, "backups", parent=parent, **chosen):
            if not page.is_whole:
                raise Transient("a region of the project did not answer; which backups it holds is not known")
            backups += page.items
        return backups


def _is_own(backup: Answer, target: Where) -> bool:
    return target.owner.owns(owner_in(member(backup, "instanceSettings")))


def _is_of_instance(backup: Answer, name: str, incarnation: str) -> bool:
    """Compare as well what a filter may not have understood; the settings distinguish two instances of one name."""
    created = str(member(backup, "instanceSettings").get("createTime", ""))
    is_named = str(backup.get("instance", "")).rpartition("/")[2].rpartition(":")[2] == name
    return is_named and (not incarnation or not created or created == incarnation)


def _made_at(backup: Answer) -> str:
    return str(member(backup, "backupInterval").get("endTime", ""))


def _gib(written: object) -> int:
    """Return GiB, rounded up, of a number of bytes that Google writes as a text; 0 for none."""
    text = str(written or "")
    return -(-int(text) // _BYTES_OF_A_GIB) if text.isdecimal() else 0
