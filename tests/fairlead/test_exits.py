"""What the command line answers to a shell, and what it loads before it knows what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from io import StringIO
from pathlib import Path

import pytest

from devcloud.paths import state_home
from fairlead.cli import run
from fairlead.exits import Exit


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        pytest.param(["--help"], 0, "", id="help is no error"),
        pytest.param([], 0, "", id="no command shows the help"),
        pytest.param(["nonsense"], 64, "nonsense", id="an unknown command is a usage error that names it"),
        pytest.param(["trace"], 64, "REFERENCE", id="a missing argument is named"),
        pytest.param(["trace", "a", "--colour"], 64, "--colour", id="an unknown option is named"),
        pytest.param(["trace", "a", "-o", "xml"], 64, "table", id="a wrong choice lists the right ones"),
        pytest.param(["trace", "a/b/c"], 64, "KIND/NAME", id="a reference that is none is explained"),
        pytest.param(
            ["wait", "a", "--timeout", "soon"], 64, "90s, 30m or 2h", id="a time-out that is none is explained"
        ),
        pytest.param(["trace"], 64, "fairlead trace --help", id="the help of the very command is named"),
        pytest.param(["crd", "chek"], 64, "fairlead crd --help", id="an unknown command names its group's help"),
        pytest.param(["up", "--clouds", "mars"], 64, "only aws, ", id="an unknown cloud lists the others"),
        pytest.param(["prepare"], 64, "name a namespace", id="a namespace to prepare is asked for"),
        pytest.param(["completion", "csh"], 64, "bash", id="a shell that we cannot complete lists the rest"),
        pytest.param(["completion", "bash"], 0, "", id="a script of completions is printed"),
        pytest.param(["trace", "a", "--kubeconfig", "/nowhere"], 1, "/nowhere", id="a missing kubeconfig is named"),
    ],
)
def test_a_command_line_gets_its_exit_code(
    arguments: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(arguments)

    shown = capsys.readouterr()
    assert answer == code
    assert sentence in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("command", ["up", "down", "env"])
def test_a_cache_that_cannot_be_made_is_reported_in_a_sentence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert run([command]) == 1
    assert "cannot be made: Not a directory; set XDG_CACHE_HOME" in capsys.readouterr().err


class _Typed(StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdin", "code"),
    [(StringIO("y\n"), 7), (_Typed("\n"), 7), (_Typed(""), 7), (_Typed("Yes\n"), 0)],
    ids=["no terminal", "return", "an end", "yes"],
)
def test_what_nobody_agreed_to_is_not_deleted(
    stdin: StringIO, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", stdin)
    assert run(["down"]) == 0, "nothing is up, and nobody is asked"
    plane = state_home() / "plane"
    plane.mkdir(parents=True)

    assert run(["down"]) == code
    assert plane.exists() is (code == 7)
    assert ("say fairlead down --yes" in capsys.readouterr().err) is not stdin.isatty()
    assert run(["down", "--yes"]) == 0
    assert not plane.exists()


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fairlead.cli.app", interrupted)

    assert run(["up"]) == 130
    assert "interrupted; what was started stays" in capsys.readouterr().err
    assert run(["trace", "orders"]) == 130
    assert capsys.readouterr().err == "fairlead: interrupted\n"


@pytest.mark.slow
def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None; sys.modules['psycopg'] = None; "
        "from fairlead.cli import run; sys.exit(run(['up']))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert "is not installed: install fairlead[cli,devcloud]" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_trouble(tmp_path: Path) -> None:
    claim = tmp_path / "claim.yaml"
    head = "{apiVersion: database.fairlead.dev/v1alpha1, kind: PostgreSQLInstance, spec: {version: '16', size: small}"
    claim.write_text("".join(f"---\n{head}, metadata: {{name: orders-{number}}}}}\n" for number in range(200)))
    program = "from fairlead.cli import main; main()"
    shell = 'set -o pipefail; "$0" -c "$1" render --namespace-labels= "$2" | head -c 10'

    ended = subprocess.run(
        ["bash", "-c", shell, sys.executable, program, str(claim)], capture_output=True, text=True, check=False
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("# claim: d", "", 0)


@pytest.mark.slow
def test_a_terminal_without_our_letters_gets_the_words() -> None:
    program = (
        "import sys, fairlead.cli as cli; cli.app.command(lambda: print('├─ orders'), name='try'); "
        "sys.argv = ['fairlead', 'try']; cli.main()"
    )
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )

    assert (ended.returncode, ended.stdout) == (0, "?? orders\n"), ended.stderr


@pytest.mark.slow
def test_the_command_without_its_libraries_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['cyclopts'] = None; sys.argv = ['fairlead', '--help']; "
        "from fairlead.__main__ import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (Exit.TOOL_FAILED, "")
    assert ended.stderr.startswith("fairlead: cyclopts is not installed")
    assert ended.stderr.count("\n") == 1
    assert "fairlead[cli]" in ended.stderr


def test_the_installed_program_starts_there() -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name="fairlead")

    assert entry.value == "fairlead.__main__:main"
