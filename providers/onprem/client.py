"""The on-prem cloud: a PostgreSQL server of the platform team, reached as its administrator, who is no superuser.

Impure: it speaks SQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import psycopg

from apis.teardown import Policy
from providers.external.client import ExternalList, Fence, NotCreated, Operation, Target
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.diff import diff
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.metering import UNMETERED, Meter
from providers.external.observation import Absent, Change, Observed, Predecessor, Present, renamed_text
from providers.external.ownership import Owner
from providers.external.provider import NO_ACCOUNT, RecordedAccount
from providers.external.sql.scram import verifier
from providers.external.sql.session import ConnectionSettings, Session, roots_of
from providers.onprem import catalog, removal
from providers.onprem.administrator import admin_login
from providers.onprem.adoption import take_ownership
from providers.onprem.facts import Facts, Inside, Row, broken_rules, kept_rights
from providers.onprem.incarnations import finished_before, oid_of, random_of
from providers.onprem.models import PostgresDatabaseParameters, ProviderConfigSpec
from providers.onprem.refusal import refusal_of
from providers.onprem.refused_statements import Refusals
from providers.onprem.server_checks import About, authority_of, refuse_server, server_of
from providers.onprem.session import OVER_TLS, Sessions, Transport
from providers.onprem.statements import (
    Statement,
    by_change,
    create_database,
    password_statements,
    refuse_stranger,
    retirement,
    shut_logins,
    statements,
    tags_of,
)
from providers.onprem.translate import observed, row_of, target_names, wanted
from runtime import clock, randomness
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

Seen = Observed[PostgresDatabaseParameters, Facts]
Where = Target[PostgresDatabaseParameters]

# SQLSTATE too_many_connections (PostgreSQL manual, appendix A).
_TOO_MANY_CONNECTIONS = "53300"


class OnPremCloud:
    """ExternalClient, Account, Strangers, Logins and Backups; what is done here is done when its call returns."""

    def __init__(self, config: ProviderConfigSpec, sessions: Sessions, about: About, meter: Meter = UNMETERED) -> None:
        self.meter = meter
        self._config = config
        self._sessions = sessions
        self._about = about

    async def whoami(self) -> str:
        """Return the server's system_identifier; a server in recovery is not the one to ask."""
        async with self._sessions.own("ask the server who it is") as session:
            about = await server_of(session)
        if about.recovery:
            raise Transient(f"server {self._config.host} is in recovery and takes no change")
        return about.account

    async def observe(self, target: Where) -> Present[PostgresDatabaseParameters, Facts] | Absent:
        """Read catalogs and ownership of one database, then what only a session within it sees."""
        facts = await self._facts(target)
        if facts.database is None:
            remains = facts.row is not None and target.owner.owns(_owner(facts))
            recorded = finished_before(facts.row, target.incarnation) if remains else ""
            return Absent(remains, facts.renamed if remains or facts.row is None else "", recorded)
        database = facts.database
        if database.allows:
            facts = msgspec.structs.replace(facts, inside=await self._inside(target))
        is_ours = target.owner.owns(_owner(facts)) and facts.row is not None and facts.row.state != "retired"
        is_recorded = facts.row is None and oid_of(target.incarnation) == database.oid
        kept = kept_rights(wanted(target), facts, is_ours=is_ours, is_recorded=is_recorded)
        seen = observed(database, msgspec.structs.replace(facts, kept=kept), target)
        incomplete = database.allows and facts.inside is None
        return Present(replace(seen, endpoint=self.endpoint(target.name), incomplete=incomplete))

    async def list(self) -> ExternalList:
        """List the databases of our table with a digest of all that the catalogs say about each."""
        async with self._sessions.own("list the databases") as session:
            rows = await session.rows(catalog.ALL)
        items = {name: f"{oid}/{digest}" for name, state, *_, oid, digest in rows if state != "released"}
        owners = {name: Owner(*owner) for name, _, *owner, oid, _ in rows if oid is not None}
        return ExternalList(items, complete=True, owners=owners)

    async def strangers(self) -> Mapping[str, Owner | None]:
        """List the databases that no resource is at work on, but those that every server has."""
        async with self._sessions.own("list the databases of others") as session:
            rows = await session.rows(catalog.STRANGERS)
        return {str(name): None if owner[0] is None else Owner(*map(str, owner)) for name, *owner in rows}

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """Search the ownership table for the same claim under another identity."""
        async with self._sessions.own("search for predecessors") as session:
            rows = await session.rows(catalog.PREDECESSORS, tags_of(owner))
        return tuple(Predecessor(name, oid, Owner(*rest)) for name, oid, *rest in rows)

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Write the row, make the roles and the database closed, put all in order, then open it."""
        row = row_of(target)
        async with self._sessions.own(f"create database {target.name}") as session:
            if not await session.change(catalog.CLAIM, fence, row):
                raise Terminal("NotOwned", f"{target.name} is recorded as another's; nothing was made")
            facts = await self._facts(target, session)
            if facts.database is not None and not facts.is_row_of_database:
                raise NotCreated(target.name)
            for statement in _owner_role(target, facts):
                await session.change(statement.sql, fence)
            if facts.database is None:
                await self._make(target, session, fence)
            await session.change(catalog.RECORD, fence, {**row, "state": "creating"})
        await self._in_order(target, credential, fence)
        return None

    async def _make(self, target: Where, session: Session, fence: Fence) -> None:
        template = self._config.template_database
        try:
            await session.change(create_database(target.spec, target_names(target), template=template).sql, fence)
        except psycopg.errors.InvalidCatalogName:
            text = (
                f"the ProviderConfig's templateDatabase {template} does not exist on {self._config.host}; make it there"
            )
            raise Terminal("InvalidValue", text) from None
        except psycopg.errors.ObjectInUse:
            text = f"template database {template} is in use; it is copied once nobody is connected to it"
            raise Blocked("CloudBusy", text) from None

    async def _in_order(self, target: Where, credential: Credential, fence: Fence) -> None:
        """Close, grant, set the password, open; then, with a session inside, finish and say ready."""
        await self._set(target, credential, fence)
        for last in (False, True):
            seen = await self.observe(target)
            if isinstance(seen, Absent):
                raise Conflict(f"database {target.name} vanished while it was made")
            facts = seen.observed.facts
            changes = (*diff(target.spec, seen.observed.spec), *broken_rules(wanted(target), facts))
            now = tuple(change for change in changes if last or change.path != ("ownership", "state"))
            await self._run(target, facts, now, fence)

    async def update(
        self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Run the statements of these changes on this incarnation."""
        await self._same(target, observed)
        await self._run(target, observed.facts, changes, fence)
        return None

    async def _run(self, target: Where, facts: Facts, changes: tuple[Change, ...], fence: Fence) -> None:
        rules, action = wanted(target), f"change database {target.name}"
        todo, refusals = by_change(changes, rules), Refusals(action)
        async with self._sessions.own(action) as session:
            if any(change.path == ("ownership", "oid") for change in changes):
                await self._record(session, target, "creating", fence, kept=facts.kept if facts.row is None else None)
            shut = shut_logins(changes, rules.names)
            await refusals.attempt(session, removal.end_sessions(session, shut, fence))
            for change, group in todo:
                await refusals.run(session, change, (statement for statement in group if not statement.inside), fence)
            await refusals.attempt(session, removal.end_sessions(session, shut, fence))
        inside = [(change, [statement for statement in group if statement.inside]) for change, group in todo]
        if any(within for _, within in inside):
            try:
                async with self._sessions.inside(target.name, action) as session:
                    for change, within in inside:
                        await refusals.run(session, change, within, fence)
            except (Terminal, Blocked, Transient) as failure:
                # A tenant may fill its own connection limit.
                refusals.failures.append(failure)
        refusals.raise_if_any()
        if any(change.path == ("ownership", "state") for change in changes):
            async with self._sessions.own(action) as session:
                await self._record(session, target, "ready", fence)

    async def _record(
        self, session: Session, target: Where, state: str, fence: Fence, *, kept: tuple[str, ...] | None = None
    ) -> None:
        random = randomness.token_hex(6)
        recorded = {"oid": oid_of(target.incarnation) or None, "recorded": random_of(target.incarnation) or random}
        rights = None if kept is None else list(kept)
        row = {**row_of(target), **recorded, "state": state, "random": random, "kept": rights}
        await session.change(catalog.RECORD_WHOLE, fence, row)

    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> Operation | None:
        """Give a login its verifier; the login is made when absent."""
        await self._same(target, observed)
        await self._set(target, credential, fence)
        return None

    async def _set(self, target: Where, credential: Credential, fence: Fence) -> None:
        rules = wanted(target)
        refuse_stranger(credential.username, rules.names)
        facts = await self._facts(target)
        todo: list[Statement] = []
        if facts.role(credential.username) is None:
            todo += statements((Change(("roles", credential.username), "present", None),), rules)
        todo += password_statements(
            credential.username, verifier(credential.password, randomness.token_bytes(16)), rules
        )
        async with self._sessions.own(f"set the password of {credential.username}") as session:
            for statement in todo:
                await session.change(statement.sql, fence)

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try a login as an application does, unless the server is known to take none.

        A role whose connection limit is 0 is refused like one that may not log in: no connection that ends helps it.
        """
        answer = await self._sessions.try_login(endpoint, credential)
        if answer.code != _TOO_MANY_CONNECTIONS:
            return answer
        async with self._sessions.own(f"read the connection limit of {credential.username}") as session:
            limits = await session.rows(catalog.LIMIT, {"login": credential.username})
        return answer._replace(login=Login.REFUSED) if limits == [(0,)] else answer

    async def probe(self) -> None:
        """Try a login of the administrator's own. Raises Failure."""
        await self._sessions.probe()

    async def disable(self, target: Where, observed: Seen, username: str, fence: Fence) -> None:
        """Disable a former login, take it out of the owner role and end its sessions."""
        del observed
        todo = retirement(username, target_names(target))
        async with self._sessions.own(f"switch off login {username}") as session:
            # Before, as an open transaction of its own may hold the role's row; after, as it may have come back.
            await removal.end_sessions(session, (username,), fence)
            for statement in todo:
                await session.change(statement.sql, fence)
            await removal.end_sessions(session, (username,), fence)

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Write our row for a database that a person named; whoever has rights on it keeps them."""
        await self._same(target, observed)
        action, facts = f"adopt database {target.name}", observed.facts
        async with self._sessions.own(action) as session:
            owners = await take_ownership(session, self._sessions.inside(target.name, action), facts, fence)
            await self._record(session, target, "creating", fence, kept=(*facts.kept, *owners))

    async def release(self, target: Where, observed: Seen, fence: Fence) -> None:
        """Write into the row that the database was released."""
        await self._same(target, observed)
        async with self._sessions.own(f"release database {target.name}") as session:
            await session.change(catalog.RELEASE, fence, {**tags_of(target.owner), "database": target.name})

    async def latest(self, target: Where) -> str:
        """Return under which name the database is kept: retired by us, or renamed by somebody; empty when it is not."""
        async with self._sessions.own("look for a retired database") as session:
            rows = await session.rows(catalog.RETIRED, {**tags_of(target.owner), "database": target.name})
        return str(rows[0][0]) if rows else ""

    async def restorable(self, target: Where) -> tuple[str, ...]:
        """Return that there are none: those of a server that somebody else runs are not known."""
        del target
        return ()

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Retire or drop, with a row that names this very database."""
        if observed is not None:
            await self._same(target, observed)
        names = target_names(target)
        oid = None if observed is None else oid_of(observed.incarnation)
        invalid = observed is not None and not observed.usable
        doomed = removal.Doomed(names, tags_of(target.owner), oid, invalid)
        async with self._sessions.own(f"remove database {target.name}") as session:
            facts = await self._facts(target, session)
            if observed is None and facts.renamed:
                raise Blocked("DatabaseRenamed", renamed_text(target.name, facts.renamed))
            if observed is None and facts.row is not None and facts.row.state == "retiring":
                await removal.finish_retiring(session, doomed, fence)
                return None
            if observed is not None and facts.row is None and oid_of(target.incarnation) == oid:
                # Lost with the table, as by a restore of it; the resource itself remembers this very database.
                await self._record(session, target, "ready", fence)
            if observed is not None and policy is Policy.SNAPSHOT:
                date = clock.now().strftime("%Y%m%d")
                await removal.retire(self._sessions, session, doomed, date, fence)
            else:
                await removal.drop(self._sessions, session, doomed, fence)
        return None

    def endpoint(self, database: str) -> Endpoint:
        """Return how an application reaches a database of the server."""
        return replace(self._sessions.settings.endpoint, database=database)

    def refusal(self, spec: PostgresDatabaseParameters) -> tuple[str, str] | None:
        """Return why this server cannot serve such a spec."""
        return refusal_of(spec, self._about.major, self._config)

    def warnings(self) -> tuple[str, ...]:
        """Name the databases that every role may connect to."""
        if not self._about.exposed:
            return ()
        which = ", ".join(self._about.exposed)
        return (f"every role may connect to {which}: REVOKE CONNECT ON DATABASE ... FROM PUBLIC there",)

    async def _same(self, target: Where, seen: Seen) -> None:
        async with self._sessions.own(f"look at database {target.name}") as session:
            rows = await session.rows(catalog.OID, {"database": target.name})
        row: Row | None = seen.facts.row
        if rows != [(oid_of(seen.incarnation), row.incarnation if row is not None else "")]:
            raise Conflict(f"database {target.name} is not the one that was seen; looking again")

    async def _facts(self, target: Where, session: Session | None = None) -> Facts:
        names = target_names(target)
        parameters = {
            "database": names.database,
            "roles": [names.owner, *names.logins],
            "oid": oid_of(target.incarnation) or None,
        }
        if session is not None:
            return self._read((await session.rows(catalog.FACTS, parameters))[0][0])
        async with self._sessions.own(f"look at database {names.database}") as own:
            return self._read((await own.rows(catalog.FACTS, parameters))[0][0])

    def _read(self, answer: Mapping[str, object]) -> Facts:
        about = self._about
        return msgspec.convert(
            {**answer, "admin": about.admin, "server_version": about.version, "major": about.major}, Facts
        )

    async def _inside(self, target: Where) -> Inside | None:
        try:
            async with self._sessions.inside(target.name, f"look into database {target.name}") as session:
                answer = (await session.rows(catalog.INSIDE))[0][0]
        except Failure:
            # A tenant may fill its own connection limit; the catalogs were read, so the database is there.
            return None
        return msgspec.convert(answer, Inside)


