"""The extensions of Cloud SQL for PostgreSQL, a cut of its list, as far as the servers here have them. Pure.

After "Configure PostgreSQL extensions". The API does not name them: PostgreSQL refuses the others.
"""

from typing import Final

from devcloud.gcp.state import catalog
from devcloud.postgres.extensions import offered

_LISTED_TEXT: Final = """
    amcheck bloom btree_gin btree_gist citext cube dblink dict_int dict_xsyn earthdistance fuzzystrmatch hstore intagg
    intarray isn lo ltree pageinspect pg_buffercache pg_freespacemap pg_prewarm pg_stat_statements pg_trgm pg_visibility
    pgcrypto pgrowlocks pgstattuple plpgsql postgres_fdw refint sslinfo tablefunc tcn tsm_system_rows tsm_system_time
    unaccent uuid-ossp vector xml2
"""
LISTED: Final = frozenset(_LISTED_TEXT.split())


def offered_in(version: str) -> tuple[str, ...]:
    """Return the extensions that an instance of a version, `16`, has, in the order of their names."""
    return tuple(sorted(offered(LISTED, version)))


def environment() -> dict[str, str]:
    """Return what the instances here have, as the Composition reads it: by version, with commas."""
    return {
        f"extensions-{number}": ",".join(offered_in(str(number))) for number in map(catalog.major, catalog.VERSIONS)
    }
