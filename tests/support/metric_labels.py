"""The labels that a metric of ours may have."""

from __future__ import annotations

BOUNDED = frozenset(
    {
        "cause",
        "code",
        "controller",
        "host",
        "le",
        "method",
        "name",
        "operation",
        "provider",
        "resource",
        "result",
        "state",
        "version",
    }
)
"""Labels of which a process knows few values, however many objects there are; `name` is a queue's or a Lease's."""
