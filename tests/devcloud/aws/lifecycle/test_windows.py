"""Windows that the simulated RDS chooses for an instance: open by no chance, and beside those that were named."""

from datetime import UTC, datetime, timedelta

import pytest

from devcloud.aws.state import windows

_HOURS = [datetime(2026, 11, 23, 0, 45, tzinfo=UTC) + timedelta(hours=hour) for hour in range(7 * 24)]


@pytest.mark.parametrize("backup", [None, "00:00-01:00", "03:00-04:00", "23:15-00:45"])
@pytest.mark.parametrize("maintenance", [None, "sun:06:00-sun:07:00", "mon:20:00-mon:21:00"])
def test_chosen_windows_overlap_at_no_hour_of_the_week(backup: str | None, maintenance: str | None) -> None:
    for now in _HOURS:
        chosen = windows.far_windows(now, backup, maintenance)

        assert chosen == (backup or chosen[0], maintenance or chosen[1])
        assert not windows.overlap(*chosen), (now, chosen)


def test_a_chosen_maintenance_window_is_not_open() -> None:
    assert [now for now in _HOURS if windows.is_open(windows.far_windows(now)[1], now)] == []
