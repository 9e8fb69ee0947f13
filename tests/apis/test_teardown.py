"""The teardown instruction as the composer writes it and a provider reads it."""

from __future__ import annotations

import pytest

from apis.teardown import Policy, instruction, instruction_of


@pytest.mark.parametrize("policy", Policy)
def test_an_instruction_is_read_as_it_was_written(policy: Policy) -> None:
    written = instruction("uid-1", policy)

    assert written == f"uid-1/{policy.value}"
    assert instruction_of({"metadata": {"uid": "uid-1", "annotations": {"fairlead.dev/teardown": written}}}) is policy
    assert instruction_of({"metadata": {"uid": "uid-2", "annotations": {"fairlead.dev/teardown": written}}}) is None
