"""The methods of the Cloud SQL Admin API that are simulated, and those that are refused by name. Pure.

The paths are those of the discovery documents of v1 and v1beta4; a test compares them. A method of the documents that
is not here is answered as one that is not simulated.
"""

import msgspec

from devcloud.simulator.rest import Route, Routes

INSTANCES = "projects/{project}/instances"
INSTANCE = f"{INSTANCES}/{{instance}}"
_METHODS = (
    Route("GET", INSTANCES, "instances.list"),
    Route("POST", INSTANCES, "instances.insert"),
    Route("GET", INSTANCE, "instances.get"),
    Route("PATCH", INSTANCE, "instances.patch"),
    Route("PUT", INSTANCE, "instances.update"),
    Route("DELETE", INSTANCE, "instances.delete"),
    Route("POST", f"{INSTANCE}/restart", "instances.restart"),
    Route("POST", f"{INSTANCE}/failover", "instances.failover"),
    Route("POST", f"{INSTANCE}/restoreBackup", "instances.restoreBackup"),
    Route("POST", f"{INSTANCE}/clone", "instances.clone"),
    Route("POST", f"{INSTANCE}/addServerCa", "instances.addServerCa"),
    Route("POST", f"{INSTANCE}/rotateServerCa", "instances.rotateServerCa"),
    Route("GET", f"{INSTANCE}/listServerCas", "instances.listServerCas"),
    Route("GET", f"{INSTANCE}/connectSettings", "connect.get"),
    Route("GET", f"{INSTANCE}/databases", "databases.list"),
    Route("POST", f"{INSTANCE}/databases", "databases.insert"),
    Route("GET", f"{INSTANCE}/databases/{{database}}", "databases.get"),
    Route("DELETE", f"{INSTANCE}/databases/{{database}}", "databases.delete"),
    Route("GET", f"{INSTANCE}/users", "users.list"),
    Route("POST", f"{INSTANCE}/users", "users.insert"),
    Route("PUT", f"{INSTANCE}/users", "users.update"),
    Route("DELETE", f"{INSTANCE}/users", "users.delete"),
    Route("GET", f"{INSTANCE}/users/{{name}}", "users.get"),
    Route("GET", f"{INSTANCE}/backupRuns", "backupRuns.list"),
    Route("POST", f"{INSTANCE}/backupRuns", "backupRuns.insert"),
    Route("GET", f"{INSTANCE}/backupRuns/{{id}}", "backupRuns.get"),
    Route("DELETE", f"{INSTANCE}/backupRuns/{{id}}", "backupRuns.delete"),
    Route("GET", "projects/{project}/backups", "backups.list"),
    Route("POST", "projects/{project}/backups", "backups.create"),
    Route("GET", "projects/{project}/backups/{backup}", "backups.get"),
    Route("DELETE", "projects/{project}/backups/{backup}", "backups.delete"),
    Route("GET", "projects/{project}/operations", "operations.list"),
    Route("GET", "projects/{project}/operations/{operation}", "operations.get"),
    Route("GET", "projects/{project}/tiers", "tiers.list"),
    Route("GET", "flags", "flags.list"),
)
PREFIXES = {"v1": "v1", "v1beta4": "sql/v1beta4"}
"""Where each version of the API begins."""
_VERSIONED = {
    version: Routes([msgspec.structs.replace(method, path=f"{prefix}/{method.path}") for method in _METHODS])
    for version, prefix in PREFIXES.items()
}
# cloudresourcemanager.googleapis.com: who a project is.
_PROJECTS = Routes((Route("GET", "v3/projects/{project}", "projects.get"),))
MUTATING = frozenset(route.action for route in _METHODS if route.method != "GET")
"""The methods that change something."""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """Which method of which version a request calls, with the parameters of its path."""

    version: str
    action: str
    parameters: dict[str, str]


def methods() -> tuple[Route, ...]:
    """Return the methods that are simulated, without the version's prefix."""
    return _METHODS


def called(method: str, path: str) -> Called | None:
    """Return what a request calls, None for nothing that is simulated."""
    for version, routes in {**_VERSIONED, "v3": _PROJECTS}.items():
        match = routes.match(method, path)
        if match is not None:
            return Called(version=version, action=match.action, parameters=dict(match.parameters))
    return None


def is_of_the_api(path: str) -> bool:
    """Return whether a path begins as one of the Cloud SQL Admin API."""
    return any(path.strip("/").startswith(f"{prefix}/") for prefix in PREFIXES.values())
