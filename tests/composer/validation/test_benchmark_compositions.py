"""The Compositions of the benchmarks are accepted: a refused one would serve no claim, and measure nothing."""

from __future__ import annotations

import pytest

from benchmarks import bomb_objects, engine_objects
from composer.validation.validate import CheckRequest, check
from runtime.objects import Object
from tests.composer.test_golden import CATALOG

COMPOSITIONS = {
    "of the engine": engine_objects.composition(),
    "that does no harm": bomb_objects.harmless("harmless"),
    "that is a bomb for other claims": bomb_objects.bomb("bomb"),
}


@pytest.mark.parametrize("composition", COMPOSITIONS.values(), ids=COMPOSITIONS)
def test_a_composition_of_a_benchmark_is_accepted(composition: Object) -> None:
    assert check(CheckRequest(composition["spec"], CATALOG)) == ()
