"""The questions that are put to the server's catalogs; each is one round trip and qualified by schema throughout."""

from __future__ import annotations

from providers.external.sql.roles import MEMBERSHIPS

# Any text that no other row has; of no use to anybody who reads it.
_RANDOM = "pg_catalog.left(pg_catalog.md5(pg_catalog.random()::text || pg_catalog.clock_timestamp()::text), 12)"

OWNERSHIP = f"""
CREATE SCHEMA IF NOT EXISTS fairlead;
CREATE TABLE IF NOT EXISTS fairlead.ownership (
    database pg_catalog.text PRIMARY KEY,
    oid pg_catalog.oid,
    installation pg_catalog.text NOT NULL,
    identity pg_catalog.text NOT NULL,
    claim pg_catalog.text NOT NULL,
    namespace pg_catalog.text NOT NULL DEFAULT '',
    name pg_catalog.text NOT NULL DEFAULT '',
    resource pg_catalog.text NOT NULL DEFAULT '',
    state pg_catalog.text NOT NULL CHECK (
        state IN ('creating', 'ready', 'released', 'retiring', 'retired', 'dropping')),
    owner_role pg_catalog.text NOT NULL DEFAULT '',
    logins pg_catalog.text[] NOT NULL DEFAULT '{{}}',
    kept_as pg_catalog.text,
    released_at pg_catalog.timestamptz,
    changed_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);
ALTER TABLE fairlead.ownership ADD COLUMN IF NOT EXISTS incarnation pg_catalog.text NOT NULL DEFAULT {_RANDOM};
ALTER TABLE fairlead.ownership ADD COLUMN IF NOT EXISTS kept_rights pg_catalog.text[] NOT NULL DEFAULT '{{}}';
CREATE INDEX IF NOT EXISTS ownership_by_claim ON fairlead.ownership (installation, claim);
"""

SERVER = """
SELECT pg_catalog.json_build_object(
    'account', (SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system()),
    'number', pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
    'version', pg_catalog.current_setting('server_version'),
    'recovery', pg_catalog.pg_is_in_recovery(),
    'admin', current_user,
    'superuser', r.rolsuper, 'createdb', r.rolcreatedb, 'createrole', r.rolcreaterole,
    'secrets', pg_catalog.has_column_privilege('pg_catalog.pg_authid', 'rolname', 'SELECT'),
    'ownership', 2 = (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute c
        WHERE c.attrelid = pg_catalog.to_regclass('fairlead.ownership')
        AND c.attname IN ('incarnation', 'kept_rights')),
    'exposed', (SELECT pg_catalog.json_agg(d.datname ORDER BY d.datname) FROM pg_catalog.pg_database d
        WHERE (d.datname = pg_catalog.current_database() OR d.datname = 'postgres' OR d.datistemplate)
        AND d.datallowconn AND EXISTS (
            SELECT FROM pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
            WHERE a.grantee = 0 AND a.privilege_type = 'CONNECT')))
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""

FACTS = f"""
SELECT pg_catalog.json_build_object(
    'row', (SELECT pg_catalog.json_build_object(
        'database', o.database, 'oid', o.oid::pg_catalog.text, 'installation', o.installation, 'identity', o.identity,
        'claim', o.claim, 'namespace', o.namespace, 'name', o.name, 'resource', o.resource, 'state', o.state,
        'kept_as', o.kept_as, 'incarnation', o.incarnation, 'kept_rights', o.kept_rights)
        FROM fairlead.ownership o WHERE o.database = %(database)s),
    'elsewhere', (SELECT d.datname FROM pg_catalog.pg_database d
        LEFT JOIN fairlead.ownership o ON o.database = %(database)s
        WHERE d.datname <> %(database)s AND d.oid = coalesce(o.oid, %(oid)s::pg_catalog.oid)
        AND NOT EXISTS (SELECT FROM fairlead.ownership n WHERE n.database = d.datname)
        AND (o.oid IS NOT NULL OR EXISTS (
            SELECT FROM pg_catalog.aclexplode(d.datacl) a JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
            WHERE r.rolname = ANY(%(roles)s)))),
    'database', (SELECT pg_catalog.json_build_object(
        'name', d.datname, 'oid', d.oid::pg_catalog.text, 'owner', pg_catalog.pg_get_userbyid(d.datdba),
        'allows', d.datallowconn, 'limit', d.datconnlimit, 'template', d.datistemplate,
        'encoding', pg_catalog.pg_encoding_to_char(d.encoding), 'collate', d.datcollate, 'ctype', d.datctype,
        'grants', (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
            'grantee', CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee)::text END,
            'privilege', a.privilege_type, 'grantable', a.is_grantable) ORDER BY a.grantee, a.privilege_type), '[]')
            FROM pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a),
        'settings', coalesce((SELECT pg_catalog.to_json(s.setconfig) FROM pg_catalog.pg_db_role_setting s
            WHERE s.setdatabase = d.oid AND s.setrole = 0), '[]'))
        FROM pg_catalog.pg_database d WHERE d.datname = %(database)s),
    'roles', (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', r.rolname, 'login', r.rolcanlogin, 'superuser', r.rolsuper, 'createdb', r.rolcreatedb,
        'createrole', r.rolcreaterole, 'replication', r.rolreplication, 'bypassrls', r.rolbypassrls,
        'inherit', r.rolinherit, 'limit', r.rolconnlimit, 'until', r.rolvaliduntil::pg_catalog.text,
        'version', (SELECT a.xmin::pg_catalog.text FROM pg_catalog.pg_authid a WHERE a.rolname = r.rolname),
        'settings', (SELECT coalesce(pg_catalog.json_agg(c.line), '[]') FROM pg_catalog.pg_db_role_setting s,
            LATERAL pg_catalog.unnest(s.setconfig) AS c(line) WHERE s.setrole = r.oid AND s.setdatabase = 0),
        'set_in', (SELECT coalesce(pg_catalog.json_agg(b.datname ORDER BY b.datname), '[]')
            FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_database b ON b.oid = s.setdatabase
            WHERE s.setrole = r.oid)) ORDER BY r.rolname), '[]')
        FROM pg_catalog.pg_roles r WHERE r.rolname = ANY(%(roles)s)),
    {MEMBERSHIPS})
