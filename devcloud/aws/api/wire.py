"""The Query protocol (AWS API Reference, "Making API requests"): form-encoded requests in, XML out.

Which parameters an action has, how lists are numbered, which element holds what: all of it is read from botocore's
service models, the same files from which boto3 and the aws command line make their side.
"""

import functools
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from botocore.loaders import Loader
from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape

from devcloud.aws.refusals import COMMON_STATUS, invalid_value, missing
from devcloud.simulator.messages import Refusal

_SERVICES = {"2014-10-31": "rds", "2011-06-15": "sts"}
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

Tree = dict[str, Any]
"""A request or an answer by the service's own names: text, numbers, booleans, lists and trees."""


class Rendered(msgspec.Struct, frozen=True):
    """XML that was made before: the inside of one element."""

    xml: str


@functools.cache
def service(name: str) -> ServiceModel:
    """Return botocore's model of `rds` or `sts`."""
    return ServiceModel(Loader().load_service_model(name, "service-2"), name)


def operation(fields: Mapping[str, str]) -> OperationModel:
    """Find which operation of which service a request calls.

    Raises:
        Refusal: `InvalidAction`.
    """
    action, version = fields.get("Action", ""), fields.get("Version", "")
    service_name = _SERVICES.get(version)
    if service_name is None or action not in service(service_name).operation_names:
        raise Refusal("InvalidAction", f"Could not find operation {action} for version {version}")
    return service(service_name).operation_model(action)


def parse(model: OperationModel, fields: Mapping[str, str]) -> Tree:
    """Turn form fields into the tree of an operation's input; what is not in the model is ignored, as the service does.

    Raises:
        Refusal: A required parameter is missing, or a number, boolean or time is none.
    """
    nested: Tree = {}
    for key, value in fields.items():
        _plant(nested, key.split("."), value)
    shape = model.input_shape
    return {} if shape is None else _structure(shape, nested)


def _plant(tree: Tree, path: list[str], value: str) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree[path[-1]] = value


def _structure(shape: StructureShape, nested: Tree) -> Tree:
    result: Tree = {}
    for name, member in shape.members.items():
        key = member.serialization.get("name", name)
        if key in nested:
            result[name] = _value(member, nested[key], name)
        elif name in shape.required_members:
            raise missing(name)
    return result


def _value(shape: Shape, value: Any, name: str) -> Any:
    match shape.type_name:
        case "structure":
            return _structure(shape, value if isinstance(value, dict) else {})
        case "list":
            return _list(shape, value, name)
        case "integer" | "long":
            return _number(value, name)
        case "boolean":
            return _boolean(value, name)
        case "timestamp":
            return _time(value, name)
        case _:
            return str(value)


def _list(shape: ListShape, value: Any, name: str) -> list[Any]:
    if not isinstance(value, dict):
        # `Tags=` is how the protocol writes an empty list.
        return []
    numbered = value
    for wrapper in (shape.member.serialization.get("name", "member"), "member"):
        if isinstance(value.get(wrapper), dict):
            numbered = value[wrapper]
    order = sorted((int(number), value) for number, value in numbered.items() if number.isdigit())
    return [_value(shape.member, value, name) for _, value in order]


def _number(value: Any, name: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise invalid_value(f"Invalid value {value} for {name}: expected an integer") from None


def _boolean(value: Any, name: str) -> bool:
    if value not in {"true", "false", "1", "0"}:
        raise invalid_value(f"Invalid value {value} for {name}: expected true or false")
    return value in {"true", "1"}


def _time(value: Any, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid_value(f"Invalid value {value} for {name}: expected a time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def answer(model: OperationModel, content: Mapping[str, Any], request_id: str) -> bytes:
    """Write an answer as the service does."""
    shape = model.output_shape
    result = ""
    if shape is not None:
        wrapper = shape.serialization.get("resultWrapper", f"{model.name}Result")
        result = f"<{wrapper}>{element(shape, content)}</{wrapper}>"
    namespace = model.service_model.metadata["xmlNamespace"]
    return (
        f'<{model.name}Response xmlns="{namespace}">{result}'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{model.name}Response>"
    ).encode()


def element(shape: Shape, value: Any) -> str:
    """Write the inside of one element; None and names outside the model are left out."""
    if isinstance(value, Rendered):
        return value.xml
    match shape.type_name:
        case "structure":
            return "".join(
                _wrap(member.serialization.get("name", name), member, value[name])
                for name, member in shape.members.items()
                if value.get(name) is not None
            )
        case "list":
            name = shape.member.serialization.get("name", "member")
            return "".join(_wrap(name, shape.member, item) for item in value)
        case "boolean":
            return "true" if value else "false"
        case "timestamp":
            return value if isinstance(value, str) else time_text(value)
        case _:
            return escape(_CONTROL_CHARACTERS.sub("", str(value)))


def _wrap(name: str, shape: Shape, value: Any) -> str:
    inside = element(shape, value)
    return f"<{name}>{inside}</{name}>" if inside else f"<{name}/>"


def time_text(moment: datetime) -> str:
    """Write a time with milliseconds, as `2026-01-31T12:00:00.000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def refusal(error: Refusal, request_id: str, namespace: str) -> tuple[int, bytes]:
    """Write a refusal; return the HTTP status and the body."""
    status = error.status or _model_status().get(error.code) or COMMON_STATUS.get(error.code, 400)
    kind = "Receiver" if status >= 500 else "Sender"  # noqa: PLR2004 - RFC 9110, section 15.6
    body = (
        f'<ErrorResponse xmlns="{namespace}"><Error><Type>{kind}</Type><Code>{escape(error.code)}</Code>'
        f"<Message>{escape(error.message)}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    return status, body.encode()


@functools.cache
def _model_status() -> dict[str, int]:
    models = [service(name) for name in ("rds", "sts")]
    faults = [model.shape_for(name).metadata.get("error") for model in models for name in model.shape_names]
    return {fault["code"]: int(fault["httpStatusCode"]) for fault in faults if fault and "httpStatusCode" in fault}
