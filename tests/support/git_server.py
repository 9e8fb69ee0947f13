"""A Git repository that is served at a loop-back address by Git's own server program, `git http-backend`."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_HOST = "127.0.0.1"
_BRANCH = "main"
_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Platform Team"), ("EMAIL", "platform@example.org"))
}
# Nothing of the user's own settings.
_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


class GitRepository:
    """A working tree whose commits are served: files are written to `folder`, then `commit` publishes them."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a text that stands in a file."""
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}"

        self.write(path, text.replace(old, new))

    def remove(self, path: str) -> None:
        (self.folder / path).unlink()

    def commit(self, message: str) -> str:
        """Commit all that changed to the branch `main`; return the commit's hash."""
        _git(self.folder, "add", "--all", "--force")
        _git(self.folder, "commit", "--quiet", f"--message={message}")
        return _git(self.folder, "rev-parse", "HEAD")


@contextmanager
def served(folder: Path) -> Iterator[GitRepository]:
    """Yield a new repository in a folder, which may have files already; none is committed yet."""
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", f"--initial-branch={_BRANCH}")
    server = ThreadingHTTPServer((_HOST, 0), _handler(folder / ".git"))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield GitRepository(folder, f"http://{_HOST}:{server.server_address[1]}/databases.git")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(repository: Path) -> type[BaseHTTPRequestHandler]:
    """Return a handler that serves one repository, whatever its path's first part is, for reading alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing on standard error."""

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            # git-http-backend(1): CGI variables (RFC 3875).
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(repository),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": "/" + path.lstrip("/").partition("/")[2],
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_LENGTH": str(len(body)),
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                **_SETTINGS,
            }
            ended = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True, timeout=60
            )
            head, _, content = ended.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            status = int(fields.pop("Status", "200").split()[0])
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _git(folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **_SETTINGS, **_IDENTITY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
