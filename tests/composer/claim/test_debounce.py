"""The same status in other words is written every two seconds at most; what is new is written at once."""

from __future__ import annotations

import pytest

from composer.claim.debounce import Debounce
from runtime.objects import Key, Object

KEY, OTHER = Key("shop", "orders"), Key("shop", "carts")


def _status(reason: str, message: str, name: str = "a") -> Object:
    return {"conditions": [{"type": "Ready", "reason": reason, "message": message}], "inventory": [{"name": name}]}


BEFORE = _status("Creating", "at 10 %")


@pytest.mark.parametrize(
    ("after", "later", "pause"),
    [
        pytest.param(_status("Creating", "at 20 %"), 0.5, 1.5, id="other words wait"),
        pytest.param(_status("Creating", "at 20 %"), 2.0, None, id="for two seconds"),
        pytest.param(_status("Available", "at 10 %"), 0.5, None, id="a new reason does not"),
        pytest.param(_status("Creating", "at 20 %", "b"), 0.5, None, id="a new child does not"),
        pytest.param(BEFORE, 0.5, None, id="what is the same is not written anyway"),
    ],
)
def test_a_status_is_delayed_when_only_its_words_changed(after: Object, later: float, pause: float | None) -> None:
    debounce = Debounce()
    debounce.wrote(KEY, 100.0)

    delay = debounce.delay(KEY, BEFORE, after, 100.0 + later)

    assert (delay and delay.total_seconds()) == pause
    assert debounce.delay(OTHER, BEFORE, after, 100.0 + later) is None
