"""`python -m devcloud.aws`: says where it listens, ends when asked to, says in one line why it cannot begin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import boto3
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.rds
def test_the_program_serves_until_it_is_asked_to_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a-secret-of-this-test\n", encoding="utf-8")
    program = [sys.executable, "-m", "devcloud.aws", "--access-key", "AKIAPROGRAM000000000"]
    program += ["--account", "210987654321", "--secret-key-file", str(tmp_path / "secret")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout is not None
        url = first.stdout.readline().rsplit(" ", 1)[-1].strip()
        try:
            sts = boto3.client(
                "sts",
                region_name="eu-west-1",
                endpoint_url=url,
                aws_access_key_id="AKIAPROGRAM000000000",
                aws_secret_access_key="a-secret-of-this-test",
            )
            assert sts.get_caller_identity()["Account"] == "210987654321"
            second = subprocess.run(
                [*program, "--listen", url.removeprefix("http://")],
                capture_output=True,
                text=True,
                cwd=ROOT,
                timeout=120,
                check=False,
            )
        finally:
            first.terminate()
        assert first.wait(timeout=120) == 0

    assert second.returncode == 1
    assert second.stderr.startswith("aws: ")
    assert "address already in use" in second.stderr
    assert second.stderr.count("\n") == 1
