"""Databases inside instances: observed, created, deleted; a change of charset or collation is none.

Impure: it sends requests.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

import msgspec

from apis.teardown import Policy
from providers.external.client import Clients, Fence, NotCreated, Operation, Target
from providers.external.cloud_api.inside import Untagged, prove_server, refuse_idle_server
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Phase, Present
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount, operation_of
from providers.gcp.inside.listing import InsideAccount, proven_owner
from providers.gcp.inside.servers import Servers, refuse_at_work, standing_of
from providers.gcp.instances.instance_list import owner_in
from providers.gcp.instances.states import is_at_rest
from providers.gcp.models import CloudSQLDatabaseParameters
from providers.gcp.names import own_name
from runtime.errors import Transient

Where = Target[CloudSQLDatabaseParameters]
Seen: TypeAlias = Observed[CloudSQLDatabaseParameters, None]
"""A database has no facts that `forProvider` has no field for."""

_OF_THE_CLOUD = frozenset({"postgres"})


class _Answer(msgspec.Struct, frozen=True):
    """What a look at a database was answered, and when its instance was created."""

    charset: str
    collation: str
    created: str


class SqlDatabases(Untagged[CloudSQLDatabaseParameters]):
    """ExternalClient of databases; a database is called `<instance>/<name>`, and carries no label."""

    def __init__(
        self, account: GcpAccount, inside: InsideAccount[CloudSQLDatabaseParameters], servers: Servers
    ) -> None:
        self._account = account
        self._inside = inside
        self._servers = servers

    async def observe(self, target: Where) -> Present[CloudSQLDatabaseParameters, None] | Absent:
        """Observe one database.

        Raises:
            ServerNotOwned: Its instance is not this namespace's; its databases were not looked at.
            Blocked: Its instance is at work, stopped, failed or gone.
        """
        server, name = _place(target)
        try:
            refuse_at_work(server, await self._servers.enter(server, target))
            answer = await self._account.call(
                "databases.get", f"look at database {name} of {server}", instance=server, database=name
            )
        except NotThere:
            await self._prove_absent(target, server, name)
            self._inside.forget(target.name)
            return Absent()
        instance = self._account.instances.of(server)
        created = "" if instance is None else str(instance.get("createTime", ""))
        seen = _Answer(str(answer.get("charset", "")), str(answer.get("collation", "")), created)
        await self._account.database_ids.list_made(*_place(target))
        return self._present(target, seen, await proven_owner(self._account, "CREATE_DATABASE", target))

    async def observe_listed(self, target: Where, answer: bytes) -> Present[CloudSQLDatabaseParameters, None] | None:
        """Observe a database by what a look at it was answered, in the instance that a list shows."""
        seen = msgspec.json.decode(answer, type=_Answer)
        instance = self._inside.resting_instance(target.name, seen.created)
        if instance is None or target.unanswered is not None:
            return None
        prove_server(_place(target)[0], owner_in(instance), target)
        return self._present(target, seen)

    def _present(
        self, target: Where, seen: _Answer, owner: Owner | None = None
    ) -> Present[CloudSQLDatabaseParameters, None]:
        self._inside.record_observed(target.name)
        spec = CloudSQLDatabaseParameters(
            instance=target.spec.instance,
            name=own_name(target.name),
            charset=seen.charset or None,
            collation=seen.collation or None,
        )
        at_provider = {key: value for key in ("charset", "collation") if (value := getattr(seen, key))}
        # Cloud SQL gives a database no id of its own: it is the one of this name, and of the oid that a login listed.
        server, name = _place(target)
        incarnation, earlier_ids = self._account.database_ids.incarnation(server, name, target.name, target.incarnation)
        observed = Observed(
            target.name, incarnation, owner, Phase.READY, spec, None, at_provider, earlier_ids=earlier_ids
        )
        # Of an instance that no list shows nothing says whether it is the same one later.
        return Present(replace(observed, answer=msgspec.json.encode(seen) if seen.created else b""))

    async def contents(self, server: str) -> Collection[str]:
        """List the databases of an instance, but that of Cloud SQL itself."""
        answer = await self._account.call("databases.list", f"list the databases of {server}", instance=server)
        names = {str(database.get("name", "")) for database in answer.get("items") or ()}
        return sorted(f"{server}/{name}" for name in names - _OF_THE_CLOUD)

    async def _prove_absent(self, target: Where, server: str, name: str) -> None:
        """Believe that a database is absent where its instance serves: one that is stopped shows none of them.

        With an instance that is gone everything inside went: a database that is being deleted is gone as well, and of
        any other the instance itself says that it was lost.
        """
        try:
            instance = await self._servers.look(server)
        except NotThere:
            await self._servers.prove_gone(server, target)
            return
        refuse_idle_server(standing_of(server, instance))
        if not is_at_rest(instance):
            raise Transient(f"instance {server} does not run; database {name} is not known to be gone")

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Create the database; raises NotCreated where one of the name is there since."""
        del credential
        server, name = _place(target)
        spec = target.spec
        body = {"name": name, "charset": spec.charset, "collation": spec.collation}
        body = {key: value for key, value in body.items() if value is not None}
        self._account.database_ids.record_made(server, name)
        try:
            answer = await self._account.call(
                "databases.insert", f"create database {name} of {server}", fence=fence, body=body, instance=server
            )
        except AlreadyThere:
            raise NotCreated(f"database {name} of {server}") from None
        self._account.log.record_answer(answer, target.name)
        return operation_of(answer, "Create")

    async def update(
        self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Return nothing: all of a database's fields are fixed at its creation."""
        del target, observed, changes, fence
        return None

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete the database; sessions in it hold that up."""
        del policy
        if observed is None:
            return None
        server, name = _place(target)
        try:
            answer = await self._account.call(
                "databases.delete", f"delete database {name} of {server}", fence=fence, instance=server, database=name
            )
        except NotThere:
            return None
        return operation_of(answer, "Delete")


def _place(target: Where) -> tuple[str, str]:
    """Return the instance of a database, and its name there."""
    return target.name.partition("/")[0], own_name(target.name)


def clients(account: GcpAccount) -> Clients[CloudSQLDatabaseParameters, None]:
    """Return what serves databases in one project."""
    inside: InsideAccount[CloudSQLDatabaseParameters] = InsideAccount(account)
    external = SqlDatabases(account, inside, Servers(account))
    return Clients(external, inside, operations=account, listed=external, changes=inside, contents=external)
