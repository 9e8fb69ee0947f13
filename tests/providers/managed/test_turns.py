"""A server and its children: the cloud carries out one operation at a time for all of them."""

from __future__ import annotations

import pytest

from providers.accounts.turns import Holder, Turns
from runtime.objects import Key


def test_turn_is_free_for_the_next_after_a_refused_call() -> None:
    turns, first, second = Turns(), Holder("Toy", Key("team", "a")), Holder("Toy", Key("team", "b"))

    def refused() -> None:
        with turns.turn("account", "server", first) as holder:
            assert holder is None
            with turns.turn("account", "server", second) as other:
                assert other == first
            assert turns.holder("account", "server", second) == first
            assert turns.holder("another", "server", second) is None
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused()
    with turns.turn("account", "server", second) as holder:
        assert holder is None
