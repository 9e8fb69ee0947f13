"""JSON logs on stderr, one object a line; no secret value in them.

Keys follow the field's habit: `controller`, `namespace`, `name`, `generation`, `reconcileID`, `ts`, `level`, `msg`.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any, Final

import msgspec
import structlog

_RUNTIME: Final = __name__.partition(".")[0]
_REDACTED: Final = "[redacted]"
_SECRET_KEY: Final = re.compile(
    r"passw|secret|token|credential|authorization|private.?key|api.?key|connection.?string", re.IGNORECASE
)
# A URL with a login, and an HTTP authorization value, wherever they stand.
_LOGIN_IN_URL: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@]+@", re.IGNORECASE)
_AUTHORIZATION: Final = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def configure(*, level: str = "INFO", packages: Sequence[str] = ()) -> None:
    """Set up structlog and the standard library's logging for a process.

    `level` (a name of `logging`) holds for this runtime and for `packages`. All other loggers are pinned to WARNING,
    whatever `level` says: at DEBUG some SDKs print request bodies, and with them passwords.
    """
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("msg"),
        redact,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_json),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [lines]
    root.setLevel(logging.WARNING)
    for name in (_RUNTIME, *packages):
        logging.getLogger(name).setLevel(level)


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace values whose key looks secret and logins inside any text; a structlog processor."""
    for key, value in event.items():
        event[key] = _REDACTED if _SECRET_KEY.search(key) and value else _clean(value)
    return event


def _clean(value: Any) -> Any:
    match value:
        case str():
            return _AUTHORIZATION.sub(rf"\1 {_REDACTED}", _LOGIN_IN_URL.sub(rf"\1{_REDACTED}@", value))
        case dict():
            return {
                key: _REDACTED if _SECRET_KEY.search(str(key)) and content else _clean(content)
                for key, content in value.items()
            }
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return value


def _json(value: Any, **_options: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
