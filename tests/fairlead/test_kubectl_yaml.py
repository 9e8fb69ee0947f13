"""Scalars that kubectl reads otherwise than YAML 1.2 are refused with both readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import run
from fairlead.kubectl_yaml import read
from tests.fairlead.test_rendering import CLAIM

# As go.yaml.in/yaml/v2 2.4.3 answered, by sigs.k8s.io/yaml 1.6.0.
BY_KUBECTL: dict[str, Any] = {
    "off": False, "Yes": True, "y": True, "N": False, "oN": "oN", "~": None, "": None, "null": None, "nUll": "nUll",
    "0100": 64, "010": 8, "08": 8.0, "1_0": 10, "_1": "_1", "0x1F": 31, "0o17": 15, "0b11": 3, "-0b11": -3, "+1": 1,
    "1e3": 1000.0, "1.": 1.0, ".5": 0.5, "-.5": -0.5, ".5e3": 500.0, "22:45": "22:45", "2026-11-26": "2026-11-26",
    "99999999999999999999999": 1e23, "18446744073709551615": 18446744073709551615, ".": ".", "-": "-", "x1": "x1",
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), BY_KUBECTL.items(), ids=BY_KUBECTL)
def test_a_scalar_is_read_as_kubectl_reads_it(text: str, value: Any) -> None:
    reading = read(text)

    assert (isinstance(reading, bool), reading) == (isinstance(value, bool), value)


REFUSED = {
    "jit: off": "10:10: off is a text in YAML 1.2 and false for kubectl: quote it, or write what you mean",
    "jit: 0100": "10:10: 0100 is the number 100 in YAML 1.2 and the number 64 for kubectl: quote it, or write",
    "on: '1'": "10:5: on is a text in YAML 1.2 and true for kubectl",
}


@pytest.mark.parametrize(("line", "sentence"), REFUSED.items(), ids=REFUSED)
def test_two_readings_are_a_fault_with_its_place(
    line: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(f"{CLAIM}  parameters:\n    {line}\n")

    assert run(["validate", str(file)]) == 2

    assert sentence in capsys.readouterr().err
