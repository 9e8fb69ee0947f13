"""A server or a database in a cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Thing:
    """The kind that would manage it, and its name in the cloud."""

    kind: str
    name: str

    @property
    def own_name(self) -> str:
        """Its name without that of the group that it is in."""
        return self.name.rpartition("/")[2]

    def is_called(self, pattern: str) -> bool:
        """Return whether its name fits a pattern of a shell, with or without its group."""
        return fnmatchcase(self.name, pattern) or fnmatchcase(self.own_name, pattern)