def _owner(facts: Facts) -> Owner | None:
    row = facts.row
    return None if row is None else Owner(row.installation, row.identity, row.claim)


def _owner_role(target: Where, facts: Facts) -> tuple[Statement, ...]:
    """The owner role alone: its grants on the database come once there is one."""
    rules = wanted(target)
    if facts.role(rules.names.owner) is not None:
        return ()
    made = statements((Change(("roles", rules.names.owner), "present", None),), rules)
    return tuple(statement for statement in made if " ON DATABASE " not in statement.sql)


@asynccontextmanager
async def connect(
    config: ProviderConfigSpec,
    secret_data: Mapping[str, Mapping[str, str]],
    recorded: RecordedAccount = NO_ACCOUNT,
    meter: Meter = UNMETERED,
    transport: Transport = OVER_TLS,
) -> AsyncIterator[OnPremCloud]:
    """Log in, check that server and login are what they may be, make the ownership table when it is not there."""
    admin, ca = admin_login(config, secret_data), authority_of(config, secret_data)
    endpoint = Endpoint(config.host, config.port, config.database, VERIFIED, ca)
    with roots_of(endpoint) as file:
        settings = ConnectionSettings(endpoint, admin, file)
        sessions = Sessions(settings, recorded.id, recorded.accept, transport.dial, transport.log_in)
        try:
            async with sessions.own("look at the server") as session:
                about = await server_of(session)
                refuse_server(about, config)
                if not about.ownership:
                    await session.rows(catalog.OWNERSHIP)
            sessions.identifier = about.account
            yield OnPremCloud(config, sessions, about, meter)
        finally:
            await sessions.close()
