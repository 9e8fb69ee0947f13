"""Users inside instances: observed, created, given passwords, deleted; and by which address they reach the instance.

Impure: it sends requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from apis.teardown import Policy
from providers.external.client import Clients, Fence, NotCreated, Operation
from providers.external.cloud_api.inside import Untagged, prove_server, refuse_idle_server
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Phase, Present, digest
from providers.external.ownership import Owner
from providers.external.reachability import Reachability
from providers.gcp.account import GcpAccount, operation_of
from providers.gcp.inside import logins
from providers.gcp.inside.listing import InsideAccount, proven_owner
from providers.gcp.inside.logins import Facts, Seen, Where
from providers.gcp.inside.servers import Servers, active_authority, refuse_at_work, standing_of
from providers.gcp.instances.facts import Answer, member, settings_of
from providers.gcp.instances.instance_list import owner_in
from providers.gcp.instances.states import is_at_rest, what_a_password_lacks
from providers.gcp.models import CloudSQLUserParameters
from runtime.errors import Blocked, Conflict, Terminal, Transient

_ROLES = "databaseRoles"

_OF_THE_CLOUD = frozenset({"postgres"})


class _Answer(msgspec.Struct, frozen=True):
    """What a look at a resource's users was answered: they, their instance's authorities, and when it was created."""

    users: dict[str, dict[str, Any]]
    active: str
    authorities: str
    created: str
    lacks_database: bool = False


class SqlUsers(Untagged[CloudSQLUserParameters]):
    """ExternalClient of users; a user is called `<instance>/<name>`, and carries no label."""

    def __init__(self, account: GcpAccount, inside: UserAccount, servers: Servers, reachability: Reachability) -> None:
        self._account = account
        self._inside = inside
        self._servers = servers
        self._reachability = reachability

    async def observe(self, target: Where) -> Present[CloudSQLUserParameters, Facts] | Absent:
        """Observe the users of PostgreSQL that stand for a resource.

        Raises:
            ServerNotOwned: Its instance is not this namespace's; its users were not listed.
            Blocked: Its instance is stopped, failed or gone.
            Terminal: `InvalidValue`: one of its databaseRoles is a login of somebody else's; a password opens nothing.
        """
        server = _server(target)
        try:
            return await self._look(server, target)
        except NotThere:
            # With an instance everything inside went; of one that was lost the instance itself says so.
            await self._servers.prove_gone(server, target)
            self._inside.forget(target.name)
            return Absent()

    async def _look(self, server: str, target: Where) -> Present[CloudSQLUserParameters, Facts] | Absent:
        instance = await self._servers.enter(server, target)
        authorities = await self._servers.authorities(server, instance)
        try:
            listed = await self._users(server)
        except Blocked:
            refuse_at_work(server, instance)
            raise
        _check_roles(target, listed)
        users = {name: _kept(listed[name]) for name in logins.names_of(target.spec) if name in listed}
        if not users:
            lacks = _what_a_login_lacks(instance, target)
            if lacks and not target.leaving:
                raise Terminal("InvalidValue", lacks)
            # An absence is proven by a look of now.
            instance = await self._servers.look(server)
            refuse_idle_server(standing_of(server, instance))
            if not is_at_rest(instance):
                raise Transient(f"instance {server} does not run; its users are not known to be gone")
            self._inside.forget(target.name)
            return Absent()
        created = str(instance.get("createTime", ""))
        lacks_database = not target.leaving and await self._lacks_database(target)
        seen = _Answer(users, digest(active_authority(instance)), authorities, created, lacks_database)
        owner = _owner(instance, target) or await proven_owner(self._account, "CREATE_USER", target)
        return self._present(target, instance, seen, owner)

    async def observe_listed(self, target: Where, answer: bytes) -> Present[CloudSQLUserParameters, Facts] | None:
        """Observe the users by what a look at them was answered, in the instance that a list shows."""
        seen = msgspec.json.decode(answer, type=_Answer)
        instance = self._inside.resting_instance(target.name, seen.created)
        if instance is None or target.unanswered is not None or digest(active_authority(instance)) != seen.active:
            return None
        prove_server(_server(target), owner_in(instance), target)
        return self._present(target, instance, seen, _owner(instance, target))

    def _present(
        self, target: Where, instance: Answer, seen: _Answer, owner: Owner | None
    ) -> Present[CloudSQLUserParameters, Facts]:
        self._inside.record_observed(target.name)
        present = {name: tuple(user.get(_ROLES) or ()) for name, user in seen.users.items()}
        endpoint = logins.endpoint_of(instance, seen.authorities, target.spec)
        self._account.database_ids.record_endpoint(endpoint, _server(target))
        missing = logins.missing_database(target, str(target.spec.database)) if seen.lacks_database else ""
        is_at_work, lacks = not is_at_rest(instance), missing or _what_a_login_lacks(instance, target)
        if is_at_work:
            # It answers nobody while it is worked on, and may be reached right afterwards.
            self._reachability.forget(endpoint)
        first = seen.users[next(iter(present))]
        observed = Observed(
            name=target.name,
            incarnation=target.name,
            owner=owner,
            phase=Phase.BUSY if is_at_work else Phase.READY,
            spec=_projected(first, target.spec, present),
            facts=Facts(present),
            at_provider=_at_provider(first, present),
            state=str(instance.get("state", "")) if is_at_work else "out of reach" if lacks else "",
            remedy=lacks,
            usable=not (is_at_work or lacks),
            answer=msgspec.json.encode(seen),
        )
        return Present(replace(observed, endpoint=endpoint))

    async def _lacks_database(self, target: Where) -> bool:
        """Return whether a restored instance has no database of the name that is published; any other is an object."""
        spec = target.spec
        if not spec.from_backup or spec.database_ref is not None or not spec.database:
            return False
        server, name = _server(target), spec.database
        try:
            await self._account.call("databases.get", f"look at {name} of {server}", instance=server, database=name)
        except NotThere:
            return True
        return False

    async def _users(self, server: str) -> dict[str, dict[str, Any]]:
        answer = await self._account.call("users.list", f"list the users of {server}", instance=server)
        return {str(user.get("name", "")): user for user in answer.get("items") or ()}

    async def contents(self, server: str) -> Collection[str]:
        """List the users of an instance, but that of Cloud SQL itself."""
        return sorted(f"{server}/{name}" for name in (await self._users(server)).keys() - _OF_THE_CLOUD)

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Create the user: its login with a password, or the user of IAM.

        Cloud SQL takes the creation of a user who is there for a change of the password, and says nothing of it: so the
        users are listed right before.

        Raises:
            NotCreated: There is one of the name since.
            Blocked: `ReferenceNotFound`: a restored instance lacks the database that is to be published.
        """
        if await self._lacks_database(target):
            raise Blocked("ReferenceNotFound", logins.missing_database(target, str(target.spec.database)))
        name = credential.username or target.spec.name
        if name in await self._users(_server(target)):
            raise NotCreated(f"user {name} of {_server(target)}")
        try:
            return await self._insert(target, name, credential.password, fence)
        except AlreadyThere:
            raise NotCreated(f"user {name} of {_server(target)}") from None

    async def _insert(self, target: Where, name: str, password: str, fence: Fence) -> Operation:
        spec, server = target.spec, _server(target)
        body: dict[str, Any] = {"name": name} if logins.has_password(spec) else {"name": name, "type": spec.type}
        if password:
            body["password"] = password
        if spec.database_roles:
            body[_ROLES] = list(spec.database_roles)
        answer = await self._account.call(
            "users.insert", f"create user {name} of {server}", fence=fence, body=body, hide=(password,), instance=server
        )
        self._account.log.record_answer(answer, target.name)
        return operation_of(answer, "Create")

    async def update(
        self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Grant the database roles that are missing to the first user that lacks one; the others follow."""
        wanted = set(target.spec.database_roles or ())
        for name, roles in sorted(observed.facts.users.items()):
            if changes and not wanted <= set(roles):
                return await self._update(target, name, "grant roles to", fence, database_roles=sorted(wanted))
        return None

    async def _update(
        self, target: Where, name: str, verb: str, fence: Fence, *, password: str = "", **fields: Any
    ) -> Operation:
        server = _server(target)
        body = {"name": name, **({"password": password} if password else {})}
        answer = await self._account.call(
            "users.update",
            f"{verb} user {name} of {server}",
            fence=fence,
            body=body,
            hide=(password,),
            instance=server,
            name=name,
            **fields,
        )
        return operation_of(answer, "Update")

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete one of the users that are there; of two the other follows, as it is still observed."""
        del policy
        if observed is None:
            return None
        server, name = _server(target), min(observed.facts.users)
        try:
            answer = await self._account.call(
                "users.delete", f"delete user {name} of {server}", fence=fence, instance=server, name=name
            )
        except NotThere:
            return None
        return operation_of(answer, "Delete")

    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> Operation | None:
        """Set the password of a login: one of two is created where it is not there."""
        if credential.username in observed.facts.users:
            return await self._update(
                target, credential.username, "set the password of", fence, password=credential.password
            )
        try:
            return await self._insert(target, credential.username, credential.password, fence)
        except AlreadyThere:
            raise Conflict(f"user {credential.username} appeared meanwhile; looking again") from None

    async def disable(self, target: Where, observed: Seen, username: str, fence: Fence) -> Operation | None:
        """Shut out a former login: its password becomes one that the provider alone knows; what it owns stays."""
        fence.check()
        if username not in observed.facts.users or username not in logins.names_of(target.spec):
            return None
        return await self._update(target, username, "retire", fence, password=target.own_password)


def _what_a_login_lacks(instance: Answer, target: Where) -> str:
    """Return what a login by password lacks at its instance, empty for nothing and for users of IAM."""
    settings = settings_of(instance)
    mode = member(settings, "ipConfiguration").get("sslMode")
    lacks = (
        what_a_password_lacks(mode, settings.get("connectorEnforcement")) if logins.has_password(target.spec) else ""
    )
    return f"instance {_server(target)} has {lacks}" if lacks else ""


def _server(target: Where) -> str:
    return target.name.partition("/")[0]


def _check_roles(target: Where, listed: Collection[str]) -> None:
    """Refuse a database role that is a login of somebody else's: whoever has it can do all that its owner can.

    Raises:
        Terminal: `InvalidValue`.
    """
    own = {name for spec in (target.spec, *target.siblings) for name in logins.names_of(spec)}
    foreign = sorted(set(target.spec.database_roles or ()) & set(listed) - own)
    if foreign and not target.leaving:
        raise Terminal(
            "InvalidValue",
            f"databaseRoles names {foreign[0]}, which is a login and none of this claim's; name a role without a login"
            " of its own, or a CloudSQLUser of the same claim",
        )


def _kept(user: Mapping[str, Any]) -> dict[str, Any]:
    """Return what counts of a user that was listed."""
    return {key: user[key] for key in ("type", "iamEmail", _ROLES) if key in user}


def _owner(instance: Answer, target: Where) -> Owner | None:
    """Return whose a user is: it carries no label, and is ours by the resource's own record.

    One that came with a backup is this resource's where the spec says so, and the instance was made here for this very
    namespace.
    """
    made_for = owner_in(instance)
    if not target.spec.from_backup or made_for is None or made_for.installation != target.owner.installation:
        return None
    return target.owner if made_for.namespace_uid == target.owner.namespace_uid != "" else None


def _projected(
    user: Mapping[str, Any], spec: CloudSQLUserParameters, present: Mapping[str, tuple[str, ...]]
) -> CloudSQLUserParameters:
    """Return the roles that each of the logins has."""
    common = set.intersection(*(set(roles) for roles in present.values()))
    return CloudSQLUserParameters(
        instance=spec.instance,
        name=spec.name,
        type=user.get("type", logins.BUILT_IN),
        database_roles=tuple(sorted(common)),
    )


def _at_provider(user: Mapping[str, Any], present: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    shown = {"type": str(user.get("type", logins.BUILT_IN)), "users": sorted(present), "iamEmail": user.get("iamEmail")}
    return {key: value for key, value in shown.items() if value}


class UserAccount(InsideAccount[CloudSQLUserParameters]):
    """Account of users."""

    def refusal(self, spec: CloudSQLUserParameters) -> tuple[str, str] | None:
        """Return why nobody may ask for such a user."""
        return logins.is_refused(spec)


def clients(account: GcpAccount) -> Clients[CloudSQLUserParameters, Facts]:
    """Return what serves users in one project."""
    reachability = Reachability(account.database_ids.try_login)
    inside = UserAccount(account)
    users = SqlUsers(account, inside, Servers(account), reachability)
    return Clients(
        users,
        inside,
        users,
        operations=account,
        try_login=reachability.try_login,
        listed=users,
        changes=inside,
        contents=users,
    )
