"""What a reference to another resource of the namespace stands for: a name that is its own, once it is Ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from providers.managed.references import _looked_up
from runtime.objects import Key, Object

MARK = {"fairlead.dev/external-name": "fl-ours"}


def group(synced: str, *, ready: str = "True", mark: dict[str, str] | None = None, **status: Any) -> Object:
    conditions = [{"type": "Ready", "status": ready}, {"type": "Synced", "status": "False", "reason": synced}]
    return {"metadata": {"annotations": mark or MARK}, "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("other", "name", "reason"),
    [
        pytest.param(group("InSync", externalName="fl-ours"), "fl-ours", "", id="its own"),
        pytest.param(group("InSync"), "fl-ours", "", id="by its annotation alone"),
        pytest.param(
            group("InSync", externalName="fl-ours", mark={"fairlead.dev/external-name": "fl-theirs"}),
            "fl-ours",
            "",
            id="an annotation that no pass has seen",
        ),
        pytest.param(group("NotOwned", externalName="fl-theirs"), "", "ResourcePending", id="another's"),
        pytest.param(group("Replaced", externalName="fl-theirs"), "", "ResourcePending", id="another under its name"),
        pytest.param(group("InSync", ready="False"), "fl-ours", "ResourcePending", id="not ready"),
        pytest.param(None, "", "ReferenceNotFound", id="absent"),
    ],
)
def test_a_reference_stands_for_what_is_its_own(other: Object | None, name: str, reason: str) -> None:
    informer: Any = SimpleNamespace(store=SimpleNamespace(get=lambda _key: other))

    found, trouble = _looked_up("DBSubnetGroup", informer, Key("team", "subnets"))

    assert (found, trouble[0] if trouble else "") == (name, reason)
