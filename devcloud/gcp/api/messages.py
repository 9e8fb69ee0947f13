"""Bodies of requests, held against the messages of Google's own package; times and links as the API writes them.

A body that is no message is refused as Google's HTTP layer does: `Invalid JSON payload received.`
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from google.cloud import sqladmin_v1
from google.protobuf import json_format

from devcloud.gcp.refusals import bad_request
from devcloud.gcp.state.settings import Json

_BODIES = {
    "instances.insert": sqladmin_v1.DatabaseInstance,
    "instances.patch": sqladmin_v1.DatabaseInstance,
    "instances.update": sqladmin_v1.DatabaseInstance,
    "instances.failover": sqladmin_v1.InstancesFailoverRequest,
    "instances.restoreBackup": sqladmin_v1.InstancesRestoreBackupRequest,
    "instances.clone": sqladmin_v1.InstancesCloneRequest,
    "instances.rotateServerCa": sqladmin_v1.InstancesRotateServerCaRequest,
    "databases.insert": sqladmin_v1.Database,
    "users.insert": sqladmin_v1.User,
    "users.update": sqladmin_v1.User,
    "backupRuns.insert": sqladmin_v1.BackupRun,
    "backups.create": sqladmin_v1.Backup,
}
# The one field whose names are the caller's own.
_MAP = "userLabels"
_UNKNOWN = re.compile(r'has no field named "(?P<name>[^"]*)" at "(?P<path>[^"]*)"')


def body_of(action: str, content: bytes) -> Json:
    """Return the body of a call in the spelling of the API; nulls of a patch stay.

    Raises:
        Refusal: It is no JSON, or no message of the method: an unknown field, a value of another type.
    """
    message = _BODIES.get(action)
    if message is None or not content.strip():
        return {}
    try:
        raw = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise bad_request(f"Invalid JSON payload received. {error}") from None
    return checked(message, raw)


def checked(message: Any, raw: Mapping[str, Any]) -> Json:
    """Return JSON in the spelling of a message.

    Raises:
        Refusal: It is no such message.
    """
    try:
        parsed = json_format.ParseDict(_without_nulls(raw), message.pb()())
    except json_format.ParseError as error:
        raise bad_request(f"Invalid JSON payload received. {_words(str(error))}") from None
    spelled: Json = json_format.MessageToDict(parsed)
    return _with_presence(raw, spelled)


def _without_nulls(raw: Mapping[str, Any]) -> Json:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in raw.items()
        if value is not None
    }


def _words(text: str) -> str:
    match = _UNKNOWN.search(text)
    if match is None:
        return text.partition("\n")[0]
    path = match["path"].partition(".")[2]
    at = f" at '{path}'" if path else ""
    return f'Unknown name "{match["name"]}"{at}: Cannot find field.'


def _with_presence(raw: Mapping[str, Any], spelled: Json, *, is_map: bool = False) -> Json:
    """Return a message's JSON with what it cannot hold: nulls, empty lists, empty objects, plain `false` and zero."""
    result = dict(spelled)
    for name, value in raw.items():
        key = name if is_map else _camel(name)
        match value:
            case dict() if isinstance(spelled.get(key, {}), dict):
                result[key] = _with_presence(value, spelled.get(key, {}), is_map=key == _MAP)
            case None | [] | False | 0 | "":
                result.setdefault(key, value)
            case _:
                pass
    return result


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def time_text(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def etag_of(shown: Json) -> str:
    """Return the etag of a resource: another one whenever it shows something else."""
    return base64.b64encode(hashlib.sha256(msgspec.json.encode(shown, order="sorted")).digest()[:32]).decode()


def link(version: str, path: str) -> str:
    """Return a selfLink; a program of Google's gives it to people, nothing here follows it."""
    prefix = "sql/v1beta4" if version == "v1beta4" else "v1"
    return f"https://sqladmin.googleapis.com/{prefix}/{path}"
