"""A request on its way through an action, and what all actions share: pages, filters, tags, what is offered to it."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from devcloud.aws.api.views import InstanceXml
from devcloud.aws.api.wire import Tree
from devcloud.aws.behaviour import AwsBehaviour
from devcloud.aws.refusals import invalid_value
from devcloud.aws.region import Region
from devcloud.aws.state.model import Tag
from devcloud.simulator.messages import Refusal

T = TypeVar("T")
_PAGE = range(20, 101)


@dataclass(frozen=True, slots=True)
class Call:
    """A request: in which region of which account, with what, under which conduct of the service, with which cache."""

    region: Region
    parameters: Tree
    behaviour: AwsBehaviour
    xml: InstanceXml

    def get(self, name: str) -> Any:
        """Return a parameter; None when it was not given."""
        return self.parameters.get(name)

    def text(self, name: str) -> str:
        """Return a parameter that the model requires."""
        return str(self.parameters[name])


Action = Callable[[Call], Tree]


def page(
    call: Call, items: Sequence[T], name_of: Callable[[T], str], *, usual: int = _PAGE.stop - 1
) -> tuple[list[T], dict[str, str]]:
    """Return the page that a request asks for, of items in the order of their names, and the marker of the next one.

    `usual` is its size where the request asks for none. Markers name the last item seen (the API: "an opaque token"),
    so that what comes and goes between two pages neither repeats nor hides the others.

    Raises:
        Refusal: `InvalidParameterValue`, the size or the marker.
    """
    size = call.parameters.get("MaxRecords", usual)
    if size not in _PAGE:
        raise invalid_value(f"Invalid value {size} for MaxRecords. Must be between 20 and 100")
    after = _unmarked(call.parameters.get("Marker") or "")
    rest = [item for item in items if name_of(item) > after]
    listed = rest[:size]
    return listed, {"Marker": _marked(name_of(listed[-1]))} if len(rest) > size else {}


def _marked(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _unmarked(marker: str) -> str:
    try:
        return base64.urlsafe_b64decode(marker.encode()).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid_value(f"Invalid value for Marker: {marker}") from None


def filters(call: Call, known: Mapping[str, Callable[[T], str]]) -> Callable[[T], bool]:
    """Return what the request's Filters let through; values of one filter are alternatives, filters add up.

    Raises:
        Refusal: `InvalidParameterValue`, an unknown filter.
    """
    wanted = [(str(pair["Name"]), {str(value) for value in pair["Values"]}) for pair in call.get("Filters") or ()]
    for name, _ in wanted:
        if name not in known:
            raise invalid_value(f"Unrecognized filter name: {name}")
    return lambda item: all(known[name](item) in values for name, values in wanted)


def tags_of(listed: Sequence[Mapping[str, Any]] | None) -> tuple[Tag, ...]:
    """Return tags as the request lists them."""
    return tuple(Tag(key=str(tag.get("Key", "")), value=str(tag.get("Value", ""))) for tag in listed or ())


def converted(parameters: Tree, kind: type[T]) -> T:
    """Return the parameters as data of a type, whose field names are all that the simulator knows.

    Raises:
        Refusal: `InvalidParameterCombination`, one is not simulated, so that no test relies on what is ignored.
    """
    known = {field.encode_name for field in msgspec.structs.fields(kind)}  # type: ignore[arg-type]  # Wire's subclasses
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise Refusal("InvalidParameterCombination", f"The parameter {unknown[0]} is not part of this simulation.")
    return msgspec.convert(parameters, kind)