"""  # noqa: S608 - a constant of ours

INSIDE = """
SELECT pg_catalog.json_build_object(
    'schema_owner', (SELECT pg_catalog.pg_get_userbyid(n.nspowner) FROM pg_catalog.pg_namespace n
        WHERE n.nspname = 'public'),
    'extensions', (SELECT coalesce(pg_catalog.json_agg(e.extname ORDER BY e.extname), '[]')
        FROM pg_catalog.pg_extension e))
"""

ALL = """
SELECT o.database, o.state, o.installation, o.identity, o.claim, o.namespace, o.name, o.resource,
    d.oid::pg_catalog.text, pg_catalog.md5(ROW(d.*)::pg_catalog.text || coalesce((
        SELECT pg_catalog.string_agg(a.rolname || a.xmin::pg_catalog.text, ',' ORDER BY a.rolname)
        FROM (SELECT rolname, xmin FROM pg_catalog.pg_authid) a
        WHERE a.rolname = o.owner_role OR a.rolname = ANY(o.logins)), '') || coalesce((
        SELECT pg_catalog.string_agg(s.setrole::pg_catalog.text || s.setconfig::pg_catalog.text, ',' ORDER BY s.setrole)
        FROM pg_catalog.pg_db_role_setting s WHERE s.setdatabase = d.oid OR s.setrole IN (
            SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = o.owner_role OR r.rolname = ANY(o.logins))), '')
        || coalesce((
        SELECT pg_catalog.string_agg(m.roleid::pg_catalog.text || '.' || m.member::pg_catalog.text || '.'
            || m.grantor::pg_catalog.text || m.admin_option || m.inherit_option || m.set_option, ','
            ORDER BY m.roleid, m.member, m.grantor)
        FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.roleid OR r.oid = m.member
        WHERE r.rolname = o.owner_role OR r.rolname = ANY(o.logins)), '')) AS digest
FROM fairlead.ownership o LEFT JOIN pg_catalog.pg_database d ON d.datname = o.database
WHERE o.state IN ('creating', 'ready', 'released')
ORDER BY o.database
"""

STRANGERS = """
SELECT d.datname, o.installation, o.identity, o.claim, o.namespace, o.name, o.resource
FROM pg_catalog.pg_database d LEFT JOIN fairlead.ownership o ON o.database = d.datname
WHERE NOT d.datistemplate AND d.datname <> ALL (ARRAY['postgres', pg_catalog.current_database()]::pg_catalog.name[])
    AND (o.database IS NULL OR o.state IN ('released', 'retired'))
"""

PREDECESSORS = """
SELECT o.database, o.oid::pg_catalog.text || '-' || o.incarnation, o.installation, o.identity, o.claim, o.namespace,
    o.name, o.resource
FROM fairlead.ownership o JOIN pg_catalog.pg_database d ON d.oid = o.oid
WHERE o.installation = %(installation)s AND o.claim = %(claim)s AND o.identity <> %(identity)s
    AND o.state IN ('ready', 'released', 'creating')
ORDER BY o.changed_at DESC
"""

CLAIM = """
INSERT INTO fairlead.ownership AS o
    (database, installation, identity, claim, namespace, name, resource, state, owner_role, logins)
VALUES (%(database)s, %(installation)s, %(identity)s, %(claim)s, %(namespace)s, %(name)s, %(resource)s, 'creating',
    %(owner_role)s, %(logins)s)
ON CONFLICT (database) DO UPDATE SET state = 'creating', oid = NULL, changed_at = pg_catalog.now(),
    incarnation = CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname = EXCLUDED.database
        AND d.oid = coalesce(o.oid, d.oid)) THEN o.incarnation ELSE EXCLUDED.incarnation END,
    kept_rights = CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname = EXCLUDED.database
        AND d.oid = coalesce(o.oid, d.oid)) THEN o.kept_rights ELSE EXCLUDED.kept_rights END
    WHERE o.installation = EXCLUDED.installation AND o.identity = EXCLUDED.identity AND o.claim = EXCLUDED.claim
