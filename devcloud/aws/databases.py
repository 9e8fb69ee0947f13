"""RDS's PostgreSQL: its roles, and what its master user may.

As on RDS nobody is superuser but `rdsadmin`, whose password nobody has; the master user has `rds_superuser`, CREATEDB
and CREATEROLE (Amazon RDS User Guide, "Understanding the rds_superuser role"); TLS is required, as `rds.force_ssl`
is from PostgreSQL 15 on, under an authority of this simulator's own in place of `rds-ca-rsa2048-g1`.
"""

from psycopg import sql

from devcloud.aws.state.extensions import LISTED
from devcloud.postgres.instance import Flavour, Record
from devcloud.simulator.databases import Engine

_STATEMENTS = (
    "CREATE ROLE rds_superuser NOLOGIN",
    "CREATE ROLE rds_replication NOLOGIN",
    "CREATE ROLE rds_password NOLOGIN",
    "CREATE ROLE rds_iam NOLOGIN",
    "GRANT pg_monitor, pg_signal_backend, pg_checkpoint, rds_replication TO rds_superuser WITH ADMIN OPTION",
    "GRANT rds_password TO rds_superuser WITH ADMIN OPTION",
    "CREATE DATABASE rdsadmin",
    "REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC",
)
AUTHORITY = "rds-ca"


def _admit(record: Record) -> tuple[str, ...]:
    names = {"user": sql.Identifier(record.username), "verifier": sql.Literal(record.verifier)}
    statements = [
        sql.SQL("CREATE ROLE {user} LOGIN CREATEDB CREATEROLE IN ROLE rds_superuser PASSWORD {verifier}"),
        sql.SQL("ALTER DATABASE postgres OWNER TO {user}"),
    ]
    if record.database not in {None, "postgres"}:
        statements.append(sql.SQL("CREATE DATABASE {database} OWNER {user}"))
        names["database"] = sql.Identifier(str(record.database))
    return tuple(statement.format(**names).as_string() for statement in statements)


RDS = Engine(
    flavour=Flavour(superuser="rdsadmin", statements=_STATEMENTS, extensions=LISTED, admit=_admit), authority=AUTHORITY
)
