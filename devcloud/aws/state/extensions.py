"""The extensions of RDS for PostgreSQL, a cut of its list, as far as the servers here have them. Pure.

After "Extensions supported for Amazon RDS for PostgreSQL" of the release notes, which `rds.extensions` shows.
"""

from typing import Final

from devcloud.postgres.extensions import offered

_LISTED_TEXT: Final = """
    amcheck bloom btree_gin btree_gist citext cube dblink dict_int dict_xsyn earthdistance fuzzystrmatch hstore intagg
    intarray isn lo ltree pageinspect pg_buffercache pg_freespacemap pg_prewarm pg_stat_statements pg_trgm pg_visibility
    pg_walinspect pgcrypto pgrowlocks pgstattuple plpgsql postgres_fdw seg sslinfo tablefunc tcn tsm_system_rows
    tsm_system_time unaccent uuid-ossp vector
"""
LISTED: Final = frozenset(_LISTED_TEXT.split())


def offered_in(version: str) -> tuple[str, ...]:
    """Return the extensions that an instance of a version has, in the order of their names."""
    return tuple(sorted(offered(LISTED, version)))
