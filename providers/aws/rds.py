"""RDS instances through one account: reads, changes, final snapshots, logins. Impure: it calls the SDK."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from apis.teardown import Policy
from providers.aws import birth, changes, listing, sources, states, translate
from providers.aws.account import AwsAccount
from providers.aws.config import refusal
from providers.aws.errors import AlreadyThere, NotThere
from providers.aws.facts import Facts
from providers.aws.listing import Listed
from providers.aws.models import RDSInstanceParameters
from providers.aws.names import (
    decoded_tags,
    final_failed,
    final_refused,
    names_for,
    owner_from,
    renamed,
    stem_of,
    taken_by_others,
)
from providers.aws.tags import Tagged
from providers.external.client import Clients, Endpoint, Fence, Operation, Sweep, Target
from providers.external.credential import Credential, Login
from providers.external.login import Server, try_login
from providers.external.observation import Absent, Change, Found, Observed, Present
from providers.external.ownership import Owner
from runtime.errors import Blocked, Conflict, Transient

if TYPE_CHECKING:
    from providers.aws.logins import InstanceLogins

Seen = Observed[RDSInstanceParameters]
Where = Target[RDSInstanceParameters]
_LISTED_FOR_SECONDS = 30.0
_UNREACHABLE_FOR_SECONDS = 60.0
_SNAPSHOT_FAILED = frozenset({"failed", "incompatible-restore"})


class RdsInstances:
    """ExternalClient, AccountClient, Logins and Backups of instances."""

    def __init__(self, account: AwsAccount) -> None:
        self._account = account
        self._endpoints: dict[str, tuple[str, int, str]] = {}
        self._tag_marks: dict[str, str] = {}
        self._looks: dict[str, dict[str, str]] = {}
        self._listed: tuple[float, list[Listed]] = (float("-inf"), [])
        self._owners: dict[str, Owner] = {}
        self._unreachable: dict[tuple[str, int, str], float] = {}
        # Names of final snapshots that RDS refused, as another instance's snapshot has them.
        self._taken: set[str] = set()
        # A hundred births at once search one list, not each its own.
        self._searching = asyncio.Lock()

    @classmethod
    def clients(cls, account: AwsAccount) -> Clients[RDSInstanceParameters]:
        """Return what serves instances; RDS has no operations: the instance's own state tells."""
        instances = cls(account)
        return Clients(instances, instances, instances, instances)

    @property
    def _logins(self) -> InstanceLogins:
        from providers.aws.logins import InstanceLogins  # noqa: PLC0415 - loads psycopg, which one login does without

        return InstanceLogins(self)

    async def whoami(self) -> str:
        """Return the account that the credentials reach."""
        return await self._account.whoami()

    async def observe(self, target: Where) -> Present[RDSInstanceParameters] | Absent:
        """Read one instance with all of its tags."""
        what = f"look at instance {target.name}"
        try:
            answer = await self._account.call("describe_db_instances", what, DBInstanceIdentifier=target.name)
        except NotThere:
            await self._prove_absent(target)
            self._endpoints.pop(target.name, None)
            self._looks.pop(target.name, None)
            return Absent()
        found = answer.get("DBInstances") or []
        if len(found) != 1:
            raise Transient(f"cannot {what}: the answer names {len(found)} instances")
        one = found[0]
        members, tagged = one.get("TagList"), self._tagged(target.name, str(one.get("DBInstanceArn", "")))
        # An answer without a list of them says nothing about its tags.
        tags = await tagged.read() if members is None else decoded_tags(members)
        seen = translate.observed(one, tags, target)
        self._tag_marks[target.name] = listing.mark_of_tags(tags)
        # By resource: one that two of them name was seen when both of them saw it.
        looks = self._looks.setdefault(target.name, {})
        looks[target.owner.identity] = f"{listing.mark_of(one)}/{self._tag_marks[target.name]}"
        if seen.facts.address:
            where = (seen.facts.address, seen.facts.port, seen.facts.database)
            self._endpoints[target.name] = where
            if not seen.usable:
                # It answers nobody while it is worked on, and may be reached right afterwards.
                self._unreachable.pop(where, None)
        return Present(await self._logins.seen(target, seen) if translate.alternates(target) else seen)

    async def _prove_absent(self, target: Where) -> None:
        """Believe that what was there is gone when the right account, asked by RDS's own id of it, shows none.

        A name may be given away by ModifyDBInstance (NewDBInstanceIdentifier); the DbiResourceId stays for ever.

        Raises:
            Terminal: `AccountChanged`.
            Blocked: `DatabaseRenamed`: it lives under another name.
        """
        if not target.incarnation:
            return
        await self._account.whoami()
        what = f"look for instance {target.incarnation}"
        by_id = [{"Name": "dbi-resource-id", "Values": [target.incarnation]}]
        async for answer in self._account.pages("describe_db_instances", what, "DBInstances", Filters=by_id):
            present = str(answer["DBInstanceIdentifier"])
            if answer["DbiResourceId"] == target.incarnation and present == target.name:
                raise Transient(f"instance {target.name} was not found, and is listed; looking again")
            if answer["DbiResourceId"] == target.incarnation:
                raise Blocked("DatabaseRenamed", renamed(target.name, present, target.address))

    def _tagged(self, name: str, arn: str) -> Tagged:
        return Tagged(self._account, f"instance {name}", arn)

    async def observe_all(self) -> Sweep:
        """List the region's instances; an answer without a list of tags leaves what is known of them."""
        items, found, tag_marks = {}, [], {}
        async for one in self._account.pages("describe_db_instances", "list the instances", "DBInstances"):
            short = listing.listed(one)
            tag_marks[short.name] = listing.tags_mark(one) or self._tag_marks.get(short.name, "")
            items[short.name] = f"{listing.mark_of(one)}/{tag_marks[short.name]}"
            found.append(short)
        self._tag_marks, self._listed = tag_marks, (time.monotonic(), found)
        self._looks = {name: looks for name, looks in self._looks.items() if name in items}
        looks = {name: " ".join(sorted(set(each.values()))) for name, each in self._looks.items()}
        owners = {short.name: short.owner for short in found if short.owner is not None}
        # A list without tags says nothing about owners: those that were known are kept.
        self._owners = owners | {
            short.name: self._owners[short.name] for short in found if not short.tagged and short.name in self._owners
        }
        return Sweep(items, complete=True, looks=looks, owners=self._owners)

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """Search the region for instances of the same claim under another identity; a recent list will do."""
        async with self._searching:
            if time.monotonic() - self._listed[0] > _LISTED_FOR_SECONDS:
                await self.observe_all()
        found = []
        for one in self._listed[1]:
            former = one.owner if one.tagged else owner_from(await self._tagged(one.name, one.arn).read())
            if former is not None and former.precedes(owner):
                found.append(Found(one.name, one.incarnation, former))
        return tuple(found)

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Make the instance; one that is there and ours is what an interrupted create made."""
        if translate.alternates(target):
            credential = Credential(target.spec.master_username, target.own_password)
        operation, parameters = birth.call_for(await sources.resolved(self._account, target), credential)
        try:
            await self._account.call(operation, f"create instance {target.name}", fence=fence, **parameters)
        except AlreadyThere:
            seen = await self.observe(target)
            if isinstance(seen, Absent):
                raise Transient(f"instance {target.name} is there and not shown yet") from None
            if not target.owner.owns(seen.observed.owner):
                raise Conflict(f"instance {target.name} appeared meanwhile; looking again") from None
        return None

    async def update(self, target: Where, observed: Seen, changed: tuple[Change, ...], fence: Fence) -> None:
        """Make the changes: tags, then all the rest by one call."""
        await self._tagged(observed.name, observed.facts.arn).change(changed, fence)
        parameters = changes.request(target.spec, observed, changed)
        if parameters is not None:
            await self._modify(observed, fence, **parameters)
        if any(changes.is_of_logins(change) for change in changed):
            await self._logins.put_in_order(target, observed, changed, fence)

    async def _modify(self, observed: Seen, fence: Fence, **parameters: Any) -> None:
        await self._account.call("modify_db_instance", f"change instance {observed.name}", fence=fence, **parameters)

    async def set_password(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Give a login its password by SQL; the administrator's RDS sets at once, without touching its queue.

        Where Secrets Manager was made its keeper that ends by the same call (ModifyDBInstance,
        ManageMasterUserPassword: turned off, MasterUserPassword must be given).
        """
        if credential.username != target.spec.master_username:
            await self._logins.set_password(target, observed, credential, fence)
            return
        await self._set_administrators(observed.name, credential.password, fence, managed=observed.facts.kept_elsewhere)

    async def _set_administrators(self, name: str, password: str, fence: Fence, *, managed: bool) -> None:
        parameters: dict[str, Any] = {"DBInstanceIdentifier": name, "MasterUserPassword": password}
        if managed:
            parameters["ManageMasterUserPassword"] = False
        what = f"change instance {name}"
        await self._account.call("modify_db_instance", what, fence=fence, ApplyImmediately=False, **parameters)

    async def login(self, target: Where, credential: Credential) -> Login:
        """Try a login as an application would; where the provider cannot reach the instance, nothing is learnt.

        Raises:
            Terminal: `InvalidValue`: a restored instance lets the login in and has no such database.
        """
        place = self.place(target)
        if place is None or self._account.config.login_check == "Off":
            return Login.UNKNOWN
        server, database = place
        answer, code = await try_login(server, database, credential)
        self.reached(target, is_reached=answer is not Login.UNKNOWN or bool(code))
        birth.refuse_database(target, database, code)
        return answer

    def place(self, target: Where) -> tuple[Server, str] | None:
        """Return server and database to log in to; None where nothing answers, or nothing proves that it is RDS."""
        where = self._endpoints.get(target.name)
        if where is None or not self._account.ca or self._unreachable.get(where, float("-inf")) > time.monotonic():
            return None
        host, port, database = where
        return Server(host, port, self._account.ca), database

    def reached(self, target: Where, *, is_reached: bool) -> None:
        """Remember whether an instance answered: one that does not is left alone for a while."""
        where = self._endpoints.get(target.name)
        if where is not None and not is_reached:
            self._unreachable[where] = time.monotonic() + _UNREACHABLE_FOR_SECONDS
        elif where is not None:
            self._unreachable.pop(where, None)

    async def disable(self, target: Where, username: str, fence: Fence) -> None:
        """Take a former login away: one of two by SQL; of the administrator, which stays, the password."""
        fence.check()
        if username != target.spec.master_username:
            await self._logins.retire(target, username, fence)
        elif translate.alternates(target):
            await self.take_administrator(target, fence, managed=False)

    async def take_administrator(self, target: Where, fence: Fence, *, managed: bool) -> None:
        """Give the administrator the password that the provider alone knows."""
        await self._set_administrators(target.name, target.own_password, fence, managed=managed)

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Write our tags onto an instance that a person named."""
        tagged, spec = self._tagged(observed.name, observed.facts.arn), target.spec
        await tagged.take(target.owner, spec.tags, observed.facts.tags, fence)

    async def release(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Say in its tags that the instance was let go."""
        del target
        await self._tagged(observed.name, observed.facts.arn).release(fence)

    async def backup_of(self, target: Where) -> str:
        """Return the newest snapshot that is available; of a leaving one only its final snapshots count.

        Raises:
            Blocked: `BackupImpossible`: the final snapshot failed, and there is no other one.
        """
        listed = await self._snapshots(target.name, target.incarnation)
        if target.leaving:
            stem = self._stem(target, target.incarnation)
            listed = [one for one in listed if str(one["DBSnapshotIdentifier"]).startswith(stem)]
        ready = [one for one in listed if one.get("Status") == "available"]
        failed = [one for one in listed if one.get("Status") in _SNAPSHOT_FAILED]
        if target.leaving and failed and len(failed) == len(listed):
            raise Blocked("BackupImpossible", final_failed(target.name, str(failed[-1]["DBSnapshotIdentifier"])))
        ready.sort(key=lambda one: str(one.get("SnapshotCreateTime", "")))
        return str(ready[-1]["DBSnapshotIdentifier"]) if ready else ""

    async def restorable(self, target: Where) -> tuple[str, ...]:
        """Return the snapshots, and automated backups by their DbiResourceId, that a lost instance may begin with."""
        return await sources.own_backups(self._account, target)

    async def _snapshots(self, name: str, incarnation: str) -> list[dict[str, Any]]:
        found = self._account.pages(
            "describe_db_snapshots", f"list the snapshots of {name}", "DBSnapshots", DBInstanceIdentifier=name
        )
        return [one async for one in found if not incarnation or one.get("DbiResourceId", incarnation) == incarnation]

    @staticmethod
    def _stem(target: Where, incarnation: str) -> str:
        return stem_of(target.name, incarnation, target.spec.final_db_snapshot_identifier_prefix)

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete the instance, under Snapshot with a final snapshot of an id of its own."""
        if observed is None:
            return None
        facts: Facts = observed.facts
        if facts.protected:
            await self._unprotect(target, observed, fence)
        parameters: dict[str, Any] = {
            "DBInstanceIdentifier": observed.name,
            "DeleteAutomatedBackups": target.spec.delete_automated_backups,
            "SkipFinalSnapshot": True,
        }
        if policy is Policy.SNAPSHOT and not self._holds_nothing(target, observed):
            await self._delete_with_snapshot(target, observed, parameters, fence)
            return None
        await self._account.call("delete_db_instance", f"delete instance {observed.name}", fence=fence, **parameters)
        return None

    async def _delete_with_snapshot(
        self, target: Where, observed: Seen, parameters: dict[str, Any], fence: Fence
    ) -> None:
        """Delete the instance with a final snapshot of the first name that is free.

        Raises:
            Blocked: `BackupImpossible`: of its state RDS takes none, or all names are those of other snapshots.
                `CloudBusy`: it does not for a moment.
        """
        names = await self._final(target, observed)
        if not observed.spec.copy_tags_to_snapshot and target.spec.copy_tags_to_snapshot is None:
            await self._modify(
                observed, fence, DBInstanceIdentifier=observed.name, CopyTagsToSnapshot=True, ApplyImmediately=False
            )
        for name in names:
            if name in self._taken and await self._is_taken(name):
                continue
            final = {**parameters, "SkipFinalSnapshot": False, "FinalDBSnapshotIdentifier": name}
            # The snapshot of another instance may have the name: no list of this one's snapshots shows it.
            try:
                await self._account.call("delete_db_instance", f"delete instance {observed.name}", fence=fence, **final)
            except AlreadyThere:
                self._taken.add(name)
                continue
            except Blocked as refusal:
                if refusal.reason == "CloudBusy" and states.advice(observed.state):
                    raise Blocked("BackupImpossible", final_refused(observed.name, observed.state)) from None
                raise
            return
        raise Blocked("BackupImpossible", taken_by_others(observed.name, names))

    async def _is_taken(self, snapshot: str) -> bool:
        """Look whether a snapshot that had the name is still there: RDS is asked to write only once it is gone."""
        try:
            await self._account.call(
                "describe_db_snapshots", f"look at snapshot {snapshot}", DBSnapshotIdentifier=snapshot
            )
        except NotThere:
            self._taken.discard(snapshot)
            return False
        return True

    @staticmethod
    def _holds_nothing(target: Where, observed: Seen) -> bool:
        """Tell whether an instance failed before anybody was given a login to it."""
        return observed.state in states.NEVER_WORKED and not target.incarnation and not birth.with_data(target)

    async def _unprotect(self, target: Where, observed: Seen, fence: Fence) -> None:
        if target.spec.deletion_protection is not False:
            text = f"instance {observed.name} is protected from deletion; set deletionProtection to false to let it go"
            raise Blocked("DeleteBlocked", text)
        await self._modify(
            observed, fence, DBInstanceIdentifier=observed.name, DeletionProtection=False, ApplyImmediately=False
        )

    async def _final(self, target: Where, observed: Seen) -> tuple[str, ...]:
        """Return the names that its final snapshot may have, in the order in which they are tried."""
        if observed.state in states.UNSNAPSHOTTABLE:
            raise Blocked("BackupImpossible", final_refused(observed.name, observed.state))
        taken = await self._snapshots(observed.name, observed.incarnation)
        stem = self._stem(target, observed.incarnation)
        return names_for(stem, (str(one["DBSnapshotIdentifier"]) for one in taken))

    def endpoint(self, target: Where) -> Endpoint:
        """Return how an application reaches the instance, without a host while RDS names none."""
        host, port, database = self._endpoints.get(target.name, ("", 0, ""))
        ca = self._account.ca
        return Endpoint(host, port, database, "verify-full" if ca else "require", ca)

    def objection(self, spec: RDSInstanceParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such an instance."""
        return refusal(
            self._account.config.limits,
            instance_class=spec.db_instance_class,
            storage_gib=max(spec.allocated_storage, spec.max_allocated_storage or 0),
            publicly_accessible=bool(spec.publicly_accessible),
        )

    def advice(self) -> str:
        """Say what a missing authority means."""
        if self._account.ca:
            return ""
        return "without caBundleRef connections are encrypted, and nobody checks that it is RDS who answers"
