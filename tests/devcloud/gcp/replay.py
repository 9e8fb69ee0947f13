"""Recorded exchanges with the real Cloud SQL, made again with the simulated one: `make replay RECORDINGS=folder`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcloud.gcp.conftest import Cloud
from tests.devcloud.gcp.exchanges import Recording, Replay, recordings

RECORDED = list(recordings(Path(os.environ["RECORDINGS"])))
assert RECORDED, "RECORDINGS names a folder without a recording of Cloud SQL"


@pytest.mark.parametrize("recording", RECORDED, ids=lambda recording: recording.name)
def test_the_simulated_service_answers_as_the_recorded_one(recording: Recording, cloud: Cloud) -> None:
    assert list(Replay(cloud).differences(recording)) == []
