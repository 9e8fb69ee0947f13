"""A Kubernetes object as the decision reads it, what its references stand for, what a pass reports of a password."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from apis.teardown import Policy, instruction_of
from providers.azure.children.kinds import DATABASES, SERVERS
from providers.external.ownership import Owner
from providers.external.provider import Kind
from providers.gcp import DATABASES as INSTANCE_DATABASES
from providers.managed import record
from providers.managed.references import _resolved, containers
from runtime.changes import Change as ObjectChange
from runtime.changes import ChangeKind
from runtime.objects import Key, Object, dumps
from runtime.record import Record

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
P = "fairlead.dev/"


def obj(annotations: dict[str, str] | None = None, **fields: object) -> Object:
    meta = {"name": "db", "namespace": "team", "uid": "uid-1", "annotations": annotations or {}}
    return {"metadata": meta | {"labels": fields.pop("labels", {})}, **fields}


@pytest.mark.parametrize(
    ("instruction", "policy"),
    [
        ("", None),
        ("uid-1/Delete", Policy.DELETE),
        ("uid-1/Snapshot", Policy.SNAPSHOT),
        ("uid-1/Orphan", Policy.ORPHAN),
        ("uid-1/Detach", Policy.DETACH),
        ("uid-2/Delete", None),
        ("uid-1/delete", None),
        ("uid-1", None),
        ("/Delete", None),
        ("Delete", None),
    ],
)
def test_teardown_instruction_counts_for_its_own_uid_alone(instruction: str, policy: Policy | None) -> None:
    assert instruction_of(obj({P + "teardown": instruction})) is policy


@pytest.mark.parametrize("own", [Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE])
@pytest.mark.parametrize("instruction", [None, Policy.DETACH, Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE])
def test_teardown_instruction_destroys_no_more_than_the_resources_own_policy_asks_for(
    instruction: Policy | None, own: Policy
) -> None:
    agreed = {
        (Policy.SNAPSHOT, Policy.SNAPSHOT),
        (Policy.SNAPSHOT, Policy.DELETE),
        (Policy.DELETE, Policy.DELETE),
    }
    destroys = instruction in (Policy.SNAPSHOT, Policy.DELETE)

    assert bool(record.refuse_destroy(instruction, own)) is (destroys and (instruction, own) not in agreed)


@pytest.mark.parametrize(
    ("kind", "name", "fields"),
    [
        (DATABASES, "group/server/app", {"server": "group/server", "name": "app"}),
        (INSTANCE_DATABASES, "instance/app", {"instance": "instance", "name": "app"}),
    ],
    ids=["azure", "gcp"],
)
def test_spec_has_what_the_name_in_the_cloud_says(kind: Kind[Any, Any], name: str, fields: dict[str, str]) -> None:
    model = type(record.envelope_of({"spec": {"forProvider": fields}}, kind.spec_type).for_provider)
    assert kind.naming.filled(model(), name) == model(**fields)


def test_field_is_left_out_of_what_is_only_observed_alone() -> None:
    spec = {"forProvider": {"server": "group/server"}, "managementPolicy": "Observe"}
    assert record.envelope_of({"spec": spec}, DATABASES.spec_type).for_provider.name == ""
    with pytest.raises(record.InvalidSpec, match=r"spec.forProvider lacks name, .* set it"):
        record.envelope_of({"spec": spec | {"managementPolicy": "Manage"}}, DATABASES.spec_type)


def test_intent_is_read_as_it_was_written() -> None:
    calls = (record.Call("Create", "db"), record.Call("SetPassword", "app_a", "7", "hash"))
    intent = record.Intent(1, "process-1", NOW + timedelta(seconds=25), calls)

    assert record.intent_of(obj(status={"intent": record.dump_intent(intent)})) == intent
    assert record.intent_of(obj()) is None
    assert record.intent_of(obj(status={"intent": {"format": 1, "notAfter": "nonsense"}})) is None


OWNER = Owner("home", "uid-1", "claim-1")
ANNOTATIONS = {"fairlead.dev/external-name": "fl-ours"}


def group(synced: str, *, ready_as: str = "True", annotations: dict[str, str] | None = None, **status: Any) -> Object:
    conditions = [{"type": "Ready", "status": ready_as}, {"type": "Synced", "status": "False", "reason": synced}]
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
        pytest.param(group("InSync", ready_as="False"), "fl-ours", "ResourcePending", id="not ready_as"),
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


def ready_as(status: str) -> Object:
    return DATABASE | {"status": {"conditions": [{"type": "Ready", "status": status}]}}


@pytest.mark.parametrize(
    ("obj", "keys"),
    [
        pytest.param(DATABASE, (Key("team", "orders"),), id="new"),
        pytest.param(ready_as("False"), (Key("team", "orders"),), id="waiting"),
        pytest.param(ready_as("True"), (), id="ready_as"),
        pytest.param(
            DATABASE | {"spec": {"forProvider": {"server": "rg/orders"}}}, (), id="of a server named in Azure"
        ),
        pytest.param(None, (), id="gone"),
    ],
)
def test_what_is_inside_and_not_ready_has_its_server_looked_at(obj: Object | None, keys: tuple[Key, ...]) -> None:
    key = Key("team", "orders-database")
    record = None if obj is None else Record(key, "uid", "1", 1, deleting=False, raw=dumps(obj), indexed=())
    change = ObjectChange(key, ChangeKind.MODIFIED, None, record, own=True)

    assert containers(DATABASES, SERVERS, change) == keys
