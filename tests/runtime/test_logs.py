import json
import subprocess
import sys

import pytest

from runtime.logs import redact

CANARY = "hunter2-canary-0123456789"


@pytest.mark.parametrize(
    "key", ["password", "masterUserPassword", "client_secret", "token", "Authorization", "api-key"]
)
def test_a_key_that_looks_secret_hides_its_value(key: str) -> None:
    assert CANARY not in str(redact(None, "info", {"msg": "x", key: CANARY}))
    assert CANARY not in str(redact(None, "info", {"msg": "x", "body": {"nested": [{key: CANARY}]}}))


@pytest.mark.parametrize(
    "text",
    [f"cannot open postgresql://app:{CANARY}@db:5432/app", f"sent Authorization: Bearer {CANARY}", f"Basic {CANARY}"],
)
def test_a_login_inside_a_text_is_hidden(text: str) -> None:
    assert CANARY not in str(redact(None, "error", {"msg": text, "exception": f"Traceback ... {text}"}))


def test_plain_values_stay() -> None:
    event = {"msg": "x", "namespace": "team-a", "count": 3, "url": "https://host/path", "body": {"size": [20]}}

    assert redact(None, "info", dict(event)) == event


PROGRAM = f"""
import logging, structlog
from runtime import logs
logs.configure(level="DEBUG", packages=["mine"])
log = structlog.get_logger("mine")
with structlog.contextvars.bound_contextvars(controller="c", namespace="ns", name="w", reconcileID="r"):
    log.info("hello", generation=3, password="{CANARY}")
    try:
        raise ValueError("postgresql://u:{CANARY}@h/d")
    except ValueError:
        log.exception("broke")
logging.getLogger("botocore.endpoint").debug("body MasterUserPassword={CANARY}")
logging.getLogger("library").warning("from elsewhere")
"""


def test_a_process_writes_one_json_object_a_line_and_no_secret() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]

    assert CANARY not in done.stderr
    assert [line["msg"] for line in lines] == ["hello", "broke", "from elsewhere"]
    assert {"controller", "namespace", "name", "generation", "reconcileID", "ts", "level"} <= set(lines[0])
    assert "ValueError" in lines[1]["exception"]
