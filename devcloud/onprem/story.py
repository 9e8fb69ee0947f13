"""The platform team's PostgreSQL server as `fairlead demo` shows it: claims, drift, a lost database, a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from psycopg import sql

from devcloud import stories
from devcloud.errors import DevcloudError
from devcloud.onprem import server_in
from devcloud.postgres.server import Server
from devcloud.stories import Stage, Story, child_of, claim_document, demand, until_ready, until_unready
from runtime.objects import Object, uid_of

_NAMESPACE = "demo"
_CHILD = "postgresdatabase"
_COMPOSITION = "postgres-onprem"
_MISTYPED = "postgres-onprm"


@dataclass(frozen=True, slots=True)
class _Superuser:
    """A person with the server's superuser, behind Fairlead's back."""

    stage: Stage
    server: Server

    async def type(self, statement: str) -> None:
        """Type a statement, and show it."""
        self.stage.show(f"postgres=# {statement}", prefix="   ", style="yellow")
        await self.server.execute(statement)

    async def connection_limit(self, database: str) -> object:
        """Ask the server itself, not Fairlead: the database's connection limit, None when there is no such database."""
        return await self._ask("SELECT datconnlimit FROM pg_catalog.pg_database WHERE datname = {}", database)

    async def may_connect(self, role: str, database: str) -> bool:
        """Ask the server itself whether a role may connect to a database."""
        return await self._ask("SELECT pg_catalog.has_database_privilege({}, {}, 'CONNECT')", role, database) is True

    async def _ask(self, query: LiteralString, *values: str) -> object:
        whole = sql.SQL(query).format(*(sql.Literal(value) for value in values)).as_string()
        rows = await self.server.execute(whole)
        return rows[0][0] if rows else None


async def _play(stage: Stage, folder: Path, octet: int) -> None:
    running = server_in(folder, octet)
    if running is None:
        raise DevcloudError(f"the server in {folder} does not run: run `fairlead up` again")
    superuser = _Superuser(stage, running.server)
    await _claims_become_databases(stage)
    await stories.psql_answers(stage, "orders")
    await _drift_is_repaired(stage, superuser)
    await _a_lost_database_is_reported(stage, superuser)
    await _a_broken_claim_says_why(stage)


async def _claims_become_databases(stage: Stage) -> None:
    stage.chapter("A developer asks for two databases; no cloud is named")
    await stories.make_namespace(stage, STORY)
    claims = (claim_document(_NAMESPACE, "orders"), claim_document(_NAMESPACE, "reports", size="medium"))
    await stage.kubectl("apply", "--filename=-", document="---\n".join(claims))
    await until_ready(stage, "orders")
    await until_ready(stage, "reports")
    await stage.kubectl("get", "postgresqlinstances,postgresdatabases", f"--namespace={_NAMESPACE}")


async def _drift_is_repaired(stage: Stage, superuser: _Superuser) -> None:
    stage.chapter("Somebody changes the server by hand: a limit, a grant, the password")
    child = await child_of(stage, "orders", _CHILD)
    connection, owner = child["status"]["connection"], child["status"]["atProvider"]["owner"]
    database, login = connection["database"], connection["username"]
    limit = await superuser.connection_limit(database)
    await superuser.type(f"ALTER DATABASE {database} CONNECTION LIMIT 1")
    await superuser.type(f"REVOKE CONNECT ON DATABASE {database} FROM {owner}")
    await superuser.type(f"ALTER ROLE {login} PASSWORD 'changed-by-hand'")

    async def limit_is_back() -> bool:
        return await superuser.connection_limit(database) == limit

    async def grant_is_back() -> bool:
        return await superuser.may_connect(owner, database)

    async def password_is_back() -> bool:
        return (await stage.try_psql("orders", "SELECT 1"))[2] == 0

    await stage.until(f"the connection limit is {limit} again", limit_is_back, claim="orders")
    await stage.until("the owner may connect again", grant_is_back, claim="orders")
    await stage.until("the Secret's password works again", password_is_back, claim="orders")
    repairs = ("connectionLimit", "CONNECT", "password")
    message = await stage.until(
        "events say what was found and what was set", lambda: _drift_reported(stage, child, repairs), claim="orders"
    )
    stage.show("\n".join(message))


async def _drift_reported(stage: Stage, child: Object, repairs: Sequence[str]) -> list[str] | None:
    """Return what the provider's events say it corrected on this object, None while one of the repairs is missing."""
    query = f"regarding.uid={uid_of(child)},reason=DriftCorrected"
    template = "--output=jsonpath={range .items[*]}{.note}{'\\n'}{end}"
    answer = await stage.quietly(
        "get", "events.events.k8s.io", f"--namespace={_NAMESPACE}", f"--field-selector={query}", template
    )
    return answer.strip().splitlines() if all(repair in answer for repair in repairs) else None


async def _a_lost_database_is_reported(stage: Stage, superuser: _Superuser) -> None:
    stage.chapter("Somebody drops the database: it is reported, never silently replaced by an empty one")
    child = await child_of(stage, "orders", _CHILD)
    database, incarnation = child["status"]["connection"]["database"], child["status"]["incarnation"]
    await superuser.type(f"DROP DATABASE {database} WITH (FORCE)")
    await until_unready(stage, "orders", "DatabaseLost", stalled=True, limit_s=150.0)
    await stage.trace("orders")
    is_gone = await superuser.connection_limit(database) is None
    demand(holds=is_gone, otherwise=f"nobody agreed to a new database yet, and {database} is there")
    stage.say("The way on is a person's word: here, that starting empty is what we want.")
    consent = f"fairlead.dev/consent=recreate={incarnation}"
    name = child["metadata"]["name"]
    await stage.kubectl("annotate", _CHILD, name, f"--namespace={_NAMESPACE}", consent)
    await until_ready(stage, "orders", again=True)
    answer = await stage.psql("orders", "SELECT to_regclass('invoice') IS NULL")
    demand(holds=answer.strip() == "t", otherwise="the new database should have been empty")


async def _a_broken_claim_says_why(stage: Stage) -> None:
    stage.chapter("A claim with a mistake in it says what is wrong and what to do")
    claim = claim_document(_NAMESPACE, "invoices", composition=_MISTYPED)
    await stage.kubectl("apply", "--filename=-", document=claim)
    await until_unready(stage, "invoices", "CompositionNotFound")
    await stage.trace("invoices")
    fix = f'{{"spec": {{"compositionRef": {{"name": "{_COMPOSITION}"}}}}}}'
    await stage.kubectl(
        "patch", "postgresqlinstance", "invoices", f"--namespace={_NAMESPACE}", "--type=merge", f"--patch={fix}"
    )
    await until_ready(stage, "invoices")


STORY = Story(namespace=_NAMESPACE, play=_play)
