"""Cloud SQL instances of one project: observed, created, changed, deleted. Impure: it sends requests."""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from apis.teardown import Policy
from providers.external.client import Clients, Fence, Operation, Target
from providers.external.cloud_api.refusals import AlreadyThere, NotThere, protected
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Present
from providers.gcp.account import GcpAccount, operation_of
from providers.gcp.instances import changes, create, translate
from providers.gcp.instances.backups import InstanceBackups
from providers.gcp.instances.facts import Answer, Facts
from providers.gcp.instances.instance_list import InstanceList
from providers.gcp.instances.restores import FromBackup, FromInstance, Restores, Source
from providers.gcp.instances.translate import Seen
from providers.gcp.listed import decoded_answer, encoded_answer
from providers.gcp.models import CloudSQLInstanceParameters
from providers.gcp.names import RELEASED, owner_from, owner_labels
from providers.gcp.operation_list import read_operations
from providers.gcp.refusals import Denied
from runtime import clock
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

Where = Target[CloudSQLInstanceParameters]


class SqlInstances:
    """ExternalClient of instances; what it observes it records in `instances`, so that an equal list wakes nobody."""

    def __init__(self, account: GcpAccount, instances: InstanceList, backups: InstanceBackups) -> None:
        self._account = account
        self._instances = instances
        self._restores = Restores(account, backups)

    async def observe(self, target: Where) -> Present[CloudSQLInstanceParameters, Facts] | Absent:
        """Observe one instance.

        Google answers 403 for what is gone as for what may not be seen: a whole list distinguishes them.
        """
        as_of = self._account.instances.now()
        try:
            answer = await self._account.call("instances.get", f"look at instance {target.name}", instance=target.name)
        except (NotThere, Denied) as refusal:
            # What was there is believed gone on two answers, of the very project that it was in.
            if isinstance(refusal, Denied) or target.incarnation:
                await self._prove_absent(target, refusal)
            self._instances.record_absent(target.name)
            self._account.instances.forget(target.name)
            return Absent(is_deleted=await self._is_deleted(target))
        encoded = encoded_answer(answer)
        self._account.instances.record(target.name, encoded, as_of)
        seen = replace(self._observed(target, answer), answer=encoded)
        return Present(replace(seen, owner=target.owner) if await self._is_own_clone(target, seen) else seen)

    async def _is_deleted(self, target: Where) -> bool:
        """Return whether the project's operations show that what is to be deleted was."""
        if not target.is_new:
            return False
        with suppress(Failure):
            await read_operations(self._account)
        return self._account.log.is_deleted(target.name)

    async def _is_own_clone(self, target: Where, seen: Seen) -> bool:
        """Return whether an instance is the clone that was made for a resource, and bears its source's labels yet.

        It has the name by rule, which nobody chose, and the project's operations name who made it last.
        """
        source = target.spec.restore_from
        is_clone = source is not None and source.clone is not None and target.is_by_rule
        if not is_clone or target.owner.owns(seen.owner):
            return False
        await read_operations(self._account)
        return self._account.log.is_created_by_us(target.name)

    async def observe_listed(self, target: Where, answer: bytes) -> Present[CloudSQLInstanceParameters, Facts]:
        """Observe an instance by what a list or a look answered about it."""
        return Present(self._observed(target, decoded_answer(answer)))

    def _observed(self, target: Where, answer: Answer) -> Seen:
        self._instances.record_observed(target.name, target.owner.identity, answer)
        return translate.observed(answer, target)

    async def _prove_absent(self, target: Where, refusal: NotThere | Denied) -> None:
        if not await self._instances.is_listed(target.name):
            return
        if isinstance(refusal, Denied):
            raise refusal
        raise Transient(f"instance {target.name} was not found, and is listed; looking again")

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Create the instance with its labels, empty or from a backup; one that is there and ours is already made.

        A clone has its labels by the first patch after it.

        Raises:
            Blocked: `NameTaken`: nothing is there, and the name may not be used yet: Google kept names of deleted
                instances for up to a week.
        """
        del credential
        source = await self._restores.source_of(target)
        if source is not None:
            target = create.with_disk_of(target, source.disk_gb)
            refusal = self._instances.refusal(target.spec)
            if refusal is not None:
                raise Terminal(*refusal)
        try:
            answer = await self._make(target, source, fence)
        except AlreadyThere:
            observation = await self.observe(target)
            if isinstance(observation, Present):
                if target.owner.owns(observation.observed.owner):
                    return None
                raise Conflict(f"instance {target.name} appeared meanwhile; looking again") from None
            raise Blocked(
                "NameTaken",
                f"no instance {target.name} is there, and Cloud SQL does not give its name away yet: that of a deleted"
                " one may stay reserved for up to a week; it is tried again by itself",
            ) from None
        return operation_of(answer, "Create")

    async def _make(self, target: Where, source: Source | None, fence: Fence) -> Answer:
        """Create the instance; from a backup it begins with its own settings, as a clone with those of its source."""
        call = functools.partial(self._account.call, fence=fence)
        body, name = create.body_for(target), target.name
        match source:
            case None:
                return await call("instances.insert", f"create instance {name}", body=body)
            case FromBackup(name=backup):
                action = f"restore instance {name} from {backup}"
                body = {"backup": backup, "restoreInstanceSettings": body}
                return await call("instances.restoreBackup", action, body=body, instance=name)
            case FromInstance():
                action = f"clone instance {source.name} into {name}"
                body = {"cloneContext": create.clone_context(name, source.point_in_time, source.deleted_at)}
                return await call("instances.clone", action, body=body, instance=source.name)
            case never:
                assert_never(never)

    async def update(
        self, target: Where, observed: Seen, changed: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes by one patch, which names the version of the settings that they were decided on."""
        body = changes.patch(target.spec, observed, changed)
        return await self._patch(observed, body, "change", fence) if body else None

    async def _patch(self, observed: Seen, body: dict[str, Any], verb: str, fence: Fence) -> Operation:
        answer = await self._account.call(
            "instances.patch", f"{verb} instance {observed.name}", fence=fence, body=body, instance=observed.name
        )
        return operation_of(answer, "Update")

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        """Write our labels onto an instance that a person named."""
        labels: dict[str, str | None] = {**(target.spec.user_labels or {}), **owner_labels(target.owner)}
        if RELEASED in observed.facts.labels:
            labels[RELEASED] = None
        return await self._patch(observed, _labelled(observed, labels), "take over", fence)

    async def release(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        """Write into a label that the instance was released, in Unix time in seconds, beside its owner's labels."""
        labels: dict[str, str | None] = {RELEASED: str(int(clock.now().timestamp()))}
        if not target.owner.owns(owner_from(observed.facts.labels)):
            labels |= owner_labels(target.owner)
        return await self._patch(observed, _labelled(observed, labels), "release", fence)

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete the instance, under Snapshot with a final backup that is kept for `finalBackupTtlDays`.

        Raises:
            Blocked: `DeleteBlocked`: it is protected, and the spec wants that or says nothing of it.
        """
        if observed is None:
            return None
        if observed.facts.protected:
            return await self._unprotect(target, observed, fence)
        final: dict[str, Any] = {}
        if policy is Policy.SNAPSHOT:
            final = {
                "enable_final_backup": True,
                "final_backup_ttl_days": target.spec.final_backup_ttl_days,
                "final_backup_description": f"final backup of {observed.name} by Fairlead",
            }
        try:
            answer = await self._account.call(
                "instances.delete", f"delete instance {observed.name}", fence=fence, instance=observed.name, **final
            )
        except NotThere:
            return None
        return operation_of(answer, "Delete")

    async def _unprotect(self, target: Where, observed: Seen, fence: Fence) -> Operation:
        """Take the protection away, an operation of its own; the deletion follows once it has ended."""
        if target.spec.deletion_protection_enabled is not False:
            raise protected(observed.name, target.address, "deletionProtectionEnabled")
        body = {"settings": {"deletionProtectionEnabled": False, **_lock(observed)}}
        return await self._patch(observed, body, "unprotect", fence)


def _labelled(observed: Seen, labels: dict[str, str | None]) -> dict[str, Any]:
    return {"settings": {"userLabels": labels, **_lock(observed)}}


def _lock(observed: Seen) -> dict[str, str]:
    version = observed.facts.settings_version
    return {"settingsVersion": version} if version else {}


def clients(account: GcpAccount) -> Clients[CloudSQLInstanceParameters, Facts]:
    """Return what serves instances in one project."""
    instances = InstanceList(account)
    backups = InstanceBackups(account)
    external = SqlInstances(account, instances, backups)
    return Clients(external, instances, backups=backups, operations=account, listed=external, keeps=backups)