RETURNING o.database
"""

RECORD = """
UPDATE fairlead.ownership SET oid = d.oid, state = %(state)s, changed_at = pg_catalog.now()
FROM pg_catalog.pg_database d
WHERE d.datname = %(database)s AND ownership.database = %(database)s AND installation = %(installation)s
    AND identity = %(identity)s AND claim = %(claim)s
"""

# A lost row gets the random that was recorded for this oid; another database than the row spoke of gets a new one.
# Rights that are kept are written by an adoption and with a lost row, and stay otherwise (%(kept)s is NULL).
RECORD_WHOLE = """
INSERT INTO fairlead.ownership AS o
    (database, oid, installation, identity, claim, namespace, name, resource, state, owner_role, logins, incarnation,
    kept_rights)
SELECT d.datname, d.oid, %(installation)s, %(identity)s, %(claim)s, %(namespace)s, %(name)s, %(resource)s, %(state)s,
    %(owner_role)s, %(logins)s,
    CASE WHEN d.oid = %(oid)s::pg_catalog.oid THEN %(recorded)s::pg_catalog.text ELSE %(random)s::pg_catalog.text END,
    coalesce(%(kept)s::pg_catalog.text[], '{}')
FROM pg_catalog.pg_database d WHERE d.datname = %(database)s
ON CONFLICT (database) DO UPDATE SET oid = EXCLUDED.oid, installation = EXCLUDED.installation,
    identity = EXCLUDED.identity, claim = EXCLUDED.claim, namespace = EXCLUDED.namespace, name = EXCLUDED.name,
    resource = EXCLUDED.resource, state = EXCLUDED.state, owner_role = EXCLUDED.owner_role, logins = EXCLUDED.logins,
    incarnation = CASE WHEN coalesce(o.oid, EXCLUDED.oid) = EXCLUDED.oid
        THEN o.incarnation ELSE EXCLUDED.incarnation END,
    kept_rights = CASE WHEN %(kept)s::pg_catalog.text[] IS NULL AND coalesce(o.oid, EXCLUDED.oid) = EXCLUDED.oid
        THEN o.kept_rights ELSE EXCLUDED.kept_rights END,
    released_at = NULL, kept_as = NULL, changed_at = pg_catalog.now()
"""

RELEASE = """
UPDATE fairlead.ownership SET state = 'released', released_at = pg_catalog.now(), changed_at = pg_catalog.now()
WHERE database = %(database)s AND installation = %(installation)s AND identity = %(identity)s AND claim = %(claim)s
"""

DOOM = """
UPDATE fairlead.ownership SET state = %(state)s, changed_at = pg_catalog.now()
WHERE database = %(database)s AND installation = %(installation)s AND identity = %(identity)s AND claim = %(claim)s
    AND (%(oid)s::pg_catalog.oid IS NULL OR oid IS NULL OR oid = %(oid)s::pg_catalog.oid)
RETURNING database
"""

RETIRE = """
UPDATE fairlead.ownership SET state = 'retired', database = d.datname, kept_as = %(database)s,
    changed_at = pg_catalog.now()
FROM pg_catalog.pg_database d
WHERE ownership.database = %(database)s AND installation = %(installation)s AND identity = %(identity)s
    AND claim = %(claim)s AND ownership.oid = d.oid AND d.datname <> %(database)s
"""

FORGET = """
DELETE FROM fairlead.ownership
WHERE database = %(database)s AND installation = %(installation)s AND identity = %(identity)s AND claim = %(claim)s
"""

RETIRED = """
SELECT d.datname FROM fairlead.ownership o JOIN pg_catalog.pg_database d ON d.oid = o.oid
WHERE o.installation = %(installation)s AND o.identity = %(identity)s AND o.claim = %(claim)s
    AND ((o.state = 'retired' AND o.kept_as = %(database)s)
        OR (o.database = %(database)s AND d.datname <> %(database)s))
ORDER BY o.changed_at DESC
"""

OID = """
SELECT d.oid::pg_catalog.text, coalesce(o.incarnation, '')
FROM pg_catalog.pg_database d LEFT JOIN fairlead.ownership o ON o.database = d.datname
WHERE d.datname = %(database)s
"""
ROLES = "SELECT r.rolname FROM pg_catalog.pg_roles r WHERE r.rolname = ANY(%(roles)s) ORDER BY r.rolname"
LIMIT = "SELECT r.rolconnlimit FROM pg_catalog.pg_roles r WHERE r.rolname = %(login)s"
BUSY = """
SELECT DISTINCT coalesce(a.usename::pg_catalog.text, a.usesysid::pg_catalog.text)
FROM pg_catalog.pg_stat_activity a WHERE a.datname = %(database)s AND a.usesysid IS NOT NULL ORDER BY 1
"""
NAMES = "SELECT d.datname FROM pg_catalog.pg_database d WHERE d.datname = ANY(%(names)s)"
PREPARED = """
SELECT p.gid, p.owner FROM pg_catalog.pg_prepared_xacts p WHERE p.database = %(database)s ORDER BY p.gid
"""
TERMINATE = """
SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity a
WHERE a.usename = %(login)s
"""
