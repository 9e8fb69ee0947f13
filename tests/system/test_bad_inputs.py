"""What a claim may not say: each bad input gets the answer that the contract names, and no database changes."""

from dataclasses import dataclass

import pytest

from tests.support.api import ApiError, JsonObject
from tests.support.kinds import CLAIM, SMALL, claim, composition, condition, in_trouble, is_ready
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CONFIG_MAP: JsonObject = {
    "name": "settings",
    "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
}


# Refused at admission: kubectl prints what the API server says


@dataclass(frozen=True)
class Refusal:
    """A claim's spec that the API server refuses, and the words that its answer must hold."""

    spec: JsonObject
    says: tuple[str, ...]


_REFUSED: dict[str, Refusal] = {
    "both size and cpu": Refusal({**SMALL, "cpu": 2, "memoryGiB": 4}, ("exactly one of", "size")),
    "no storage at all": Refusal({**SMALL, "storageGiB": 0}, ("spec.storageGiB", "greater than or equal to 1")),
    "an unknown field": Refusal({**SMALL, "verison": "16"}, ('unknown field "spec.verison"',)),
    "a version by a word": Refusal({**SMALL, "version": "latest"}, ("spec.version", '"16"')),
    "a Secret in another folder": Refusal({**SMALL, "connectionSecretName": "../x"}, ("spec.connectionSecretName",)),
    "a predefined role": Refusal({**SMALL, "username": "pg_monitor"}, ("username", "reserved")),
    "a quote in a database name": Refusal({**SMALL, "databaseName": 'a"b'}, ("spec.databaseName",)),
    "a statement in a database name": Refusal({**SMALL, "databaseName": "a; drop"}, ("spec.databaseName",)),
    "a zero byte in a database name": Refusal({**SMALL, "databaseName": "a\0b"}, ("spec.databaseName",)),
    "a line end after a database name": Refusal({**SMALL, "databaseName": "ab\n"}, ("spec.databaseName",)),
    "a picture in a database name": Refusal({**SMALL, "databaseName": "\N{GRINNING FACE}"}, ("spec.databaseName",)),
    "a network with host bits": Refusal(
        {**SMALL, "network": {"allowedCIDRs": ["10.0.0.1/8"]}}, ("allowedCIDRs", "10.0.0.0/8")
    ),
    "a network whose prefix is too long": Refusal(
        {**SMALL, "network": {"allowedCIDRs": ["10.0.0.0/33"]}}, ("allowedCIDRs",)
    ),
    "a network of IPv6 with host bits": Refusal(
        {**SMALL, "network": {"allowedCIDRs": ["2001:db8::1/32"]}}, ("allowedCIDRs",)
    ),
    "a network of IPv6 that is none": Refusal(
        {**SMALL, "network": {"allowedCIDRs": ["fe80::1::/64"]}}, ("allowedCIDRs",)
    ),
    "a network that is none": Refusal({**SMALL, "network": {"allowedCIDRs": ["999.1.1.1/32"]}}, ("allowedCIDRs",)),
    "backups during maintenance": Refusal(
        {
            **SMALL,
            "backup": {"startTime": "03:30", "retentionDays": 7},
            "maintenanceWindow": {"day": "Sunday", "hour": 3},
        },
        ("startTime", "overlaps"),
    ),
    "a parameter with a statement in its name": Refusal(
        {**SMALL, "parameters": {"work_mem = 1; --": "1"}}, ("parameter name",)
    ),
}


@pytest.mark.parametrize("case", _REFUSED.values(), ids=_REFUSED.keys())
async def test_a_claim_is_refused_at_admission(system: System, case: Refusal) -> None:
    with pytest.raises(ApiError) as refusal:
        await system.create(CLAIM, CLAIM.new("default", "bad", spec=case.spec))
    assert refusal.value.status in {400, 422}
    for words in case.says:
        assert words in str(refusal.value)
    assert await system.api.find(CLAIM.path("default", "bad")) is None


@dataclass(frozen=True)
class Transition:
    """An edit of a claim that the API server refuses, and the words that its answer must hold."""

    before: JsonObject
    patch: JsonObject
    says: tuple[str, ...]


_FORBIDDEN_EDITS = (
    Transition({"databaseName": "a"}, {"databaseName": "b"}, ("databaseName is fixed",)),
    Transition({"databaseName": "a"}, {"databaseName": None}, ("databaseName is fixed",)),
    Transition({}, {"databaseName": "a"}, ("databaseName is fixed",)),
    Transition({"username": "a"}, {"username": "b"}, ("username is fixed",)),
    Transition({}, {"restoreFrom": {"claim": "a"}}, ("restoreFrom is fixed",)),
)


async def test_an_edit_is_refused_at_admission(system: System, namespace: str) -> None:
    for number, case in enumerate(_FORBIDDEN_EDITS):
        name, nowhere = f"fixed-{number}", {"name": "no-such-one"}
        created = await system.create(CLAIM, claim(namespace, name, **case.before, compositionRef=nowhere))
        with pytest.raises(ApiError) as refusal:
            await system.edit(CLAIM, namespace, name, {"spec": case.patch})
        assert refusal.value.status == 422
        for words in case.says:
            assert words in str(refusal.value)
        assert (await system.api.get(CLAIM.path(namespace, name)))["spec"] == created["spec"]


# Accepted, and answered in words


async def test_two_compositions_that_match_are_both_named_and_none_is_taken(running: System, namespace: str) -> None:
    names, mark = (f"{namespace}-one", f"{namespace}-two"), running.sql.mark()
    first, second = (composition(name, _CONFIG_MAP, labels={"pick": namespace}) for name in names)
    async with running.composition(first), running.composition(second):
        selector = {"matchLabels": {"pick": namespace}}
        await running.create(CLAIM, claim(namespace, "torn", compositionSelector=selector))
        obj = await running.until(CLAIM, namespace, "torn", in_trouble("AmbiguousComposition"))
        assert all(name in condition(obj, "Synced")["message"] for name in names)
        assert condition(obj, "Stalled")["status"] == "True"
        assert await running.children(namespace, "torn") == []
        await running.delete(CLAIM, namespace, "torn")
    assert running.sql.changes(mark) == []


async def test_an_annotation_of_200_kilobytes_is_carried_by_nobody(running: System, namespace: str) -> None:
    obj = claim(namespace, "heavy")
    obj["metadata"]["annotations"] = {"example.org/note": "n" * 200 * 1024}
    await running.create(CLAIM, obj)
    await running.until(CLAIM, namespace, "heavy", is_ready)
    (child,) = await running.children(namespace, "heavy")
    assert "example.org/note" not in child["metadata"].get("annotations", {})


async def test_annotations_that_leave_no_room_for_ours_end_in_words_not_in_a_loop(
    running: System, namespace: str
) -> None:
    mark = running.sql.mark()
    obj = claim(namespace, "full")
    obj["metadata"]["annotations"] = {"example.org/note": "n" * (256 * 1024 - 40)}
    await running.create(CLAIM, obj)
    refused = await running.until(CLAIM, namespace, "full", in_trouble("InvalidValue"))
    assert "annotations" in condition(refused, "Synced")["message"]
    await running.at_rest(for_s=1.0)
    assert running.sql.changes(mark) == []
