"""A call whose caller is known, and what its method is given."""

import base64
import binascii
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl

from devcloud.gcp.behaviour import GcpBehaviour
from devcloud.gcp.refusals import invalid
from devcloud.gcp.state.model import Project
from devcloud.gcp.state.settings import Json
from devcloud.gcp.state.world import World
from devcloud.simulator.operations import Operations

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose caller and method are known.

    Attributes:
        action: As `instances.patch`.
        version: Of the API: `v1` or `v1beta4`.
        project: The project's id.
        principal: Who calls.
        parameters: Of path and query; of one that is repeated the first value.
        query: The query string.
        body: In the API's spelling.
    """

    action: str
    version: str = "v1"
    project: str = ""
    principal: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    body: Json = field(default_factory=dict, repr=False)
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def identifier(self) -> str:
        """The instance, where there is one; else the operation or backup."""
        named = (self.parameters.get(name) for name in ("instance", "operation", "backup"))
        return next((name for name in named if name), "") or str(self.body.get("name", ""))

    @property
    def instance(self) -> str:
        """The name of the instance of the path."""
        return self.parameters.get("instance", "")

    def repeated(self, name: str) -> list[str]:
        """Return all values of a parameter of the query."""
        return [value for key, value in parse_qsl(self.query) if key == name]

    def is_true(self, name: str) -> bool:
        """Return whether a parameter of the query is `true`."""
        return self.parameters.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        """Return a whole number of the query.

        Raises:
            Refusal: It is none.
        """
        text = self.parameters.get(name, "")
        try:
            return int(text) if text else default
        except ValueError:
            raise invalid(f"{name} is no number: {text}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """What a method works on.

    Attributes:
        world: What there is.
        operations: What is under way.
        behaviour: What tests chose.
        project: Of the call.
    """

    world: World
    operations: Operations
    behaviour: GcpBehaviour
    project: Project


def page(items: Sequence[T], call: Call, *, size: int, parameter: str = "maxResults") -> tuple[Sequence[T], str]:
    """Return a page of a list, and the token of the next one, empty at the end.

    Args:
        items: All of it, in an order that stays.
        call: With `pageToken`.
        size: The default size, and the greatest.
        parameter: What the query calls it.

    Raises:
        Refusal: The token is none.
    """
    token = call.parameters.get("pageToken", "")
    limit = call.number(parameter, size)
    size = min(limit, size) if limit > 0 else size
    try:
        start = int(base64.urlsafe_b64decode(token).decode().removeprefix("from:")) if token else 0
    except (ValueError, binascii.Error):
        raise invalid("Invalid page token.") from None
    end = start + size
    return items[start:end], base64.urlsafe_b64encode(f"from:{end}".encode()).decode() if end < len(items) else ""
