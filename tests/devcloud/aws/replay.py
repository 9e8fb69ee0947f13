"""Recorded exchanges with the real RDS, made again with the simulated one: `make replay RECORDINGS=folder`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcloud.aws.conftest import Cloud
from tests.devcloud.aws.exchanges import Recording, differences, recordings

RECORDED = list(recordings(Path(os.environ["RECORDINGS"])))
assert RECORDED, "RECORDINGS names a folder without a recording of RDS"


@pytest.mark.parametrize("recording", RECORDED, ids=lambda recording: recording.name)
def test_the_simulated_service_answers_as_the_recorded_one(recording: Recording, cloud: Cloud) -> None:
    assert differences(cloud, recording) == []
