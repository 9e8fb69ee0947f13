"""The calls of the Cloud SQL Admin API that are made: which client of google-cloud-sql, which path and verb. Pure.

The paths are those of the API's discovery document, v1; a test compares the table with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """One call: a service and a method as the package names them, a verb and a path of HTTP, whether it only reads.

    `{project}` and the like in the path are fields of the request; `+` before one says that it holds slashes.
    """

    service: str
    name: str
    verb: str
    path: str

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.verb == "GET"

    @property
    def request(self) -> str:
        """The name of the request's message."""
        prefix = "" if self.service == "SqlBackups" else self.service
        return f"{prefix}{self.name}Request"


_PROJECT = "v1/projects/{project}"
_INSTANCE = f"{_PROJECT}/instances/{{instance}}"
METHODS: Mapping[str, Method] = {
    "instances.get": Method("SqlInstances", "Get", "GET", _INSTANCE),
    "instances.list": Method("SqlInstances", "List", "GET", f"{_PROJECT}/instances"),
    "instances.insert": Method("SqlInstances", "Insert", "POST", f"{_PROJECT}/instances"),
    "instances.patch": Method("SqlInstances", "Patch", "PATCH", _INSTANCE),
    "instances.delete": Method("SqlInstances", "Delete", "DELETE", _INSTANCE),
    "instances.restoreBackup": Method("SqlInstances", "RestoreBackup", "POST", f"{_INSTANCE}/restoreBackup"),
    "instances.clone": Method("SqlInstances", "Clone", "POST", f"{_INSTANCE}/clone"),
    "instances.listServerCas": Method("SqlInstances", "ListServerCas", "GET", f"{_INSTANCE}/listServerCas"),
    "operations.list": Method("SqlOperations", "List", "GET", f"{_PROJECT}/operations"),
    "operations.get": Method("SqlOperations", "Get", "GET", f"{_PROJECT}/operations/{{operation}}"),
    "databases.list": Method("SqlDatabases", "List", "GET", f"{_INSTANCE}/databases"),
    "databases.get": Method("SqlDatabases", "Get", "GET", f"{_INSTANCE}/databases/{{database}}"),
    "databases.insert": Method("SqlDatabases", "Insert", "POST", f"{_INSTANCE}/databases"),
    "databases.delete": Method("SqlDatabases", "Delete", "DELETE", f"{_INSTANCE}/databases/{{database}}"),
    "users.list": Method("SqlUsers", "List", "GET", f"{_INSTANCE}/users"),
    "users.insert": Method("SqlUsers", "Insert", "POST", f"{_INSTANCE}/users"),
    "users.update": Method("SqlUsers", "Update", "PUT", f"{_INSTANCE}/users"),
    "users.delete": Method("SqlUsers", "Delete", "DELETE", f"{_INSTANCE}/users"),
    "backups.get": Method("SqlBackups", "GetBackup", "GET", "v1/{+name}"),
    "backups.list": Method("SqlBackups", "ListBackups", "GET", "v1/{+parent}/backups"),
}


def by_rpc() -> Mapping[str, Method]:
    """Return the methods by the path under which the package's transport calls them."""
    return {f"/google.cloud.sql.v1.{method.service}Service/{method.name}": method for method in METHODS.values()}
