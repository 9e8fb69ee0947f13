"""What a reference to another resource of the namespace stands for: a name that is its own, once it is Ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from providers.azure.children.kinds import DATABASES, SERVERS
from providers.managed.references import _resolved, containers
from runtime.changes import Change, ChangeKind
from runtime.objects import Key, Object, dumps
from runtime.record import Record

ANNOTATIONS = {"fairlead.dev/external-name": "fl-ours"}


def group(synced: str, *, ready: str = "True", annotations: dict[str, str] | None = None, **status: Any) -> Object:
    conditions = [{"type": "Ready", "status": ready}, {"type": "Synced", "status": "False", "reason": synced}]
    return {"metadata": {"annotations": annotations or ANNOTATIONS}, "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("other", "name", "reason"),
    [
        pytest.param(group("InSync", externalName="fl-ours"), "fl-ours", "", id="its own"),
        pytest.param(group("InSync"), "fl-ours", "", id="by its annotation alone"),
        pytest.param(
            group("InSync", externalName="fl-ours", annotations={"fairlead.dev/external-name": "fl-theirs"}),
            "fl-ours",
            "",
            id="an annotation that no pass has seen",
        ),
        pytest.param(group("NotOwned", externalName="fl-theirs"), "", "ResourcePending", id="another's"),
        pytest.param(group("Replaced", externalName="fl-theirs"), "", "ResourcePending", id="another under its name"),
        pytest.param(group("InSync", ready="False"), "fl-ours", "ResourcePending", id="not ready"),
        pytest.param({"metadata": {}}, "", "ResourcePending", id="that no pass has seen"),
        pytest.param(None, "", "ReferenceNotFound", id="absent"),
    ],
)
def test_reference_resolves_to_what_is_its_own(other: Object | None, name: str, reason: str) -> None:
    informer: Any = SimpleNamespace(store=SimpleNamespace(get=lambda _key: other))

    resolved, refusal = _resolved("DBSubnetGroup", informer, Key("team", "subnets"))

    assert (resolved, refusal[0] if refusal else "") == (name, reason)


DATABASE: Object = {
    "metadata": {"namespace": "team", "name": "orders-database"},
    "spec": {"forProvider": {"serverRef": {"name": "orders"}}},
}


def ready(status: str) -> Object:
    return DATABASE | {"status": {"conditions": [{"type": "Ready", "status": status}]}}


@pytest.mark.parametrize(
    ("obj", "keys"),
    [
        pytest.param(DATABASE, (Key("team", "orders"),), id="new"),
        pytest.param(ready("False"), (Key("team", "orders"),), id="waiting"),
        pytest.param(ready("True"), (), id="ready"),
        pytest.param(
            DATABASE | {"spec": {"forProvider": {"server": "rg/orders"}}}, (), id="of a server named in Azure"
        ),
        pytest.param(None, (), id="gone"),
    ],
)
def test_what_is_inside_and_not_ready_has_its_server_looked_at(obj: Object | None, keys: tuple[Key, ...]) -> None:
    key = Key("team", "orders-database")
    record = None if obj is None else Record(key, "uid", "1", 1, deleting=False, raw=dumps(obj), indexed=())
    change = Change(key, ChangeKind.MODIFIED, None, record, own=True)

    assert containers(DATABASES, SERVERS, change) == keys
