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
        pytest.param(CLAIM_KIND, (True,), True, id="all are listed"),
        pytest.param(CLAIM_KIND, (False,), False, id="the list is not complete"),
        pytest.param(CLAIM_KIND, (), False, id="nobody watches them yet"),
        pytest.param(None, (), True, id="the kind is not there"),
        pytest.param(None, (False,), False, id="the kind went a moment ago"),
        pytest.param(NO_CLAIM_KIND, (), True, id="it is no kind of claim"),
    ],
)
def test_the_claims_of_a_kind_are_known_once_all_are_listed(
    facts: KindFacts | None, listed: tuple[bool, ...], *, known: bool
) -> None:
    assert are_known(facts, listed) == known
