"""Each cloud is read by its own intervals, which the flags of its process override."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.__main__ import arguments_parser, durations
from providers.process import provider_of, times_of


@pytest.mark.parametrize("flag", ["resync", "sweep", "settle"])
def test_flag_overrides_one_interval_and_no_other(flag: str) -> None:
    intervals = provider_of("aws").intervals
    own = times_of(durations(arguments_parser().parse_args(["aws"])), intervals)
    times = times_of(durations(arguments_parser().parse_args(["aws", f"--{flag}", "7.5"])), intervals)
    changed = {name for name in ("resync", "sweep", "settle", "grace") if getattr(times, name) != getattr(own, name)}
    assert (changed, getattr(times, flag)) == ({flag}, timedelta(seconds=7.5))
