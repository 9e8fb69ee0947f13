"""What a hostile tenant may try on a shared server, by what it is after; and which of it the server lets through.

Statements run one after the other as the tenant's login; the names in braces are filled in.
"""

from __future__ import annotations

ATTACKS: dict[str, tuple[str, ...]] = {
    # Our sessions
    "search_path of the database": ("ALTER DATABASE {db} SET search_path = public, pg_catalog",),
    "search_path of every role": ("ALTER ROLE ALL IN DATABASE {db} SET search_path = public",),
    "search_path of the administrator": ("ALTER ROLE {admin} SET search_path = public",),
    "an overloaded function in public": (
        (
            "CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS"
            " $$ SELECT pg_catalog.pg_terminate_backend(0)::text $$"
        ),
    ),
    "an overloaded operator in public": (
        (
            "CREATE FUNCTION public.trap(name, name) RETURNS bool LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; RETURN true; END $$"
        ),
        "CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = name, FUNCTION = public.trap)",
    ),
    "a cast with a trap": (
        "CREATE TYPE public.bait AS (line text)",
        (
            "CREATE FUNCTION public.trap(public.bait) RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; RETURN ''; END $$"
        ),
        "CREATE CAST (public.bait AS text) WITH FUNCTION public.trap(public.bait) AS IMPLICIT",
    ),
    "a view in the name of a catalog": ("CREATE VIEW public.pg_extension AS SELECT 'none'::name AS extname",),
    "a temporary table in the name of a catalog": ("CREATE TEMP TABLE pg_namespace (nspname name, nspowner oid)",),
    "a table in pg_catalog": ("CREATE TABLE pg_catalog.bait (line text)",),
    "a function in pg_catalog": (
        "CREATE FUNCTION pg_catalog.json_build_object(text, text) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$",
    ),
    "an event trigger": (
        (
            "CREATE FUNCTION public.caught() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; END $$"
        ),
        "CREATE EVENT TRIGGER caught ON ddl_command_end EXECUTE FUNCTION public.caught()",
    ),
    "a schema in the administrator's name": ("CREATE SCHEMA {admin}", 'CREATE SCHEMA "$user"'),
    "default privileges for everybody": (
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO PUBLIC",
        "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
    ),
    "default privileges of the administrator": (
        "ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT ALL ON TABLES TO {owner}",
    ),
    "all schemas gone": ("DROP SCHEMA public CASCADE",),
    "the schema renamed": ("ALTER SCHEMA public RENAME TO gone",),
    "the schema in its login's name": ("SET ROLE none", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
    "the schema given away": ("ALTER SCHEMA public OWNER TO {admin}",),
    # Roles
    "SET role to the administrator": ("SET ROLE {admin}",),
    "SET role to the superuser": ("SET ROLE postgres",),
    "SET role to the neighbour": ("SET ROLE {neighbour}",),
    "SET session authorization": ("SET SESSION AUTHORIZATION {admin}",),
    "more attributes for itself": ("ALTER ROLE {login} CREATEDB CREATEROLE",),
    "superuser for itself": ("SET ROLE none", "ALTER ROLE {login} SUPERUSER"),
    "a role of its own": ("CREATE ROLE accomplice LOGIN",),
    "membership in the administrator": ("GRANT {admin} TO {login}",),
    "membership in a predefined role": ("GRANT pg_read_all_data TO {owner}", "GRANT pg_signal_backend TO {login}"),
    "its own role for the neighbour": ("GRANT {owner} TO {neighbour_login} WITH ADMIN OPTION",),
    "the neighbour's password": ("ALTER ROLE {neighbour_login} PASSWORD 'stolen-password-1'",),
    "the administrator's password": ("ALTER ROLE {admin} PASSWORD 'stolen-password-1'",),
    "the neighbour's role dropped": ("DROP ROLE {neighbour_login}", "DROP ROLE {neighbour}"),
    "its own roles dropped": ("SET ROLE none", "DROP ROLE {owner}", "DROP ROLE {login}"),
    "the passwords of all": ("SELECT rolname, rolpassword FROM pg_catalog.pg_authid",),
    "a setting of its own login": ("SET ROLE none", "ALTER ROLE {login} SET role = 'none'"),
    "its own login for others": ("SET ROLE none", "GRANT {login} TO {neighbour_login}"),
    "REASSIGN OWNED": ("REASSIGN OWNED BY {admin} TO {owner}",),
    "DROP OWNED of the administrator": ("DROP OWNED BY {admin} CASCADE",),
    # Databases
    "its database dropped": ("DROP DATABASE {db}",),
    "its database renamed": ("ALTER DATABASE {db} RENAME TO elsewhere",),
    "its database given to itself": ("ALTER DATABASE {db} OWNER TO {owner}",),
    "a forged comment": ("COMMENT ON DATABASE {db} IS 'fairlead: another owner'",),
    "no connection at all": ("ALTER DATABASE {db} CONNECTION LIMIT 0",),
    "its own logins shut out": ("REVOKE CONNECT ON DATABASE {db} FROM {login}",),
    "no connection limit": ("ALTER DATABASE {db} CONNECTION LIMIT -1",),
    "its database as a template": ("ALTER DATABASE {db} IS_TEMPLATE true",),
    "GRANT to PUBLIC on its database": ("GRANT ALL ON DATABASE {db} TO PUBLIC",),
    "GRANT of its database to the neighbour": ("GRANT CONNECT ON DATABASE {db} TO {neighbour_login}",),
    "REVOKE of the administrator's rights": ("REVOKE ALL ON DATABASE {db} FROM {admin}",),
    "a database of its own": ("CREATE DATABASE accomplice",),
    "a copy of the neighbour": ("CREATE DATABASE accomplice TEMPLATE {neighbour_db}",),
    "the neighbour's database dropped": ("DROP DATABASE {neighbour_db} WITH (FORCE)",),
    "the neighbour's settings": ("ALTER DATABASE {neighbour_db} SET search_path = public",),
    "the ownership table from afar": ("SELECT * FROM fairlead.ownership",),
    # The server
    "a file read": ("SELECT pg_catalog.pg_read_file('/etc/passwd')",),
    "a file copied": ("COPY (SELECT 1) TO '/tmp/fairlead-hostile'",),
    "a program run": ("COPY (SELECT 1) TO PROGRAM 'true'",),
    "an untrusted language": ("CREATE FUNCTION public.evil() RETURNS int LANGUAGE c AS 'libc', 'system'",),
    "an extension that is not trusted": ("CREATE EXTENSION file_fdw",),
    "the server's settings": ("ALTER SYSTEM SET log_statement = 'none'",),
    "the server reloaded": ("SELECT pg_catalog.pg_reload_conf()",),
    "the neighbour's sessions ended": (
        (
            "SELECT 1 / pg_catalog.pg_terminate_backend(pid)::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{neighbour_login}'"
        ),
    ),
    "the administrator's sessions ended": (
        (
            "SELECT 1 / pg_catalog.pg_terminate_backend(pid)::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{admin}'"
        ),
    ),
    "the neighbour's statements read": (
        (
            "SELECT 1 / (query <> '<insufficient privilege>')::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{neighbour_login}'"
        ),
    ),
    "a tablespace": ("CREATE TABLESPACE evil LOCATION '/tmp'",),
    "a subscription": ("CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p",),
    "a replication slot": ("SELECT pg_catalog.pg_create_physical_replication_slot('held')",),
    "a prepared transaction": ("BEGIN", "CREATE TABLE public.held (line text)", "PREPARE TRANSACTION 'held'"),
    # Code that waits for somebody with more rights
    "a function with its definer's rights": (
        (
            "CREATE FUNCTION public.up() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; END $$"
        ),
        "SELECT public.up()",
    ),
    "a function with the administrator's rights": (
        "CREATE FUNCTION public.up() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT 1 $$",
        "ALTER FUNCTION public.up() OWNER TO {admin}",
    ),
    "an aggregate in the name of one that we use": (
        "CREATE FUNCTION public.swallow(text, anyelement) RETURNS text LANGUAGE sql AS $$ SELECT 'none' $$",
        "CREATE AGGREGATE public.json_agg(anyelement) (SFUNC = public.swallow, STYPE = text)",
    ),
    "types in the names of the catalog's": ("CREATE DOMAIN public.oid AS int", "CREATE DOMAIN public.name AS int"),
    "a cast between types of the server": ("CREATE CAST (text AS int) WITH INOUT AS IMPLICIT",),
    "a rule on a catalog": ("CREATE RULE trap AS ON UPDATE TO pg_catalog.pg_database DO INSTEAD NOTHING",),
    "a trigger on a catalog": (
        "CREATE FUNCTION public.caught() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER caught AFTER UPDATE ON pg_catalog.pg_namespace EXECUTE FUNCTION public.caught()",
    ),
    "a policy on a catalog": ("ALTER TABLE pg_catalog.pg_namespace ENABLE ROW LEVEL SECURITY",),
    "rows that nobody may see": (
        "CREATE TABLE public.hidden (line text)",
        "ALTER TABLE public.hidden ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE public.hidden FORCE ROW LEVEL SECURITY",
        "CREATE POLICY none ON public.hidden USING (false)",
    ),
    "a function of the server dropped": ("DROP FUNCTION pg_catalog.current_setting(text)",),
    "the language dropped": ("DROP EXTENSION plpgsql CASCADE",),
    "an ownership table of its own": (
        "CREATE SCHEMA fairlead",
        "CREATE TABLE fairlead.ownership (database text, oid oid, installation text, state text)",
        "INSERT INTO fairlead.ownership VALUES ('{neighbour_db}', 1, 'another', 'dropping')",
    ),
    "the passwords for itself": ("GRANT SELECT ON pg_catalog.pg_authid TO {login}",),
    # Settings of its own roles
    "no time for its own statements": ("SET ROLE none", "ALTER ROLE {login} SET statement_timeout = '1ms'"),
    "nothing to be written by the owner": ("ALTER ROLE {owner} SET default_transaction_read_only = on",),
    "a setting in the administrator's database": (
        "SET ROLE none",
        "ALTER ROLE {login} IN DATABASE fairlead SET search_path = public",
    ),
    "a setting in the neighbour's database": (
        "SET ROLE none",
        "ALTER ROLE {login} IN DATABASE {neighbour_db} SET search_path = public",
    ),
    "a library for its own sessions": (
        "SET ROLE none",
        "ALTER ROLE {login} SET local_preload_libraries = 'nowhere'",
    ),
    "a library for the server": ("SET ROLE none", "ALTER ROLE {login} SET session_preload_libraries = 'nowhere'"),
    "its own statements unlogged": ("SET ROLE none", "ALTER ROLE {login} SET log_statement = 'none'"),
    "settings of all roles": ("ALTER ROLE ALL SET statement_timeout = '1ms'",),
    "triggers switched off": ("SET session_replication_role = replica",),
    "its database read-only": ("ALTER DATABASE {db} SET default_transaction_read_only = on",),
    "a comment on its role": ("COMMENT ON ROLE {owner} IS 'superuser'",),
    "row security passed by": ("SET ROLE none", "ALTER ROLE {login} BYPASSRLS"),
    "a limit of its own": ("SET ROLE none", "ALTER ROLE {login} CONNECTION LIMIT 1000"),
    # Locks and the server's house-keeping
    "a lock on the list of databases": ("BEGIN", "LOCK TABLE pg_catalog.pg_database IN ACCESS EXCLUSIVE MODE"),
    "a lock on the list of roles": ("BEGIN", "LOCK TABLE pg_catalog.pg_authid IN ACCESS SHARE MODE"),
    "advisory locks": ("SELECT pg_catalog.pg_advisory_lock(n) FROM pg_catalog.generate_series(1, 64) AS n",),
    "the administrator's statements cancelled": (
        (
            "SELECT 1 / pg_catalog.pg_cancel_backend(pid)::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{admin}'"
        ),
    ),
    "a checkpoint": ("CHECKPOINT",),
    "the log switched": ("SELECT pg_catalog.pg_switch_wal()",),
    "the statistics forgotten": ("SELECT pg_catalog.pg_stat_reset_shared('bgwriter')",),
    "a folder listed": ("SELECT pg_catalog.pg_ls_dir('.')",),
    "a large object from a file": ("SELECT pg_catalog.lo_import('/etc/passwd')",),
    "a large object into a file": (
        "SELECT pg_catalog.lo_create(4711)",
        "SELECT pg_catalog.lo_export(4711, '/tmp/fairlead-hostile')",
    ),
    "a large object for everybody": (
        "SELECT pg_catalog.lo_create(4711)",
        "GRANT ALL ON LARGE OBJECT 4711 TO PUBLIC",
    ),
    "a way to other servers": ("CREATE EXTENSION dblink",),
}

# What the server allows: it stays within the tenant's own database, or is put back by the provider.
ALLOWED = frozenset({
    "an overloaded function in public", "an overloaded operator in public", "a cast with a trap",
    "a view in the name of a catalog", "a temporary table in the name of a catalog",
    "a schema in the administrator's name", "default privileges for everybody", "all schemas gone",
    "the schema renamed", "the schema in its login's name", "a setting of its own login",
    "an aggregate in the name of one that we use", "types in the names of the catalog's", "rows that nobody may see",
    "an ownership table of its own", "no time for its own statements", "nothing to be written by the owner",
    "a setting in the administrator's database", "a setting in the neighbour's database",
    "a library for its own sessions", "advisory locks", "a large object for everybody",
    # With a warning and no effect: there is nothing that this role could grant or revoke.
    "GRANT to PUBLIC on its database", "GRANT of its database to the neighbour", "REVOKE of the administrator's rights",
    "its own logins shut out",
})  # fmt: skip
