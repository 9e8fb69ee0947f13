"""A small STS and RDS on one port: they know who signed, and that is all.

Written from the wire formats in the STS API reference; it shares no code with what is tested.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

ACCOUNT = "123456789012"
OTHER = "210987654321"


@dataclass
class FakeAws:
    """Who may sign, and what was asked; `keys` are access keys by account, None for one whose session is over."""

    url: str = ""
    keys: dict[str, str | None] = field(default_factory=lambda: {"AKIASTATIC": ACCOUNT})
    lasting: timedelta = timedelta(hours=1)
    tokens: list[str] = field(default_factory=list)
    requested: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    pages: int = 1
    broken_page: int = 0
    issued: int = 0

    def issue(self, prefix: str, account: str = ACCOUNT) -> dict[str, str]:
        """Make a temporary access key."""
        self.issued += 1
        key = f"ASIA{prefix}{self.issued}"
        self.keys[key] = account
        until = datetime.now(UTC) + self.lasting
        return {"key": key, "until": until.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def actions(self) -> list[str]:
        """Return what was asked and by which key, in order."""
        return [f"{action} {key}".strip() for action, key, _ in self.requested]


def _credentials(issued: dict[str, str]) -> str:
    return (
        f"<Credentials><AccessKeyId>{issued['key']}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
        f"<SessionToken>t</SessionToken><Expiration>{issued['until']}</Expiration></Credentials>"
    )


def _answer(aws: FakeAws, form: dict[str, str], key: str) -> tuple[int, str]:
    action = form["Action"]
    if action == "AssumeRoleWithWebIdentity":
        aws.tokens.append(form["WebIdentityToken"])
        return 200, _credentials(aws.issue("WEB"))
    if key not in aws.keys:
        return 403, _error("InvalidClientTokenId", "The security token included in the request is invalid.")
    account = aws.keys[key]
    if account is None:
        return 403, _error("ExpiredToken", "The security token included in the request is expired")
    if action == "AssumeRole":
        match = re.fullmatch(r"arn:aws:iam::(\d{12}):role/(\w+)", form["RoleArn"])
        assert match is not None
        return 200, _credentials(aws.issue(match[2].upper(), match[1]))
    if action == "GetCallerIdentity":
        return 200, f"<Account>{account}</Account><Arn>arn:aws:iam::{account}:user/x</Arn><UserId>x</UserId>"
    return _listed(aws, int(form.get("Marker", "1")))


def _listed(aws: FakeAws, page: int) -> tuple[int, str]:
    if page == aws.broken_page:
        return 400, _error("Throttling", "Rate exceeded")
    marker = f"<Marker>{page + 1}</Marker>" if page < aws.pages else ""
    member = f"<DBInstance><DBInstanceIdentifier>db-{page}</DBInstanceIdentifier></DBInstance>"
    return 200, f"<DBInstances>{member}</DBInstances>{marker}"


def _error(code: str, message: str) -> str:
    return f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"


def _handler(aws: FakeAws) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
            signed = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
            key = signed[1] if signed else ""
            aws.requested.append((form["Action"], key, form))
            status, inner = _answer(aws, form, key)
            action = form["Action"]
            if status == 200:
                inner = f"<{action}Result>{inner}</{action}Result>"
            root = f"{action}Response" if status == 200 else "ErrorResponse"
            meta = "<ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata>"
            trail = meta if status == 200 else "<RequestId>r-1</RequestId>"
            self._send(status, "text/xml", f"<{root}>{inner}{trail}</{root}>")

        def _send(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[FakeAws]:
    """Serve on a free port of the loopback."""
    aws = FakeAws()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(aws)) as server:
        server.daemon_threads = True
        aws.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield aws
        finally:
            server.shutdown()
            thread.join()
