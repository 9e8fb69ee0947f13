"""A request, an answer and a refusal, as the frame and a cloud hand them to one another. Pure."""

from collections.abc import Mapping

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request.

    Attributes:
        method: In capitals.
        path: Decoded.
        query: The query string.
        parameters: The query by name, decoded; of a name that comes twice the first value.
        headers: By name in lower case.
        body: As it was sent.
        address: The IP address of the client.
    """

    method: str
    path: str
    query: str = ""
    parameters: Mapping[str, str] = {}
    headers: Mapping[str, str]
    body: bytes
    address: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer."""

    status: int = 200
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}


def json_answer(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer in JSON."""
    return Answer(status=status, body=msgspec.json.encode(content), headers=headers or {})


class Refusal(Exception):  # noqa: N818 - the service refuses; its own word for it is a fault
    """The service's answer to a request that it does not carry out.

    Attributes:
        code: The wire code, as `DBInstanceNotFound` or `operationInProgress`.
        message: The sentence that comes with it.
        status: The HTTP status, or None for what the cloud says of the code.
    """

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class ControlError(Exception):
    """A call of the control API makes no sense; the text says why."""


def no_route(method: str, path: tuple[str, ...]) -> ControlError:
    """Return the refusal of a call that the control API does not have."""
    return ControlError(f"{method} /_control/{'/'.join(path)} is nothing")
