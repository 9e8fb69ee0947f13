"""Cloud SQL's PostgreSQL: its roles, and what its administrator and the users of the API may.

Nobody is superuser but `cloudsqladmin`, whose password nobody has; `postgres` and the users that the API makes are
members of `cloudsqlsuperuser`, with CREATEDB and CREATEROLE (Cloud SQL for PostgreSQL, "About PostgreSQL users and
roles"). Each instance has an authority of its own, and its certificate names `project:instance` and no address (Cloud
SQL for PostgreSQL, "Authorize with SSL/TLS certificates"). Whom no rule lets in meets silence, as a packet that a
firewall drops.
"""

from psycopg import sql

from devcloud.gcp.state.extensions import LISTED
from devcloud.postgres.authenticator import Silence
from devcloud.postgres.instance import Flavour, Record
from devcloud.postgres.scram import scram_verifier
from devcloud.simulator.databases import Engine

ADMINISTRATOR = "postgres"
SUPERUSER = "cloudsqlsuperuser"
IAM_ROLES = {
    "CLOUD_IAM_USER": "cloudsqliamuser",
    "CLOUD_IAM_SERVICE_ACCOUNT": "cloudsqliamserviceaccount",
    "CLOUD_IAM_GROUP": "cloudsqliamgroup",
}
_STATEMENTS = (
    f"CREATE ROLE {SUPERUSER} NOLOGIN CREATEDB CREATEROLE",
    *(f"CREATE ROLE {role} NOLOGIN" for role in IAM_ROLES.values()),
    f"GRANT pg_monitor, pg_signal_backend, pg_checkpoint TO {SUPERUSER} WITH ADMIN OPTION",
    "CREATE DATABASE cloudsqladmin",
    "REVOKE ALL ON DATABASE cloudsqladmin FROM PUBLIC",
    f"ALTER DATABASE postgres OWNER TO {SUPERUSER}",
)


def _admit(record: Record) -> tuple[str, ...]:
    return (_made(record.username, record.verifier, SUPERUSER),)


def made_user(name: str, password: str, roles: tuple[str, ...]) -> tuple[str, ...]:
    """Return the statement that makes a user with a password; without roles of its own it is as the administrator.

    One statement: where a role does not exist, no user is made.
    """
    return (_made(name, scram_verifier(password), *(roles or (SUPERUSER,))),)


def made_iam_user(name: str, kind: str, roles: tuple[str, ...]) -> tuple[str, ...]:
    """Return the statement that makes a user of IAM, who has no password."""
    statement = sql.SQL("CREATE ROLE {} LOGIN IN ROLE {}")
    return (statement.format(sql.Identifier(name), _listed(IAM_ROLES[kind], *roles)).as_string(),)


def new_password(name: str, password: str) -> tuple[str, ...]:
    """Return the statement that gives a user a password, in place of the one before."""
    statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(name), sql.Literal(scram_verifier(password)))
    return (statement.as_string(),)


def more_roles(name: str, roles: tuple[str, ...]) -> tuple[str, ...]:
    """Return the statements that grant roles to a user."""
    return tuple(_granted(role, name) for role in roles)


def dropped_user(name: str) -> tuple[str, ...]:
    """Return the statement that drops a user; it fails while something is owned by it."""
    return (sql.SQL("DROP ROLE {}").format(sql.Identifier(name)).as_string(),)


def made_database(name: str) -> tuple[str, ...]:
    """Return the statement that makes a database of `cloudsqlsuperuser`; the servers behind know UTF8 and C alone."""
    statement = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(SUPERUSER))
    return (statement.as_string(),)


def dropped_database(name: str) -> tuple[str, ...]:
    """Return the statement that drops a database; it fails while somebody is connected to it."""
    return (sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)).as_string(),)


def _made(name: str, verifier: str, *roles: str) -> str:
    statement = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE IN ROLE {} PASSWORD {}")
    return statement.format(sql.Identifier(name), _listed(*roles), sql.Literal(verifier)).as_string()


def _listed(*roles: str) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, roles))


def _granted(role: str, name: str) -> str:
    return sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(name)).as_string()


CLOUD_SQL = Engine(
    flavour=Flavour(
        superuser="cloudsqladmin",
        statements=_STATEMENTS,
        extensions=LISTED,
        admit=_admit,
        shut_out=lambda caller: Silence(),  # noqa: ARG005 - whoever it is
        certifies_hosts=False,
    ),
    authority="server-ca",
    authority_each=True,
)
