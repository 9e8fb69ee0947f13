"""What the API server refuses, in the words and codes of apimachinery's `api/errors` and `util/validation/field`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from runtime.objects import Object, Resource, dumps


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field: a cause of an Invalid answer."""

    kind: str
    field: str
    message: str

    def cause(self) -> Object:
        """Return it as `details.causes` has it."""
        return {"reason": self.kind, "message": self.message, "field": self.field}


class RefusedError(Exception):
    """A request is refused; `status` is the answer's body."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self.status |= {"message": message, "reason": reason}
        if details:
            self.status["details"] = details
        self.status["code"] = code


def quoted(text: str) -> str:
    """Return a text as Go's %q."""
    return dumps(text).decode()


def _value(value: Any) -> str:
    return dumps(value).decode()


def invalid(field: str, value: Any, detail: str) -> Fault:
    """Return the fault of a value that is not allowed."""
    return Fault("FieldValueInvalid", field, f"Invalid value: {_value(value)}: {detail}")


def mistyped(field: str, value: Any, detail: str) -> Fault:
    """Return the fault of a value of another type."""
    return Fault("FieldValueTypeInvalid", field, f"Invalid value: {_value(value)}: {detail}")


def required(field: str, detail: str = "") -> Fault:
    """Return the fault of a field that is missing."""
    return Fault("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def duplicate(field: str, value: Any) -> Fault:
    """Return the fault of a value that is there twice."""
    return Fault("FieldValueDuplicate", field, f"Duplicate value: {_value(value)}")


def forbidden_field(field: str, detail: str) -> Fault:
    """Return the fault of a value that may not be there now."""
    return Fault("FieldValueForbidden", field, f"Forbidden: {detail}")


def unsupported(field: str, value: Any, values: Sequence[Any]) -> Fault:
    """Return the fault of a value that is none of these."""
    names = ", ".join(quoted(part if isinstance(part, str) else _value(part)) for part in values)
    return Fault("FieldValueNotSupported", field, f"Unsupported value: {_value(value)}: supported values: {names}")


def too_long(field: str, most: int) -> Fault:
    """Return the fault of a text with more bytes than that."""
    unit = "byte" if most == 1 else "bytes"
    return Fault("FieldValueTooLong", field, f"Too long: may not be more than {most} {unit}")


def too_many(field: str, count: int, most: int) -> Fault:
    """Return the fault of a list with more items than that."""
    unit = "item" if most == 1 else "items"
    return Fault("FieldValueTooMany", field, f"Too many: {count}: must have at most {most} {unit}")


def group_resource(resource: Resource) -> str:
    """Return a resource as messages name it."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(group: str, kind: str, name: str, causes: Sequence[Object] = ()) -> Object:
    named = {"name": name, "group": group, "kind": kind}
    return {field: text for field, text in named.items() if text} | ({"causes": list(causes)} if causes else {})


def _of_resource(resource: Resource, name: str) -> Object:
    return _details(resource.group, resource.plural, name)


def not_found(resource: Resource, name: str) -> RefusedError:
    """Return 404 of an object."""
    message = f"{group_resource(resource)} {quoted(name)} not found"
    return RefusedError(HTTPStatus.NOT_FOUND, "NotFound", message, _of_resource(resource, name))


def not_served() -> RefusedError:
    """Return 404 of a path."""
    return RefusedError(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str, *, is_ending: bool) -> RefusedError:
    """Return 409 of a name that is taken."""
    message = f"{group_resource(resource)} {quoted(name)} already exists"
    if is_ending:
        message = f"object is being deleted: {message}"
    return RefusedError(HTTPStatus.CONFLICT, "AlreadyExists", message, _of_resource(resource, name))


def conflict(resource: Resource, name: str, detail: str) -> RefusedError:
    """Return 409 of a write that was late."""
    message = f"Operation cannot be fulfilled on {group_resource(resource)} {quoted(name)}: {detail}"
    return RefusedError(HTTPStatus.CONFLICT, "Conflict", message, _of_resource(resource, name))


def apply_conflict(message: str, causes: Sequence[Object]) -> RefusedError:
    """Return 409 of an apply that met other managers."""
    return RefusedError(HTTPStatus.CONFLICT, "Conflict", message, {"causes": list(causes)})


def forbidden(resource: Resource, name: str, detail: str, causes: Sequence[Object] = ()) -> RefusedError:
    """Return 403 of admission."""
    message = f"{group_resource(resource)} {quoted(name)} is forbidden: {detail}"
    details = _details(resource.group, resource.plural, name, causes)
    return RefusedError(HTTPStatus.FORBIDDEN, "Forbidden", message, details)


def unfit(group: str, kind: str, name: str, faults: Sequence[Fault]) -> RefusedError:
    """Return 422 of an object with faults."""
    lines = list(dict.fromkeys(f"{fault.field}: {fault.message}" for fault in faults))
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    message = (
        f"{kind}.{group} {quoted(name)} is invalid: {listed}"
        if group
        else f"{kind} {quoted(name)} is invalid: {listed}"
    )
    details = _details(group, kind, name, [fault.cause() for fault in faults])
    return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def bad_request(message: str) -> RefusedError:
    """Return 400."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def internal(message: str) -> RefusedError:
    """Return 500 of an error that the API server has no word for."""
    return RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def expired(message: str) -> RefusedError:
    """Return 410 of a version that is no more known."""
    return RefusedError(HTTPStatus.GONE, "Expired", message)


def failed_patch() -> RefusedError:
    """Return 422 of a JSON patch that cannot be carried out."""
    message = "the server rejected our request due to an error in our request"
    return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, {})
