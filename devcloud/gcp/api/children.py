"""The methods of users and databases. They reach a running instance alone, and take its turn as any operation does."""

import re
from collections.abc import Sequence

from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.starting import Kind, started
from devcloud.gcp.api.views import database_view, user_view
from devcloud.gcp.databases import ADMINISTRATOR, IAM_ROLES
from devcloud.gcp.refusals import in_progress, invalid, not_running, wrong_state
from devcloud.gcp.state.model import Instance, User
from devcloud.gcp.state.settings import Json
from devcloud.simulator.messages import Refusal

_LONGEST = 63
_ROLE = re.compile(r"[a-z_][a-z0-9_]*")
_SYSTEM_DATABASES = frozenset({"postgres", "cloudsqladmin", "template0", "template1"})
_KINDS = frozenset({"BUILT_IN", *IAM_ROLES})


def _read(cloud: Cloud, call: Call) -> Instance:
    return cloud.world.running(call.project, call.instance)


def _written(cloud: Cloud, call: Call) -> Instance:
    """Return the instance of a change; beside an open operation nothing else is looked at."""
    instance = cloud.world.instance(call.project, call.instance)
    if cloud.operations.open_of(instance.key) is not None:
        raise in_progress(cloud.behaviour.in_progress_status)
    if instance.state != "RUNNABLE":
        raise wrong_state()
    if instance.is_stopped:
        raise not_running()
    return instance


# Users


def list_users(cloud: Cloud, call: Call) -> Json:
    """Return the users, of a running instance alone."""
    instance = _read(cloud, call)
    answer: Json = {"kind": "sql#usersList"}
    if instance.users:
        answer["items"] = [user_view(instance, instance.users[name]) for name in sorted(instance.users)]
    return answer


def get_user(cloud: Cloud, call: Call) -> Json:
    """Return a user."""
    instance = _read(cloud, call)
    return user_view(instance, _user(instance, call.parameters["name"]))


def insert_user(cloud: Cloud, call: Call) -> Json:
    """Create a user: with a password, or of IAM without one.

    A user with a password who is there already gets the new one, and nothing says so: that is how Terraform gives
    `postgres` a password (terraform-provider-google, thread 7873; terraform-google-sql-db, pull request 461).
    """
    instance, body = _written(cloud, call), call.body
    name, kind = str(body.get("name", "")), str(body.get("type", "BUILT_IN"))
    if kind not in _KINDS:
        raise invalid(f"User type {kind} is not simulated.")
    _refuse_name(name)
    if body.get("host"):
        raise invalid("Host is not supported for PostgreSQL users.")
    _refuse_taken(instance, name, kind)
    password = str(body.get("password", ""))
    if kind != "BUILT_IN" and password:
        raise invalid("Password cannot be set for IAM users.")
    if kind == "BUILT_IN":
        _refuse_password(instance, name, password)
    if kind == "CLOUD_IAM_SERVICE_ACCOUNT" and name.endswith(".gserviceaccount.com"):
        raise invalid(
            'Database username for Cloud IAM service account should be created without ".gserviceaccount.com" suffix.'
        )
    if kind == "CLOUD_IAM_USER" and "@" not in name:
        raise invalid(
            f'Database user cannot be created. Provided Cloud IAM user account "{name}" is not in valid format. Please '
            "specify full email address Eg: iamuser@gmail.com.."
        )
    user: Json = {"name": name, "type": kind, "password": password, "roles": _roles(body.get("databaseRoles", []))}
    user["exists"] = name in instance.users
    return started(cloud, call, instance.name, Kind("CREATE_USER"), **user)


def update_user(cloud: Cloud, call: Call) -> Json:
    """Give a user another password, or more roles: those of the query, while those of the body are passed over.

    Source: `databaseRoles` of users.update in the discovery document.
    """
    instance, body = _written(cloud, call), call.body
    user = _user(instance, call.parameters.get("name", "") or str(body.get("name", "")))
    password = str(body.get("password", ""))
    if user.kind != "BUILT_IN" and password:
        raise invalid("Password cannot be set for IAM users.")
    if password:
        _refuse_password(instance, user.name, password)
    change: Json = {"name": user.name, "password": password, "roles": _roles(call.repeated("databaseRoles"))}
    return started(cloud, call, instance.name, Kind("UPDATE_USER"), **change)


