"""Recorded exchanges with the real ARM, made again with the simulated one: `make replay RECORDINGS=folder`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcloud.azure.server import Options, running
from tests.devcloud.azure.conftest import Arm, token_of
from tests.devcloud.azure.exchanges import Recording, differences, recordings

RECORDED = list(recordings(Path(os.environ["RECORDINGS"])))
assert RECORDED, "RECORDINGS names a folder without a recording of flexible servers"


@pytest.fixture
def empty() -> Iterator[Arm]:
    with running(Options()) as served:
        yield Arm(served, token_of(served))


@pytest.mark.parametrize("recording", RECORDED, ids=lambda recording: recording.name)
def test_the_simulated_service_answers_as_the_recorded_one(recording: Recording, empty: Arm) -> None:
    assert differences(empty, recording) == []
