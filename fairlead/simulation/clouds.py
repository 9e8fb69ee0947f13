"""The clouds in which a life may be lived, each described in one place."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fairlead.simulation.calls import Made, Weather
from fairlead.simulation.process_life import ProcessLife
from fairlead.simulation.virtual_time import chance_of
from providers.external.provider import Provider
from runtime.objects import Object, Resource

NAMES: Final = ("gcp", "azure", "aws", "onprem")
Emit = Callable[..., None]


class CloudInMemory(Protocol):
    """A simulated cloud in the process; its servers, and what is inside of them, go by their names."""

    weather: Weather
    history: list[Made]

    def run(self) -> Coroutine[Any, Any, None]:
        """Let happen what happens by itself."""
        ...

    def servers(self) -> Sequence[str]:
        """Return the servers, sorted."""
        ...

    def left(self) -> set[str]:
        """Return all that is there: `server` and `server/name`."""
        ...

    def backups(self) -> Sequence[str]:
        """Return the backups that a claim may be restored from, sorted."""
        ...

    def runs(self, server: str) -> bool:
        """Return whether a server is there and answers."""
        ...

    def size_of(self, server: str, database: str) -> object:
        """Return the class of a server that is there, or what takes its place in a database: its connection limit."""
        ...

    def number_of(self, server: str, database: str) -> int:
        """Return the number under which a database was made, 0 where it is not there."""
        ...

    def admits(self, server: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        ...


@dataclass(frozen=True, slots=True)
class CloudDescription:
    """One cloud, its provider, and what a platform has of it.

    Attributes:
        name: As the label of namespaces says it; the Composition and the ConfigMap of its place are called after it.
        provider: Its provider.
        roles: Its resources, the server first, each with what the history calls it: `servers`, `databases`, `logins`,
            `rules` or `settings`.
        login: The resource whose object has a login.
        config: The spec of the ProviderConfig.
        secrets: The Secrets that it names, by name.
        place: What the Composition reads from its ConfigMap.
        place_of: Returns `server` or `server/name` of a resource and its external name.
        server_at: Returns the server of a host in a Secret.
        new: Makes it.
        connector: Returns by what its provider connects to it, for one life of its process.
    """

    name: str
    provider: Provider[Any]
    roles: Mapping[Resource, str]
    login: Resource
    config: Object
    secrets: Mapping[str, Mapping[str, str]]
    place: Mapping[str, str]
    place_of: Callable[[Resource, str], str]
    server_at: Callable[[str], str]
    new: Callable[[Emit, random.Random], CloudInMemory]
    connector: Callable[[Any, ProcessLife], Any]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Its resources: the server, then what is inside of one."""
        return tuple(self.roles)

    @property
    def server(self) -> Resource:
        """The resource that stands for a server."""
        return self.resources[0]

    @property
    def inner(self) -> tuple[Resource, ...]:
        """The resources inside of a server: all of a cloud in which a server is the platform team's."""
        return tuple(resource for resource, role in self.roles.items() if role != "servers")

    @property
    def provider_process(self) -> str:
        """The name of its provider's process."""
        return f"provider-{self.name}"

    @property
    def namespace(self) -> str:
        """The namespace of its provider."""
        return f"fairlead-{self.name}"


def described(name: str) -> CloudDescription:
    """Return a cloud; its SDK is loaded with it."""
    description: CloudDescription = importlib.import_module(f"fairlead.simulation.{name}_cloud").CLOUD
    return description


def name_of(seed: str) -> str:
    """Return in which cloud a life is lived."""
    return str(chance_of(seed, "which cloud").choice(NAMES))
