"""Composer and providers as processes of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from devcloud import daemons, onprem, programs
from devcloud.addresses import Lease
from devcloud.aws import platform
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Command, Daemon, Identity, Lifetime
from devcloud.postgres.server import Server
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


@pytest.mark.parametrize("cloud", ["aws", "onprem"])
def test_a_start_of_a_clouds_server_keeps_the_log_of_the_one_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: str
) -> None:
    log = tmp_path / ("simulator.log" if cloud == "aws" else "front.log")
    log.write_text("what the process said before it died")
    started: list[Path] = []

    def launch(command: Command, lifetime: Lifetime) -> Daemon:
        assert lifetime is Lifetime.DETACHED
        started.append(command.log)
        return Daemon(name=command.name, identity=Identity(pid=1, start_ticks=1, boot="x"), log=command.log)

    monkeypatch.setattr(daemons, "launch", launch)
    lease = Lease(octet=1, descriptor=0)
    if cloud == "aws":
        platform.SIMULATION.launch(tmp_path, lease, ())
    else:
        identity = Identity(pid=1, start_ticks=1, boot="x")
        server = Server(
            socket=tmp_path / "s", log=tmp_path / "s.log", superuser_password="", programs=tmp_path, identity=identity
        )
        onprem._launch_proxy(tmp_path, "127.0.0.1", server, Lifetime.DETACHED, lease)

    assert started == [log]
    assert log.with_name(f"{log.name}.1").read_text() == "what the process said before it died"
    assert not log.exists()
