"""Composer and providers as processes of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from devcloud import programs
from devcloud.plane import Plane
from devcloud.programs import Program, Start
from tests.support.waiting import eventually

# It refuses the flags that a process of ours gets: it writes a usage to its log, and ends.
ENDS_AT_ONCE = Program("composer", ("json.tool",), "fairlead-system", "fairlead-composer")


class Accounts:
    """Stands for the control plane: only a kubeconfig is asked of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def service_account_kubeconfig(self, namespace: str, name: str, *, lifetime_s: int) -> Path:
        del lifetime_s
        return self._folder / f"{namespace}.{name}"


async def test_a_start_keeps_the_log_of_the_process_that_died(tmp_path: Path) -> None:
    log = ENDS_AT_ONCE.log(tmp_path)
    log.parent.mkdir()
    log.write_text("what the process said before it died")

    await programs.start(
        ENDS_AT_ONCE, tmp_path, cast("Plane", Accounts(tmp_path)), Start(installation="i", health_port=1)
    )

    async def has_ended() -> bool:
        return not programs.runs(ENDS_AT_ONCE, tmp_path)

    await eventually(has_ended, "the process ends")
    assert log.with_name("composer.log.1").read_text() == "what the process said before it died"
    assert "json.tool: error: unrecognized arguments" in log.read_text()
