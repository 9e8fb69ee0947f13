"""A platform for each module as it was at first: see tests/support/fresh.py; more of them in this folder's modules."""

from tests.support.fresh import (
    _employed,
    aws,
    azure,
    fresh_system,
    gcp,
    is_at_work,
    namespace,
    own_system,
    running,
    staff,
    system,
)
from tests.system.behind import behind
from tests.system.fenced import one_composer
from tests.system.rigs import bare_namespace, warm

__all__ = [
    "_employed",
    "aws",
    "azure",
    "bare_namespace",
    "behind",
    "fresh_system",
    "gcp",
    "is_at_work",
    "namespace",
    "one_composer",
    "own_system",
    "running",
    "staff",
    "system",
    "warm",
]