def delete_user(cloud: Cloud, call: Call) -> Json:
    """Delete a user; what still owns something fails, at the end of the operation."""
    instance = _written(cloud, call)
    user = _user(instance, call.parameters.get("name", ""))
    if user.name == ADMINISTRATOR:
        raise invalid(f"failed to delete user {ADMINISTRATOR}: the default user cannot be deleted.")
    return started(cloud, call, instance.name, Kind("DELETE_USER"), name=user.name)


def _refuse_taken(instance: Instance, name: str, kind: str) -> None:
    """Refuse the name of a user, unless both have a password (k8s-config-connector, thread 2416).

    Raises:
        Refusal: One of the two is of IAM.
    """
    present = instance.users.get(name)
    if present is not None and (kind, present.kind) != ("BUILT_IN", "BUILT_IN"):
        raise invalid(f"Database user '{name}' cannot be created because a user exists with the same name.")


def _user(instance: Instance, name: str) -> User:
    if name not in instance.users:
        raise Refusal("notFound", f"The user {name} does not exist." if name else "Not Found")
    return instance.users[name]


def _roles(wanted: Sequence[object]) -> list[str]:
    roles = [str(role) for role in wanted]
    if any(_ROLE.fullmatch(role) is None for role in roles):
        raise invalid("Invalid database role.")
    return roles


def _refuse_name(name: str) -> None:
    if not name or len(name.encode()) > _LONGEST or "\0" in name:
        raise invalid(f"Invalid name: it has 1 to {_LONGEST} bytes.")
    if name.startswith(("pg_", "cloudsql")):
        raise invalid(f'role name "{name}" is reserved.')


def _refuse_password(instance: Instance, name: str, password: str) -> None:
    """Refuse a password against the instance's passwordValidationPolicy.

    Raises:
        Refusal: It is too short, too simple, or holds the user's name; the sentence does not repeat it.
    """
    if not password:
        raise invalid("A password is required for built-in users.")
    policy = instance.shown["settings"].get("passwordValidationPolicy", {})
    if not policy.get("enablePasswordPolicy"):
        return
    if len(password) < int(policy.get("minLength", 0)):
        raise invalid("The password is shorter than the instance's password policy asks for.")
    classes = (str.islower, str.isupper, str.isdigit, lambda character: not character.isalnum())
    if policy.get("complexity") == "COMPLEXITY_DEFAULT" and not all(any(map(has, password)) for has in classes):
        raise invalid("The password is simpler than the instance's password policy asks for.")
    if policy.get("disallowUsernameSubstring") and name in password:
        raise invalid("The password contains the user's name.")


# Databases


def list_databases(cloud: Cloud, call: Call) -> Json:
    """Return the databases, of a running instance alone."""
    instance = _read(cloud, call)
    names = sorted(instance.databases)
    items = [database_view(instance, instance.databases[name], call.version) for name in names]
    return {"kind": "sql#databasesList", "items": items}


def get_database(cloud: Cloud, call: Call) -> Json:
    """Return a database."""
    instance = _read(cloud, call)
    _refuse_absent(instance, call.parameters["database"])
    return database_view(instance, instance.databases[call.parameters["database"]], call.version)


def insert_database(cloud: Cloud, call: Call) -> Json:
    """Create a database."""
    instance, body = _written(cloud, call), call.body
    name = str(body.get("name", ""))
    _refuse_name(name)
    if name in instance.databases or name in _SYSTEM_DATABASES:
        raise invalid(f'failed to create database {name}. Detail: pq: database "{name}" already exists.')
    charset, collation = str(body.get("charset") or "UTF8"), str(body.get("collation") or "en_US.UTF8")
    if charset != "UTF8":
        raise invalid(f"Charset {charset} is not simulated, UTF8 alone.")
    database: Json = {"name": name, "charset": charset, "collation": collation}
    return started(cloud, call, instance.name, Kind("CREATE_DATABASE"), **database)


def delete_database(cloud: Cloud, call: Call) -> Json:
    """Delete a database; one with sessions fails, at the end of the operation."""
    instance, name = _written(cloud, call), call.parameters["database"]
    _refuse_absent(instance, name)
    if name in _SYSTEM_DATABASES:
        raise invalid(f"failed to delete database {name}. Detail: a system database cannot be deleted.")
    return started(cloud, call, instance.name, Kind("DELETE_DATABASE"), name=name)


def _refuse_absent(instance: Instance, name: str) -> None:
    if name not in instance.databases:
        raise Refusal("notFound", "Not Found")
