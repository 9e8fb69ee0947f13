"""What the oracle of random walks says of a claim; `make faults` walks 300."""

from __future__ import annotations

import pytest

from tests.support.walk_oracle import Ledger, Sample

pytestmark = pytest.mark.asyncio(loop_scope="session")
_SAID = "Ready=True but no login works"
_DENIED = "Ready=False but login works and the cloud is as the spec says"


@pytest.mark.parametrize(
    ("ready", "refusal", "gap", "disagreement"),
    [
        ("True", "", "", ""),
        # An edit that waits is reported by Synced.
        ("True", "", "another size", ""),
        ("True", "no such role", "", _SAID),
        ("True", "no such role", "another size", _SAID),
        ("False", "", "", _DENIED),
        ("False", "", "another size", ""),
        ("False", "no such role", "", ""),
        ("Unknown", "", "", ""),
        ("Unknown", "no such role", "", ""),
    ],
)
async def test_a_claim_disagrees_with_the_oracle(ready: str, refusal: str, gap: str, disagreement: str) -> None:
    assert Sample("", ready, refusal, gap, settled=False).disagreement == disagreement


@pytest.mark.parametrize(
    ("samples", "disagreements"),
    [
        ([(0, "x"), (15, "x"), (16, "")], 0),
        ([(0, "x"), (16, "x")], 1),
        ([(0, "x"), (10, ""), (12, "x"), (20, "x")], 0),
        ([(0, "x"), (16, "x"), (18, ""), (20, "x"), (40, "x")], 2),
    ],
)
async def test_a_disagreement_is_what_lasts(samples: list[tuple[float, str]], disagreements: int) -> None:
    ledger = Ledger(15.0)
    for now, refusal in samples:
        ledger.judge("orders", Sample("", "True", refusal, "", settled=False), now, "round 1")
    assert len(ledger.disagreements()) == disagreements


async def test_an_unseen_change_has_until_the_next_resync() -> None:
    ledger = Ledger(15.0)
    for now in (0.0, 24.0):
        ledger.judge("orders", Sample("", "True", "x", "", settled=False), now, "round 1", 10.0)
    assert ledger.disagreements() == []
    ledger.judge("orders", Sample("", "True", "x", "", settled=False), 26.0, "round 1", 10.0)
    assert len(ledger.disagreements()) == 1
