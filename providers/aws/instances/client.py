"""RDS instances through one account: observed, created, changed, deleted. Impure: it calls the SDK."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from apis.names import EXTERNAL_NAME
from apis.teardown import Policy
from providers.aws.account import AwsAccount
from providers.aws.instances import changes, create, listing, restores, translate
from providers.aws.instances.backups import InstanceBackups
from providers.aws.instances.deletion import Deletion
from providers.aws.instances.facts import Facts
from providers.aws.instances.instance_list import InstanceList
from providers.aws.instances.logins import InstanceLogins
from providers.aws.models import RDSInstanceParameters
from providers.aws.tag_lists import decoded_tags
from providers.aws.tags import Tagged
from providers.external.client import Clients, Fence, Operation, Target
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Present
from providers.external.reachability import Reachability
from runtime import kubectl
from runtime.errors import Blocked, Conflict, Failure, Transient

Seen = Observed[RDSInstanceParameters, Facts]
Where = Target[RDSInstanceParameters]
_MINUTES_OF_EVENTS, _DELETED = 60, "DB instance deleted"


class RdsInstances:
    """ExternalClient of instances.

    What it observes it records in `instances`, so that a list that shows the same wakes nobody, and in `reachability`.
    """

    def __init__(
        self, account: AwsAccount, instances: InstanceList, logins: InstanceLogins, reachability: Reachability
    ) -> None:
        self._account = account
        self._instances = instances
        self._logins = logins
        self._reachability = reachability
        self._deletion = Deletion(account, InstanceBackups(account))

    async def observe(self, target: Where) -> Present[RDSInstanceParameters, Facts] | Absent:
        """Observe one instance with all of its tags."""
        action = f"look at instance {target.name}"
        try:
            answer = await self._account.call("describe_db_instances", action, DBInstanceIdentifier=target.name)
        except NotThere:
            await self._prove_absent(target)
            self._instances.record_absent(target.name)
            return Absent(is_deleted=await self._is_deleted(target))
        members = answer.get("DBInstances") or []
        if len(members) != 1:
            raise Transient(f"cannot {action}: the answer names {len(members)} instances")
        instance = members[0]
        listed_tags, tagged = instance.get("TagList"), self._tagged(target.name, str(instance.get("DBInstanceArn", "")))
        # An answer without a list of them says nothing about its tags.
        tags = await tagged.read() if listed_tags is None else decoded_tags(listed_tags)
        observed = await self._observed(target, instance, tags)
        # What lacks its tags is no answer that may stand for another look.
        return Present(observed if listed_tags is None else replace(observed, answer=listing.encoded_answer(instance)))

    async def observe_listed(self, target: Where, answer: bytes) -> Present[RDSInstanceParameters, Facts] | None:
        """Observe an instance by what a list or a look answered about it; None where that lacks its tags."""
        instance = listing.decoded_answer(answer)
        if instance.get("TagList") is None:
            return None
        return Present(await self._observed(target, instance, decoded_tags(instance["TagList"])))

    async def _observed(self, target: Where, instance: listing.Answer, tags: dict[str, str]) -> Seen:
        observed = translate.observed(instance, tags, target)
        self._instances.record_observed(target.name, target.owner.identity, instance, tags)
        observed = replace(observed, endpoint=translate.endpoint_of(observed.facts, self._account.ca))
        if not observed.usable:
            # It answers nobody while it is worked on, and may be reached right afterwards.
            self._reachability.forget(observed.endpoint)
        if translate.alternates(target):
            observed = await self._logins.roles.observed(target, observed)
        return observed

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
        action = f"look for instance {target.incarnation}"
        by_id = [{"Name": "dbi-resource-id", "Values": [target.incarnation]}]
        async for answer in self._account.pages("describe_db_instances", action, "DBInstances", Filters=by_id):
            present = str(answer["DBInstanceIdentifier"])
            if answer["DbiResourceId"] == target.incarnation and present == target.name:
                raise Transient(f"instance {target.name} was not found, and is listed; looking again")
            if answer["DbiResourceId"] == target.incarnation:
                raise Blocked("DatabaseRenamed", _renamed_message(target.name, present, target.address))

    async def _is_deleted(self, target: Where) -> bool:
        """Return whether RDS's events show that what is to be deleted was; False where they may not be read."""
        if not target.is_new:
            return False
        action = f"read the events of instance {target.name}"
        events: list[dict[str, Any]]
        call = self._account.call(
            "describe_events", action, SourceType="db-instance", SourceIdentifier=target.name,
            EventCategories=["creation", "deletion"], Duration=_MINUTES_OF_EVENTS,
        )  # fmt: skip
        try:
            events = (await call).get("Events") or []
        except Failure:
            return False
        # RDS-EVENT-0003, "Amazon RDS event categories and event messages".
        return bool(events) and max(events, key=lambda event: event["Date"])["Message"].startswith(_DELETED)

    def _tagged(self, name: str, arn: str) -> Tagged:
        return Tagged(self._account, f"instance {name}", arn)

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Create the instance.

        Raises:
            Conflict: One is there, that of an interrupted create or of an earlier object of the claim, with a password
                of its own: whose it is, and by which password it lets in, is decided on a look at it.
        """
        if translate.alternates(target):
            credential = Credential(target.spec.master_username, target.own_password)
        operation, parameters = create.call_for(await restores.resolved(self._account, target), credential)
        try:
            await self._account.call(operation, f"create instance {target.name}", fence=fence, **parameters)
        except AlreadyThere:
            raise Conflict(f"instance {target.name} is there already; looking again") from None
        return None

    async def update(self, target: Where, observed: Seen, changed: tuple[Change, ...], fence: Fence) -> None:
        """Make the changes: tags, then all the rest by one call."""
        await self._tagged(observed.name, observed.facts.arn).change(changed, fence)
        parameters = changes.request(target.spec, observed, changed)
        if parameters is not None:
            action = f"change instance {observed.name}"
            await self._account.call("modify_db_instance", action, fence=fence, **parameters)
        if any(changes.is_of_logins(change) for change in changed):
            await self._logins.roles.put_in_order(target, observed, changed, fence)

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Write our tags onto an instance that a person named."""
        tagged, spec = self._tagged(observed.name, observed.facts.arn), target.spec
        await tagged.take(target.owner, spec.tags, observed.facts.tags, fence)

    async def release(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Write into its tags that the instance was released."""
        del target
        await self._tagged(observed.name, observed.facts.arn).release(fence)

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete the instance, under Snapshot with a final snapshot of an id of its own."""
        if observed is not None:
            await self._deletion.delete(target, observed, policy, fence)
        return None


@dataclass(frozen=True, slots=True)
class InstanceClients:
    """What serves instances in one account."""

    external: RdsInstances
    account: InstanceList
    logins: InstanceLogins
    backups: InstanceBackups
    reachability: Reachability


def instance_clients(account: AwsAccount) -> InstanceClients:
    """Return the clients of instances, with what they share."""
    reachability, instances, backups = Reachability(), InstanceList(account), InstanceBackups(account)
    logins = InstanceLogins(account, reachability)
    external = RdsInstances(account, instances, logins, reachability)
    return InstanceClients(external, instances, logins, backups, reachability)


def clients(account: AwsAccount) -> Clients[RDSInstanceParameters, Facts]:
    """Return what serves instances; RDS has no operations: the instance's own state says when it is done."""
    made = instance_clients(account)
    try_login = made.reachability.try_login
    return Clients(
        made.external,
        made.account,
        made.logins,
        made.backups,
        try_login=try_login,
        listed=made.external,
        keeps=made.backups,
    )


def _renamed_message(name: str, now: str, address: str) -> str:
    """Return the message of an instance that lives on under another name; `address` is its resource's for kubectl."""
    command = kubectl.annotate(address, EXTERNAL_NAME, now, overwrites=True)
    return (
        f"instance {name} was renamed and is called {now} now; nothing is changed or let go. Rename it back to {name};"
        f" or, to go on with it under that name: {command}"
    )
