"""What a run of the tests says at its end about its cost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.run_summary import starts_plane, summary

_SERVER = ["setpriv", "--pdeathsig", "KILL", "--", "/programs/kube-apiserver", "--etcd-servers=x"]
STARTS: list[tuple[str, str, tuple[Any, ...], bool]] = [
    ("a server that is spawned", "os.posix_spawn", ("setpriv", _SERVER, {}), True),
    ("a server that is a child of a pipe", "subprocess.Popen", ("setpriv", _SERVER, None, {}), True),
    ("another program", "os.posix_spawn", ("etcd", ["/programs/etcd", "--name=kube-apiserver-store"], {}), False),
    ("another event about a server", "open", ("/programs/kube-apiserver", "r", 0), False),
    ("a command that is one text", "subprocess.Popen", ("sh", "kube-apiserver", None, {}), False),
]


@pytest.mark.parametrize(("event", "arguments", "counts"), [row[1:] for row in STARTS], ids=[row[0] for row in STARTS])
def test_a_control_plane_is_counted_by_the_start_of_its_server(
    event: str, arguments: tuple[Any, ...], *, counts: bool
) -> None:
    assert starts_plane(event, arguments) is counts


def test_summary_names_the_ten_files_that_took_longest_and_what_set_up_took() -> None:
    seconds = {f"tests/test_{number:02}.py": float(number) for number in range(12)}
    lines = summary(seconds, {"setup": 20.0, "call": 45.0, "teardown": 1.0}, 3)

    assert [line.split()[-1] for line in lines[:-1]] == [f"tests/test_{number:02}.py" for number in range(11, 1, -1)]
    assert lines[-1] == "66 s of workers, 20 s of them set-up; control planes started: 3"
