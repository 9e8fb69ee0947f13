"""Which extensions the servers on this machine have, by major version, and which of them each cloud offers. Pure.

What the servers have is what `pg_available_extensions` lists, but for those of Python, whose library no package brings.
What a cloud offers is its own list, as far as the servers have it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from devcloud.postgres.majors import Major, major_for

_MODULES_TEXT: Final = """
    amcheck autoinc bloom btree_gin btree_gist citext cube dict_int dict_xsyn earthdistance file_fdw fuzzystrmatch
    hstore insert_username intagg intarray isn lo ltree moddatetime pageinspect pg_buffercache pg_freespacemap
    pg_prewarm pg_stat_statements pg_surgery pg_trgm pg_visibility pg_walinspect pgrowlocks pgstattuple refint seg
    tablefunc tcn tsm_system_rows tsm_system_time unaccent
"""
MODULES: Final = frozenset(_MODULES_TEXT.split())
"""Those of PostgreSQL's additional modules that a server of any build loads."""
WITH_LIBCRYPTO: Final = frozenset({"pgcrypto"})
"""Those that need OpenSSL's libcrypto too."""
_OF_SERVER: Final = frozenset({"plpgsql"})
THERE: Final[Mapping[Major, frozenset[str]]] = MappingProxyType(
    {
        16: _OF_SERVER | MODULES | WITH_LIBCRYPTO | {"vector"},
        17: _OF_SERVER | MODULES | WITH_LIBCRYPTO | {"dblink", "postgres_fdw", "sslinfo"},
        18: _OF_SERVER | MODULES | {"dblink", "pg_logicalinspect", "postgres_fdw", "vector"},
    }
)
"""The extensions of the servers, by version."""


_TRUSTED_TEXT: Final = """
    btree_gin btree_gist citext cube dict_int fuzzystrmatch hstore intarray isn lo ltree pg_trgm pgcrypto plpgsql seg
    tablefunc tcn tsm_system_rows tsm_system_time unaccent
"""
TRUSTED: Final = frozenset(_TRUSTED_TEXT.split())
"""Those that PostgreSQL itself lets anybody create who may create in a database."""


def offered(listed: frozenset[str], version: str) -> frozenset[str]:
    """Return what of a cloud's list a server of one of its versions, `16` or `16.9`, has here."""
    return listed & THERE[major_for(version)]
