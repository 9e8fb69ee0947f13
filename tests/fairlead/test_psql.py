"""How a connection Secret reaches psql: by private files, and by nothing else."""

from __future__ import annotations

import base64
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.exits import CommandError
from fairlead.psql import Login, capture, environment_of, find_psql, is_script, login_in, run
from tests.support.terminals import read_terminal

PASSWORD = "pa:ss\\word"
LOGIN = Login("127.9.0.1", "5432", "orders_x", "orders_x_a", PASSWORD, "verify-full", "-----CA-----\n")


def secret(**values: str) -> dict[str, object]:
    return {"data": {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}}


COMPLETE = {"host": "h", "port": "5432", "database": "d", "username": "u", "password": PASSWORD}


def test_a_complete_secret_is_read() -> None:
    login = login_in(secret(**COMPLETE, sslmode="require", certificates="pem"), "shop/orders")

    assert (login.host, login.password, login.sslmode, login.certificates) == ("h", PASSWORD, "require", "pem")


def test_a_secret_without_a_mode_is_opened_with_the_strictest() -> None:
    assert login_in(secret(**COMPLETE), "shop/orders").sslmode == "verify-full"


@pytest.mark.parametrize("missing", list(COMPLETE))
def test_an_incomplete_secret_is_refused_by_key(missing: str) -> None:
    values = {name: value for name, value in COMPLETE.items() if name != missing}

    with pytest.raises(CommandError, match=rf"shop/orders lacks {missing}") as refused:
        login_in(secret(**values), "shop/orders")

    assert PASSWORD not in str(refused.value)


def test_an_unreadable_value_is_named_and_not_shown() -> None:
    with pytest.raises(CommandError, match="key host of Secret shop/orders is no text") as refused:
        login_in({"data": {"host": "!!"}}, "shop/orders")

    assert "!!" not in str(refused.value)


def test_a_login_does_not_show_its_password() -> None:
    assert PASSWORD not in repr(LOGIN)


def test_the_password_is_in_a_private_file_and_nowhere_else(tmp_path: Path) -> None:
    environment = environment_of(LOGIN, tmp_path)

    passwords = Path(environment["PGPASSFILE"])
    assert passwords.read_text() == "127.9.0.1:5432:orders_x:orders_x_a:pa\\:ss\\\\word\n"
    assert passwords.stat().st_mode & 0o777 == 0o600
    assert Path(environment["PGSSLROOTCERT"]).read_text() == "-----CA-----\n"
    assert environment["PGSSLMODE"] == "verify-full"
    assert not [name for name, value in environment.items() if PASSWORD in value]


def test_the_shells_own_settings_do_not_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "another")
    monkeypatch.setenv("PGSERVICE", "another")
    monkeypatch.setenv("PGOPTIONS", "-c search_path=evil")

    environment = environment_of(LOGIN, tmp_path)

    assert not {"PGPASSWORD", "PGSERVICE", "PGOPTIONS"} & set(environment)
    assert environment["PATH"] == os.environ["PATH"]


def test_the_systems_roots_are_used_without_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_text("-----CA-----\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    environment = environment_of(Login("h", "5432", "d", "u", PASSWORD, "verify-full", ""), tmp_path)

    assert (environment["PGSSLROOTCERT"], environment["SSL_CERT_FILE"]) == ("system", str(roots))


def test_psql_gets_the_arguments_and_the_files_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "psql"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PGPASSFILE"\nprintf "%s|" "$@"\ncat "$PGPASSFILE"\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("FAIRLEAD_POSTGRES", str(program.parent))

    ended = capture(LOGIN, ["-c", "select 1"])

    file, rest = ended.stdout.split("\n", 1)
    assert ended.returncode == 3
    assert rest == "-c|select 1|127.9.0.1:5432:orders_x:orders_x_a:pa\\:ss\\\\word\n"
    assert not Path(file).parent.exists()


def test_psql_on_the_terminal_answers_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "psql"
    program.write_text('#!/bin/sh\necho "$PGUSER: $*"\nexit 2\n')
    program.chmod(0o755)
    monkeypatch.setenv("FAIRLEAD_POSTGRES", str(tmp_path))

    assert run(LOGIN, ["--list"]) == 2
    assert capfd.readouterr().out == "orders_x_a: --list\n"


@pytest.mark.parametrize(
    ("arguments", "is_typed", "is_a_script"),
    [
        ([], True, False),
        ([], False, True),
        (["-Atc", "select 1"], True, True),
        (["--command=select 1"], True, True),
        (["-f", "file.sql"], True, True),
        (["--list"], True, True),
        (["-F", "c", "-v", "name=-c"], True, False),
        (["-h", "local", "--set", "x=--list"], True, False),
        (["orders", "-c", "select 1"], True, True),
        (["--nothing-like-it"], True, True),
    ],
)
def test_a_script_is_known_from_a_person(arguments: list[str], *, is_typed: bool, is_a_script: bool) -> None:
    assert is_script(arguments, is_typed=is_typed) == is_a_script


_FORGED = "row\x1b[2J\x1b]0;owned\x07\u202e\u009b1m end\n"
_PRINTS = f"""#!/bin/sh
printf '%s' '{_FORGED}'
printf '%s' 'NOTICE: {_FORGED}' >&2
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-c", "select 1"], b"row[2J]0;owned1m end\r\nNOTICE: row[2J]0;owned1m end\r\n"),
        ([], _FORGED.replace("\n", "\r\n").encode() + b"NOTICE: " + _FORGED.replace("\n", "\r\n").encode()),
    ],
    ids=["a script", "a person"],
)
def test_a_terminal_gets_the_text_of_a_scripts_rows_and_notices(
    tmp_path: Path, arguments: list[str], expected: bytes
) -> None:
    (tmp_path / "psql").write_text(_PRINTS)
    (tmp_path / "psql").chmod(0o755)
    login = "Login('h', '5432', 'd', 'u', 'p', 'require', '')"
    code = f"from fairlead.psql import Login, run; raise SystemExit(run({login}, {arguments!r}))"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "FAIRLEAD_POSTGRES": str(tmp_path), "PYTHONUTF8": "1"},
    ) as process:
        os.close(theirs)
        shown = read_terminal(ours)

    assert process.returncode == 0
    # Two streams, in any order.
    assert sorted(shown.replace(b"NOTICE", b"\nNOTICE").split(b"\n")) == sorted(
        expected.replace(b"NOTICE", b"\nNOTICE").split(b"\n")
    )


def test_output_into_a_file_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "psql").write_text(_PRINTS)
    (tmp_path / "psql").chmod(0o755)
    monkeypatch.setenv("FAIRLEAD_POSTGRES", str(tmp_path))

    assert run(LOGIN, ["-c", "select 1"]) == 0
    assert capfd.readouterr().out == _FORGED


def test_a_folder_without_psql_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_POSTGRES", str(tmp_path))

    with pytest.raises(CommandError, match=str(tmp_path)):
        find_psql()


def test_the_bundled_psql_speaks_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_POSTGRES", raising=False)
    nobody_listens = Login("127.0.0.1", "1", "d", "u", PASSWORD, "verify-full", "-----CA-----\n")

    ended = capture(nobody_listens, ["-c", "select 1"])

    # A libpq without TLS refuses the mode before it connects.
    assert "SSL support is not compiled in" not in ended.stderr
    assert "Connection refused" in ended.stderr
