"""A platform for each module as it was at first: see tests/support/fresh.py."""

from tests.support.fresh import (
    _employed,
    aws,
    aws_at_work,
    azure,
    fresh_system,
    gcp,
    namespace,
    own_system,
    running,
    staff,
    system,
)

__all__ = [
    "_employed",
    "aws",
    "aws_at_work",
    "azure",
    "fresh_system",
    "gcp",
    "namespace",
    "own_system",
    "running",
    "staff",
    "system",
]
