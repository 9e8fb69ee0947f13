"""Turns an HTTP answer of the API server into one of the types of `runtime.errors`. Pure."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import msgspec

from runtime.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    Cause,
    Forbidden,
    Gone,
    Invalid,
    NamespaceTerminating,
    NotFound,
    NotGranted,
    TooManyRequests,
    Unavailable,
    WriteConflict,
)

_SHOWN_BODY_CHARS: Final = 200

# The API server answers 500, not 422, when an apply's body does not fit the schema; the text is the only sign.
_TYPED_PATCH: Final = "failed to create typed patch object"

# What distinguishes an authorizer's refusal from that of an admission plugin, a quota's for one (apiserver's
# responsewriters.Forbidden): 'User "..." cannot get resource "secrets" in API group "" in the namespace "shop"'.
_NOT_GRANTED: Final = re.compile(r'User "[^"]*" cannot [a-z]+ (?:resource|path) "')


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_DECODER = msgspec.json.Decoder(_Status)


def from_answer(status: int, body: bytes, *, retry_after: str = "") -> ApiError:
    """Return the error of an answer outside 2xx.

    `body` is a `metav1.Status` or whatever a proxy in between wrote; `retry_after` is the header's value in seconds.
    Codes and reasons: Kubernetes API conventions, "Response Status Kind".
    """
    try:
        answer = _DECODER.decode(body)
    except msgspec.DecodeError:
        answer = _Status(message=body[:_SHOWN_BODY_CHARS].decode(errors="replace"))
    details = answer.details or _Details()
    causes = tuple(Cause(cause.reason, cause.message, cause.field) for cause in details.causes or ())
    seconds = int(retry_after) if retry_after.isdigit() else details.retry_after_seconds
    return _class_of(status, answer, causes)(
        answer.message or f"HTTP {status} without a message",
        status=status,
        reason=answer.reason,
        causes=causes,
        retry_after=timedelta(seconds=seconds) if seconds else None,
    )


def from_event(raw: bytes) -> ApiError:
    """Return the error that an ERROR event of a watch carries."""
    try:
        code = _DECODER.decode(raw).code
    except msgspec.DecodeError:
        code = 0
    return from_answer(code, raw)


def without_values(error: ApiError) -> ApiError:
    """Return the error of a request about a Secret without texts that may quote it.

    The API server quotes what it refuses, the whole object at times; reason and field names remain.
    """
    fields = sorted({cause.field for cause in error.causes if cause.field})
    return type(error)(
        f"HTTP {error.status} {error.reason or 'without a reason'}" + (f" on {', '.join(fields)}" if fields else ""),
        status=error.status,
        reason=error.reason,
        causes=tuple(Cause(cause.reason, "", cause.field) for cause in error.causes),
        retry_after=error.retry_after,
    )


def _class_of(status: int, answer: _Status, causes: tuple[Cause, ...]) -> type[ApiError]:  # noqa: PLR0911  # a table
    match status:
        case 422 if any(cause.field == "metadata.uid" for cause in causes):
            # The name belongs to another object by now; an absent one gets 409 for the same body.
            return WriteConflict
        case 400 | 413 | 422:
            return Invalid
        case 401 | 403:
            return _refusal(status, answer, causes)
        case 404:
            return NotFound
        case 409:
            return _conflict(answer.reason, causes)
        case 410:
            return Gone
        case 429:
            return TooManyRequests
        case 500 if _TYPED_PATCH in answer.message:
            return Invalid
        case _:
            return Unavailable if status >= 500 else ApiError  # noqa: PLR2004 - the class of server errors, RFC 9110


def _refusal(status: int, answer: _Status, causes: tuple[Cause, ...]) -> type[ApiError]:
    if any(cause.reason == "NamespaceTerminating" for cause in causes):
        return NamespaceTerminating
    not_granted = status == 403 and _NOT_GRANTED.search(answer.message)  # noqa: PLR2004 - Forbidden, RFC 9110
    return NotGranted if not_granted else Forbidden


def _conflict(reason: str, causes: tuple[Cause, ...]) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    if any(cause.reason == "FieldManagerConflict" for cause in causes):
        return ApplyConflict
    return WriteConflict
