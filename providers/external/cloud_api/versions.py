"""Versions of an engine as clouds take and show them: "16" is asked for, "16.4" runs. Pure."""

from __future__ import annotations


def covers(wanted: str, running: str) -> bool:
    """Return whether a version is the wanted one, by whole dotted parts: "16" covers "16.4", "1" does not."""
    parts = wanted.split(".")
    return running.split(".")[: len(parts)] == parts


def major_of(version: str) -> str:
    """Return the major version; of PostgreSQL since 10 the first number."""
    return version.split(".", 1)[0]


def satisfies(wanted: str, running: str) -> bool:
    """Return whether a running version needs no change: the wanted one, or a later minor of the same major."""
    if covers(wanted, running):
        return True
    if major_of(wanted) != major_of(running):
        return False
    return _numbers(running) > _numbers(wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
