"""Resources as an answer shows them: links, kinds, etags. Shapes are those of the recorded answers."""

import base64
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from devcloud.gcp.api.messages import etag_of, link, time_text
from devcloud.gcp.state.model import Backup, DatabaseOf, Instance, User
from devcloud.gcp.state.settings import Json
from devcloud.simulator.operations import Operation, OperationError

_IAM_DOMAIN = ".gserviceaccount.com"


def instance_view(project: str, shown: Json, version: str) -> Json:
    """Return an instance."""
    path = f"projects/{project}/instances/{shown['name']}"
    return {**shown, "etag": etag_of(shown), "kind": "sql#instance", "selfLink": link(version, path)}


def operation_view(operation: Operation, version: str) -> Json:
    """Return an operation; it is DONE with an `error` where it failed."""
    effect = operation.effect
    project, name = operation.target.split(":", 1)
    view: Json = {
        "kind": "sql#operation",
        "name": operation.id,
        "operationType": operation.kind,
        "status": operation.status,
        "insertTime": time_text(operation.created_at),
        "selfLink": link(version, f"projects/{project}/operations/{operation.id}"),
        "targetId": name,
        "targetLink": link(version, f"projects/{project}/instances/{name}"),
        "targetProject": project,
        "user": effect.get("user", ""),
    }
    if operation.status != "PENDING":
        view["startTime"] = time_text(operation.runs_at)
    if operation.ended_at is not None:
        view["endTime"] = time_text(max(operation.ended_at, operation.runs_at))
    if operation.status == "DONE" and operation.error is not None:
        view["error"] = {"kind": "sql#operationErrors", "errors": [_error(operation.error)]}
    if "backup" in effect and operation.kind in {"BACKUP_VOLUME", "DELETE_BACKUP"}:
        view["backupContext"] = {"kind": "sql#backupContext", "backupId": effect["backup"].rpartition("/")[2]}
    return view


def _error(error: OperationError) -> Json:
    return {"kind": "sql#operationError", "code": error.code, "message": error.message}


def user_view(instance: Instance, user: User) -> Json:
    """Return a user; no answer has a password."""
    view: Json = {"host": "", "instance": instance.name, "kind": "sql#user", "name": user.name}
    view["project"] = instance.project
    if user.kind != "BUILT_IN":
        view["type"] = user.kind
        view["iamEmail"] = user.name + (_IAM_DOMAIN if user.kind == "CLOUD_IAM_SERVICE_ACCOUNT" else "")
    if user.roles:
        view["databaseRoles"] = list(user.roles)
    return {**view, "etag": etag_of(view)}


def database_view(instance: Instance, database: DatabaseOf, version: str) -> Json:
    """Return a database."""
    path = f"projects/{instance.project}/instances/{instance.name}/databases/{database.name}"
    view: Json = {
        "charset": database.charset,
        "collation": database.collation,
        "instance": instance.name,
        "kind": "sql#database",
        "name": database.name,
        "project": instance.project,
        "selfLink": link(version, path),
    }
    return {**view, "etag": etag_of(view)}


def run_view(backup: Backup, version: str) -> Json:
    """Return a backup as the run that made it."""
    path = f"projects/{backup.project}/instances/{backup.instance}/backupRuns/{backup.id}"
    view: Json = {
        "backupKind": "SNAPSHOT",
        "databaseVersion": backup.version,
        "enqueuedTime": time_text(backup.at),
        "id": backup.id,
        "instance": backup.instance,
        "kind": "sql#backupRun",
        "location": backup.region,
        "selfLink": link(version, path),
        "startTime": time_text(backup.at),
        "status": backup.state,
        "type": backup.kind,
        "windowStartTime": time_text(backup.at),
    }
    return _ended(backup, view)


def backup_view(backup: Backup, version: str) -> Json:
    """Return a backup by itself, which may outlive its instance."""
    name = f"projects/{backup.project}/backups/{backup.id}"
    view: Json = {
        "backupKind": "SNAPSHOT",
        "backupInterval": {"startTime": time_text(backup.at), "endTime": time_text(backup.ended_at or backup.at)},
        "databaseVersion": backup.version,
        "instance": backup.instance,
        "instanceSettings": backup.settings,
        "kind": "sql#backup",
        "location": backup.region,
        "name": name,
        "selfLink": link(version, name),
        "state": backup.state,
        "type": backup.kind,
    }
    if backup.expires_at is not None:
        view["expiryTime"] = time_text(backup.expires_at)
    if backup.gone_at is not None:
        view["instanceDeletionTime"] = time_text(backup.gone_at)
    return {name: value for name, value in _ended(backup, view).items() if name != "endTime"}


def _ended(backup: Backup, view: Json) -> Json:
    if backup.description:
        view["description"] = backup.description
    if backup.ended_at is not None:
        view["endTime"] = time_text(backup.ended_at)
    if backup.state == "FAILED":
        view["error"] = {"kind": "sql#operationError", "code": "INTERNAL_ERROR", "message": "The backup failed."}
    return view


def certificate_view(pem: bytes, instance: str) -> Json:
    """Return the certificate of an instance's authority."""
    certificate = x509.load_pem_x509_certificate(pem)
    return {
        "cert": pem.decode().strip(),
        "certSerialNumber": str(certificate.serial_number),
        "commonName": certificate.subject.rfc4514_string(),
        "createTime": time_text(certificate.not_valid_before_utc),
        "expirationTime": time_text(certificate.not_valid_after_utc),
        "instance": instance,
        "kind": "sql#sslCert",
        "sha1Fingerprint": certificate.fingerprint(hashes.SHA1()).hex(),  # noqa: S303 - the API's own field
    }


def service_agent(number: str, name: str) -> str:
    """Return the service account that Google makes for an instance."""
    suffix = base64.b32encode(hashlib.sha256(name.encode()).digest()).decode().lower()[:6]
    return f"p{number}-{suffix}@gcp-sa-cloud-sql.iam.gserviceaccount.com"
