"""What may be concluded from the claims that the composer sees."""

from __future__ import annotations

import pytest

from composer.composition.revision_writer import are_known
from composer.kinds.catalog import KindFacts
from tests.composer.factories import CLAIMS

CLAIM_KIND = KindFacts(CLAIMS, stateful=False, gaps=())
NO_CLAIM_KIND = KindFacts(CLAIMS, stateful=False, gaps=("status",))


@pytest.mark.parametrize(
    ("facts", "listed", "known"),
    [
        (CLAIM_KIND, (True,), True),
        (CLAIM_KIND, (False,), False),
        (CLAIM_KIND, (), False),
        (None, (), True),
        (None, (False,), False),
        (NO_CLAIM_KIND, (), True),
    ],
    ids=[
        "all are listed",
        "the list is not complete",
        "nobody watches them yet",
        "the kind is not there",
        "the kind went a moment ago",
        "it is no kind of claim",
    ],
)
def test_the_claims_of_a_kind_are_known_once_all_are_listed(
    facts: KindFacts | None, listed: tuple[bool, ...], *, known: bool
) -> None:
    assert are_known(facts, listed) == known
