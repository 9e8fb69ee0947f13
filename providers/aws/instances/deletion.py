"""Deletes instances, with a final snapshot where the policy wants one. Impure: it calls the SDK."""

from __future__ import annotations

from typing import Any

from apis.teardown import Policy
from providers.aws.account import AwsAccount
from providers.aws.instances import create, final_snapshots, states
from providers.aws.instances.backups import InstanceBackups, stem_for
from providers.aws.instances.calls import modify
from providers.aws.instances.facts import Facts
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.cloud_api.refusals import AlreadyThere, NotThere, protected
from providers.external.observation import Observed
from runtime.errors import Blocked

Seen = Observed[RDSInstanceParameters, Facts]
Where = Target[RDSInstanceParameters]


class Deletion:
    """Deletes the instances of one account.

    `names_refused` are names of final snapshots that RDS refused, as other instances' snapshots have them: it is asked
    for one of them again only once that snapshot is gone. It saves calls; without it the same happens.
    """

    def __init__(self, account: AwsAccount, backups: InstanceBackups) -> None:
        self._account = account
        self._backups = backups
        self.names_refused: set[str] = set()

    async def delete(self, target: Where, observed: Seen, policy: Policy, fence: Fence) -> None:
        """Delete the instance, under Snapshot with a final snapshot of an id of its own."""
        facts = observed.facts
        if facts.protected:
            await self._unprotect(target, observed, fence)
        parameters: dict[str, Any] = {
            "DBInstanceIdentifier": observed.name,
            "DeleteAutomatedBackups": target.spec.delete_automated_backups,
            "SkipFinalSnapshot": True,
        }
        if policy is Policy.SNAPSHOT and not _holds_nothing(target, observed):
            await self._delete_with_snapshot(target, observed, parameters, fence)
            return
        await self._delete(observed.name, fence, parameters)

    async def _delete(self, name: str, fence: Fence, parameters: dict[str, Any]) -> None:
        await self._account.call("delete_db_instance", f"delete instance {name}", fence=fence, **parameters)

    async def _delete_with_snapshot(
        self, target: Where, observed: Seen, parameters: dict[str, Any], fence: Fence
    ) -> None:
        """Delete the instance with a final snapshot of the first name that is free.

        Raises:
            Blocked: `BackupImpossible`: of its state RDS takes none, or all names are those of other snapshots.
                `CloudBusy`: it does not for a moment.
        """
        names = await self._final_names(target, observed)
        if not observed.spec.copy_tags_to_snapshot and target.spec.copy_tags_to_snapshot is None:
            await modify(self._account, observed.name, fence, CopyTagsToSnapshot=True, ApplyImmediately=False)
        for name in names:
            if name in self.names_refused and await self._is_taken(name):
                continue
            final = {**parameters, "SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": name}
            # The snapshot of another instance may have the name: no list of this one's snapshots shows it.
            try:
                await self._delete(observed.name, fence, final)
            except AlreadyThere:
                self.names_refused.add(name)
                continue
            except Blocked as refusal:
                if refusal.reason == "CloudBusy" and states.remedy(observed.state):
                    raise _no_snapshot(observed) from None
                raise
            return
        raise Blocked("BackupImpossible", final_snapshots.names_taken_message(observed.name, names))

    async def _is_taken(self, snapshot: str) -> bool:
        """Return whether a snapshot that had the name is still there."""
        try:
            await self._account.call(
                "describe_db_snapshots", f"look at snapshot {snapshot}", DBSnapshotIdentifier=snapshot
            )
        except NotThere:
            self.names_refused.discard(snapshot)
            return False
        return True

    async def _final_names(self, target: Where, observed: Seen) -> tuple[str, ...]:
        """Return the names that its final snapshot may have, in the order in which they are tried."""
        if observed.state in states.UNSNAPSHOTTABLE:
            raise _no_snapshot(observed)
        taken = await self._backups.snapshots(observed.name, observed.incarnation)
        stem = stem_for(target, observed.incarnation)
        return final_snapshots.names_for(stem, (str(snapshot["DBSnapshotIdentifier"]) for snapshot in taken))

    async def _unprotect(self, target: Where, observed: Seen, fence: Fence) -> None:
        if target.spec.deletion_protection is not False:
            raise protected(observed.name, target.address, "deletionProtection")
        await modify(self._account, observed.name, fence, DeletionProtection=False, ApplyImmediately=False)


def _no_snapshot(observed: Seen) -> Blocked:
    return Blocked("BackupImpossible", final_snapshots.refused_message(observed.name, observed.state))


def _holds_nothing(target: Where, observed: Seen) -> bool:
    """Return whether an instance failed before anybody got a login to it."""
    return observed.state in states.NEVER_WORKED and not target.incarnation and not create.with_data(target)
