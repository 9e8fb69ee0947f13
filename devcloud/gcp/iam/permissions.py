"""Which permission each method asks for, and what roles hold. Pure.

Source: "Cloud SQL Admin API permissions" and "Cloud SQL roles and permissions" of Cloud SQL's pages; operations are
read with `cloudsql.instances.get`.
"""

PERMISSIONS = {
    "instances.insert": "cloudsql.instances.create",
    "instances.get": "cloudsql.instances.get",
    "instances.list": "cloudsql.instances.list",
    "instances.patch": "cloudsql.instances.update",
    "instances.update": "cloudsql.instances.update",
    "instances.delete": "cloudsql.instances.delete",
    "instances.restart": "cloudsql.instances.restart",
    "instances.failover": "cloudsql.instances.failover",
    "instances.restoreBackup": "cloudsql.instances.restoreBackup",
    "instances.clone": "cloudsql.instances.clone",
    "instances.addServerCa": "cloudsql.instances.addServerCa",
    "instances.rotateServerCa": "cloudsql.instances.rotateServerCa",
    "instances.listServerCas": "cloudsql.instances.listServerCas",
    "connect.get": "cloudsql.instances.get",
    "operations.get": "cloudsql.instances.get",
    "operations.list": "cloudsql.instances.get",
    "databases.insert": "cloudsql.databases.create",
    "databases.get": "cloudsql.databases.get",
    "databases.list": "cloudsql.databases.list",
    "databases.delete": "cloudsql.databases.delete",
    "users.insert": "cloudsql.users.create",
    "users.get": "cloudsql.users.get",
    "users.list": "cloudsql.users.list",
    "users.update": "cloudsql.users.update",
    "users.delete": "cloudsql.users.delete",
    "backupRuns.insert": "cloudsql.backupRuns.create",
    "backupRuns.get": "cloudsql.backupRuns.get",
    "backupRuns.list": "cloudsql.backupRuns.list",
    "backupRuns.delete": "cloudsql.backupRuns.delete",
    "backups.create": "cloudsql.backupRuns.create",
    "backups.get": "cloudsql.backupRuns.get",
    "backups.list": "cloudsql.backupRuns.list",
    "backups.delete": "cloudsql.backupRuns.delete",
    "projects.get": "resourcemanager.projects.get",
}
"""By method; what is not here asks for none."""

_ALL = frozenset(PERMISSIONS.values())
_READ = frozenset(permission for permission in _ALL if permission.endswith((".get", ".list", ".listServerCas")))
ROLES: dict[str, frozenset[str]] = {
    "roles/owner": _ALL,
    "roles/cloudsql.admin": _ALL,
    "roles/cloudsql.viewer": _READ,
    "roles/cloudsql.editor": _READ
    | {
        *("cloudsql.instances.update", "cloudsql.instances.restart", "cloudsql.instances.failover"),
        *("cloudsql.instances.addServerCa", "cloudsql.instances.rotateServerCa", "cloudsql.backupRuns.create"),
        *("cloudsql.databases.create",),
    },
    "roles/cloudsql.client": frozenset({"cloudsql.instances.get"}),
    "roles/browser": frozenset({"resourcemanager.projects.get"}),
}
"""The predefined roles, as far as these permissions go."""
