"""What may be done in each cloud: fields that people write, and what others do there."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.objects import Object, Resource


@dataclass(frozen=True, slots=True)
class CloudActs:
    """What may be done in one cloud.

    Attributes:
        policies: What may be done at the deletion of a claim, of a server, and of what is inside of one.
        shared: The fields of a server that no claim has made.
        inside: The fields of what is inside of the server `shared`, by its resource and a name.
        size: The field that says the size of a server, or of a database where a server is the platform team's.
        sizes: What that field is for each size of a claim.
        versions: Versions of PostgreSQL that new claims ask for.
        has_standby: Whether a claim may ask for high availability.
        storage: Sizes that the author of the Composition chooses among.
        claims_kept: Returns the claims of a namespace of which something is kept that a new one is restored from.
        database_fields: Returns the fields of a server whose Composition has a database, or has none any more.
        strangers: What others do there, and how often.
    """

    policies: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    shared: Object
    inside: Callable[[Resource, str], Object]
    storage: tuple[int, ...]
    database_fields: Callable[[bool], Object]
    strangers: tuple[tuple[Callable[[Any], Awaitable[str]], int], ...]
    size: str
    sizes: Mapping[str, object]
    versions: tuple[str, ...] = ("16", "16", "15")
    has_standby: bool = True
    claims_kept: Callable[[Any, str], Sequence[str]] = lambda _cast, _namespace: ()


def acts_in(cloud: str) -> CloudActs:
    """Return what may be done in a cloud."""
    acts: CloudActs = importlib.import_module(f"tests.simulation.{cloud}_acts").ACTS
    return acts
