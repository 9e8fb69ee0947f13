"""Azure's PostgreSQL: its roles, and what the administrator of a flexible server may.

Nobody but Azure is superuser; the administrator is in `azure_pg_admin`, with CREATEDB and CREATEROLE ("Create users in
Azure Database for PostgreSQL"). TLS is required as long as `require_secure_transport` is on, under an authority of this
simulator's own in place of DigiCert's.
"""

from psycopg import sql

from devcloud.azure.state.extensions import LISTED
from devcloud.postgres.instance import Flavour, Record
from devcloud.simulator.databases import Engine

_STATEMENTS = (
    "CREATE ROLE azure_pg_admin NOLOGIN",
    "GRANT pg_monitor, pg_signal_backend, pg_checkpoint TO azure_pg_admin WITH ADMIN OPTION",
    "CREATE DATABASE azure_maintenance",
    "REVOKE ALL ON DATABASE azure_maintenance FROM PUBLIC",
    "CREATE DATABASE azure_sys",
    "REVOKE ALL ON DATABASE azure_sys FROM PUBLIC",
)
AUTHORITY = "azure-ca"


def _admit(record: Record) -> tuple[str, ...]:
    names = {"user": sql.Identifier(record.username), "verifier": sql.Literal(record.verifier)}
    statements = (
        sql.SQL("CREATE ROLE {user} LOGIN CREATEDB CREATEROLE IN ROLE azure_pg_admin PASSWORD {verifier}"),
        sql.SQL("ALTER DATABASE postgres OWNER TO {user}"),
    )
    return tuple(statement.format(**names).as_string() for statement in statements)


AZURE = Engine(
    flavour=Flavour(superuser="azuresu", statements=_STATEMENTS, extensions=LISTED, admit=_admit), authority=AUTHORITY
)


def creation(name: str, owner: str) -> str:
    """Return the statement that makes a database of the administrator."""
    statement = sql.SQL("CREATE DATABASE {} OWNER {}")
    return statement.format(sql.Identifier(name), sql.Identifier(owner)).as_string()


def removal(name: str) -> str:
    """Return the statement that drops a database, for which nobody may be in it."""
    return sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)).as_string()
