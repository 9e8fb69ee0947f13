"""What `fairlead up` does for each cloud: its simulation, what the cluster holds of it, its provider's process.

The package `devcloud.<cloud>` has a module `platform` that exports `CLOUD`; a cloud is added with such a package.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import devcloud
from devcloud.errors import DevcloudError

if TYPE_CHECKING:
    from devcloud.addresses import Lease
    from devcloud.programs import Program
    from devcloud.stories import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCloud:
    """A simulated cloud that runs.

    Attributes:
        says: What it is and where, in a line for people.
        objects: What the cluster holds: Secrets, ProviderConfigs and what Compositions read.
        logs: The log of each of its programs, by name.
        flags: More flags of the provider's process.
        variables: What a shell needs for the cloud's own tools.
    """

    says: str
    objects: tuple[Mapping[str, Any], ...] = field(repr=False)
    logs: Mapping[str, Path]
    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(repr=False, default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """How a cloud is simulated, in a folder and a /16 of loop-back addresses of its own.

    Attributes:
        name: As in `providers.<name>`.
        program: Its provider's process.
        story: What `fairlead demo` shows of it.
        start: Starts it, or finds it running, when it answers. Raises DevcloudError.
        find: Returns it when all of it runs, by its folder and the second number of its addresses.
        stop: Ends what runs of it; its data stay.
        erase: Deletes what a stopped one keeps, for good.
        is_default: Whether a new platform gets it where no cloud is named; true of one cloud.
    """

    name: str
    program: Program
    story: Story
    start: Callable[[Path, Lease], Awaitable[RunningCloud]]
    find: Callable[[Path, int], RunningCloud | None]
    stop: Callable[[Path], Awaitable[None]]
    erase: Callable[[Path], None]
    is_default: bool = False


def cloud_of(name: str) -> Cloud:
    """Return a cloud by name.

    Raises:
        DevcloudError: There is none; those that there are stand in the text.
    """
    if name not in names():
        raise DevcloudError(f"no cloud {name!r} can be simulated here, only {', '.join(names())}")
    cloud: Cloud = importlib.import_module(f"devcloud.{name}.platform").CLOUD
    return cloud


def all_clouds() -> tuple[Cloud, ...]:
    """Return the clouds that can be simulated, the default one first, then by name."""
    return tuple(sorted(map(cloud_of, names()), key=lambda cloud: (not cloud.is_default, cloud.name)))


def default() -> Cloud:
    """Return the cloud that a new platform gets where none is named."""
    return all_clouds()[0]


def names() -> tuple[str, ...]:
    """Return the names of the clouds that can be simulated, in their order; loads none of them."""
    packages = (package.name for package in pkgutil.iter_modules(devcloud.__path__) if package.ispkg)
    folders = [Path(root) for root in devcloud.__path__]
    return tuple(sorted(name for name in packages if any((root / name / "platform.py").exists() for root in folders)))
