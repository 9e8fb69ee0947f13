"""A platform for each module as it was at first: see tests/support/fresh.py; clouds under shipped roles: fenced.py."""

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
from tests.system.fenced import fenced_aws, fenced_azure, fenced_gcp, one_composer

__all__ = [
    "_employed",
    "aws",
    "aws_at_work",
    "azure",
    "fenced_aws",
    "fenced_azure",
    "fenced_gcp",
    "fresh_system",
    "gcp",
    "namespace",
    "one_composer",
    "own_system",
    "running",
    "staff",
    "system",
]
