"""What an actor makes of a refused write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from composer import names
from composer.act import Actor
from composer.decide import Apply
from composer.view import Known, View
from runtime.errors import ApiError, NotFound, WriteConflict
from tests.composer import factories


@dataclass(frozen=True)
class _Refusing:
    """An API server that refuses every patch."""

    refusal: Callable[[str], ApiError]

    async def json_patch(self, *_args: Any, **_options: Any) -> Any:
        raise self.refusal("refused")

    async def get(self, *_args: Any, **_options: Any) -> Any:
        return factories.live(factories.desired(), uid="another-uid")


def _asked() -> View:
    claim = factories.claim(annotations={names.RECONCILE_REQUESTED_AT: "now"})
    return factories.view(Known(factories.entry(), factories.live(factories.desired()), factories.DATABASE), of=claim)


def _actor(refusal: Callable[[str], ApiError]) -> Actor:
    port: Any = _Refusing(refusal)
    return Actor(port, now=lambda: datetime.now(UTC), remember=lambda _kind, _obj: None)


async def test_a_request_is_not_answered_while_a_child_that_changed_meanwhile_has_not_got_it() -> None:
    with pytest.raises(WriteConflict):
        await _actor(WriteConflict).pass_on(_asked())


async def test_a_request_passes_over_a_child_that_is_gone() -> None:
    view = _asked()

    assert await _actor(NotFound).pass_on(view) is view


async def test_a_first_apply_means_the_child_that_was_seen_and_not_another_of_its_name() -> None:
    wanted = factories.desired()
    step = Apply(factories.entry(), factories.DATABASE, wanted, factories.live(wanted))

    (outcome,) = await _actor(NotFound).act(factories.view(), (step,))

    assert isinstance(outcome.error, WriteConflict)
