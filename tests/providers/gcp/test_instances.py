"""Instances over the wire: what is believed of an answer, and what is sent for each plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis.teardown import Policy
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Present
from providers.gcp.account import GcpAccount
from providers.gcp.config import Limits
from providers.gcp.instances import create
from providers.gcp.instances.client import clients
from providers.gcp.instances.translate import Seen
from providers.gcp.models import RestoreFrom
from providers.gcp.names import RELEASED, owner_labels
from providers.gcp.refusals import Denied
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient
from tests.providers.gates import OPEN
from tests.providers.gcp.answers import CREATED, OWNER, instance, seen, spec, target
from tests.providers.gcp.wire import PROJECT, Wire, account_on, operation, refused

NAME = "fl-orders-abcdefghij"
GET, LIST = f"GET instances/{NAME}", "GET instances"
NO_LOGIN = Credential("", "")
GONE, HIDDEN = refused(404, "instanceDoesNotExist"), refused(403, "notAuthorized")
UNREACHABLE = {"items": [], "warnings": [{"code": "REGION_UNREACHABLE", "message": "europe-west1"}]}


def _ours(**settings: Any) -> dict[str, Any]:
    return instance(userLabels=owner_labels(OWNER), **settings)


async def _seen(account: GcpAccount, **more: Any) -> Seen:
    observation = await clients(account).external.observe(target(**more))
    assert isinstance(observation, Present)
    return observation.observed


OBSERVED: list[tuple[str, str, object, object, type]] = [
    ("never made and not found", "", GONE, None, Absent),
    ("was there, not found and not listed", CREATED, GONE, {"items": []}, Absent),
    ("was there, not found and yet listed", CREATED, GONE, {"items": [{"name": NAME}]}, Transient),
    ("was there, not found, and a region silent", CREATED, GONE, UNREACHABLE, Transient),
    ("hidden and not listed: gone", CREATED, HIDDEN, {"items": []}, Absent),
    ("hidden and listed: not allowed", CREATED, HIDDEN, {"items": [{"name": NAME}]}, Denied),
    ("hidden, and a region silent", CREATED, HIDDEN, UNREACHABLE, Transient),
    ("hidden, and the list refused", CREATED, HIDDEN, HIDDEN, Denied),
    ("never made, hidden and not listed", "", HIDDEN, {"items": []}, Absent),
    ("a page of a proxy", CREATED, (404, {"message": "no such page"}), {"items": []}, Transient),
    ("out of order", CREATED, refused(500, "internalError"), {"items": []}, Transient),
]


@pytest.mark.parametrize(
    ("incarnation", "answer", "listed", "outcome"), [row[1:] for row in OBSERVED], ids=[row[0] for row in OBSERVED]
)
async def test_absence_is_believed_on_proof(
    wire: Wire, account: GcpAccount, *, incarnation: str, answer: object, listed: object, outcome: type
) -> None:
    wire.answer(GET, answer)
    wire.answer(LIST, listed)
    external = clients(account).external
    if issubclass(outcome, Failure):
        with pytest.raises(outcome):
            await external.observe(target(incarnation=incarnation))
    else:
        assert await external.observe(target(incarnation=incarnation)) == outcome()
    assert wire.changes == []


async def test_a_create_never_takes_what_is_anothers(wire: Wire, account: GcpAccount) -> None:
    wire.answer("POST instances", refused(409, "instanceAlreadyExists"))
    wire.answer(GET, instance())
    with pytest.raises(Conflict):
        await clients(account).external.create(target(), NO_LOGIN, OPEN)
    assert wire.changes == ["POST instances"]


async def test_a_name_that_is_still_reserved_waits_in_words(wire: Wire, account: GcpAccount) -> None:
    wire.answer("POST instances", refused(409, "instanceAlreadyExists"))
    with pytest.raises(Blocked) as reserved:
        await clients(account).external.create(target(), NO_LOGIN, OPEN)
    assert reserved.value.reason == "NameTaken"
    assert "reserved" in reserved.value.message


async def test_an_update_names_the_version_of_the_settings_that_it_was_decided_on(
    wire: Wire, account: GcpAccount
) -> None:
    wire.answer(GET, _ours(settingsVersion="42"))
    wire.answer(f"PATCH instances/{NAME}", operation())
    observed = await _seen(account)
    change = Change(("tier",), "db-custom-2-7680", "db-custom-1-3840")
    await clients(account).external.update(target(), observed, (change,), OPEN)
    assert wire.requests[-1].body == {"settings": {"tier": "db-custom-2-7680", "settingsVersion": "42"}}


async def test_settings_that_somebody_changed_first_are_read_again(wire: Wire, account: GcpAccount) -> None:
    wire.answer(GET, _ours())
    wire.answer(f"PATCH instances/{NAME}", refused(412, "conditionNotMet"))
    observed = await _seen(account)
    with pytest.raises(Conflict):
        await clients(account).external.update(target(), observed, (Change(("tier",), "t", "u"),), OPEN)


DELETIONS = [(Policy.DELETE, {}), (Policy.SNAPSHOT, {"enableFinalBackup": "true", "finalBackupTtlDays": "365"})]


@pytest.mark.parametrize(("policy", "query"), DELETIONS)
async def test_a_deletion_keeps_what_its_policy_says(
    wire: Wire, account: GcpAccount, policy: Policy, query: dict[str, str]
) -> None:
    wire.answer(GET, _ours())
    wire.answer(f"DELETE instances/{NAME}", operation())
    observed = await _seen(account)
    started = await clients(account).external.delete(target(), observed, policy, OPEN)
    assert started is not None
    assert started.kind == "Delete"
    sent = {key: value for key, value in wire.requests[-1].query.items() if key != "finalBackupDescription"}
    assert sent == query


async def test_a_protected_instance_is_not_deleted_unless_the_spec_takes_the_protection_away(
    wire: Wire, account: GcpAccount
) -> None:
    wire.answer(GET, _ours(deletionProtectionEnabled=True))
    wire.answer(f"PATCH instances/{NAME}", operation())
    observed = await _seen(account)
    with pytest.raises(Blocked) as held:
        await clients(account).external.delete(target(), observed, Policy.DELETE, OPEN)
    assert held.value.reason == "DeleteBlocked"
    patch = '{"spec":{"forProvider":{"deletionProtectionEnabled":false}}}'
    assert f"--type=merge -p '{patch}'`" in held.value.message
    assert wire.changes == []
    unprotected = target(spec(deletion_protection_enabled=False))
    await clients(account).external.delete(unprotected, observed, Policy.DELETE, OPEN)
    assert wire.changes == [f"PATCH instances/{NAME}"]
    assert wire.requests[-1].body["settings"] == {"deletionProtectionEnabled": False, "settingsVersion": "123"}


async def test_a_release_is_a_label_and_an_adoption_takes_it_away(wire: Wire, account: GcpAccount) -> None:
    wire.answer(GET, _ours())
    wire.answer(f"PATCH instances/{NAME}", operation())
    external, observed = clients(account).external, await _seen(account)
    await external.release(target(), observed, OPEN)
    assert set(wire.requests[-1].body["settings"]["userLabels"]) == {RELEASED}
    assert wire.requests[-1].body["settings"]["settingsVersion"] == "123"
    labels = {**observed.facts.labels, RELEASED: "1"}
    released = replace(observed, facts=replace(observed.facts, labels=labels))
    await external.adopt(target(), released, OPEN)
    assert wire.requests[-1].body["settings"]["userLabels"] == {**owner_labels(OWNER), RELEASED: None}


async def test_a_list_in_which_a_region_is_silent_is_incomplete(wire: Wire, account: GcpAccount) -> None:
    wire.answer(LIST, {"items": [_ours()]}, {**UNREACHABLE, "items": [_ours()]})
    listing = clients(account).account
    whole, partial = await listing.list(), await listing.list()
    assert (whole.complete, partial.complete) == (True, False)
    assert whole.owners == {NAME: OWNER}
    assert whole.items == partial.items


async def test_predecessors_are_not_known_while_a_region_is_silent(wire: Wire, account: GcpAccount) -> None:
    wire.answer(LIST, UNREACHABLE, {"items": [_ours()]})
    later = replace(OWNER, identity="22222222-0000-4000-8000-000000000000")
    search = clients(account).account.find_predecessors
    with pytest.raises(Transient):
        await search(later)
    (predecessor,) = await search(later)
    assert (predecessor.name, predecessor.incarnation, predecessor.owner) == (NAME, CREATED, OWNER)


def _backup(name: str, state: str = "SUCCESSFUL", kind: str = "FINAL", **more: Any) -> dict[str, Any]:
    return {
        "name": f"projects/{PROJECT}/backups/{name}",
        "instance": NAME,
        "type": kind,
        "state": state,
        "backupInterval": {"endTime": f"2026-11-2{len(name)}T00:00:00Z"},
        "instanceSettings": _ours(),
        **more,
    }


BACKUPS = [
    ("none", [], True, ""),
    ("the final one", [_backup("a")], True, "a"),
    ("an automated one does not keep a leaving instance", [_backup("a", kind="AUTOMATED")], True, ""),
    ("an automated one is one", [_backup("a", kind="AUTOMATED")], False, "a"),
    ("one that is being made", [_backup("a", state="RUNNING")], True, ""),
    ("the newest", [_backup("a"), _backup("bb")], True, "bb"),
    ("of another instance", [{**_backup("a"), "instance": "fl-other"}], True, ""),
    (
        "of a former instance of the name",
        [_backup("a", instanceSettings={"createTime": "2020-01-01T00:00:00Z"})],
        True,
        "",
    ),
]


@pytest.mark.parametrize(
    ("backups", "leaving", "latest"), [row[1:] for row in BACKUPS], ids=[row[0] for row in BACKUPS]
)
async def test_the_backup_that_counts(
    wire: Wire, account: GcpAccount, backups: list[dict[str, Any]], latest: str, *, leaving: bool
) -> None:
    wire.answer("GET backups", {"backups": backups})
    served = clients(account).backups
    assert served is not None
    kept = await served.latest(target(incarnation=CREATED, leaving=leaving))
    assert kept == (f"projects/{PROJECT}/backups/{latest}" if latest else "")


async def test_a_final_backup_that_failed_is_said_and_of_a_silent_region_none_is_known(
    wire: Wire, account: GcpAccount
) -> None:
    wire.answer("GET backups", {"backups": [_backup("a", state="FAILED")]})
    served = clients(account).backups
    assert served is not None
    with pytest.raises(Blocked) as failed:
        await served.latest(target(incarnation=CREATED, leaving=True))
    assert failed.value.reason == "BackupImpossible"
    wire.answer("GET backups", {**UNREACHABLE, "backups": [_backup("b")]})
    with pytest.raises(Transient, match="which backups it holds is not known"):
        await served.latest(target(incarnation=CREATED, leaving=True))


async def test_a_lost_instance_is_restored_by_its_own_backup_with_the_settings_of_the_spec() -> None:
    wire, backup = Wire(), f"projects/{PROJECT}/backups/a"
    wire.answer(f"POST instances/{NAME}/restoreBackup", operation())
    wire.answer("GET backups/a", _backup("a", instanceSettings=_ours(dataDiskSizeGb="50")))
    wanted = spec(restore_from=RestoreFrom(backup=f"projects/{PROJECT}/backups/b"), data_disk_size_gb=20)
    async with account_on(wire, limits=Limits(storage_gib=40)) as account:
        with pytest.raises(Terminal, match="40 GiB"):
            await clients(account).external.create(target(wanted, restore=backup), NO_LOGIN, OPEN)
    async with account_on(wire) as account:
        await clients(account).external.create(target(wanted, restore=backup), NO_LOGIN, OPEN)
    body = wire.requests[-1].body
    assert body["restoreInstanceSettings"]["settings"]["dataDiskSizeGb"] == "50"
    assert create.with_disk_of(target(spec(data_disk_size_gb=60)), 50).spec.data_disk_size_gb == 60
    assert seen(wanted, _ours(dataDiskSizeGb="50", storageAutoResize=False)).tolerated[0].have == 50
    assert body["backup"] == backup
    assert body["restoreInstanceSettings"]["settings"]["userLabels"] == owner_labels(OWNER)


FOREIGN = replace(OWNER, namespace="other", namespace_uid="33333333-0000-4000-8000-000000000000")
SOURCES = [
    ("of this namespace", owner_labels(OWNER), {}, {}, True),
    ("of another namespace", owner_labels(FOREIGN), {}, {}, False),
    ("of nobody", {}, {}, {}, False),
    (
        "of another namespace, agreed to",
        owner_labels(FOREIGN),
        {"agreed": (f"projects/{PROJECT}/backups/a",)},
        {},
        True,
    ),
    ("of another namespace, adoption allowed", owner_labels(FOREIGN), {}, {"allow_adoption": True}, True),
]


@pytest.mark.parametrize(
    ("labels", "more", "config", "allowed"), [row[1:] for row in SOURCES], ids=[row[0] for row in SOURCES]
)
async def test_a_backup_of_another_namespace_is_not_restored(
    labels: dict[str, str], more: dict[str, Any], config: dict[str, Any], *, allowed: bool
) -> None:
    wire = Wire()
    wire.answer("GET backups/a", _backup("a", instanceSettings=instance(userLabels=labels)))
    wire.answer(f"POST instances/{NAME}/restoreBackup", operation())
    wanted = target(spec(restore_from=RestoreFrom(backup=f"projects/{PROJECT}/backups/a")), **more)
    async with account_on(wire, **config) as account:
        external = clients(account).external
        if allowed:
            await external.create(wanted, NO_LOGIN, OPEN)
        else:
            with pytest.raises(Terminal) as refusal:
                await external.create(wanted, NO_LOGIN, OPEN)
            assert refusal.value.reason == "AdoptionRefused"
    assert bool(wire.changes) is allowed


REFUSALS = [
    ({}, {}, ""),
    ({"storageGiB": 50}, {"data_disk_size_gb": 60}, "50 GiB"),
    ({"storageGiB": 50}, {"data_disk_size_gb": 20, "storage_auto_resize_limit": 60}, "50 GiB"),
    ({"tiers": ["db-custom-2-7680"]}, {}, "db-custom-1-3840 is not offered"),
    ({}, {"authorized_networks": ("203.0.113.0/24",)}, "internet"),
    ({}, {"ssl_mode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"}, "client certificate"),
    ({}, {"connector_enforcement": "REQUIRED"}, "connectors"),
    ({"publicAccess": True}, {"authorized_networks": ("203.0.113.0/24",)}, ""),
    ({}, {"authorized_networks": ("203.0.113.0/24",), "ipv4_enabled": False}, ""),
]


@pytest.mark.parametrize(("limits", "wanted", "says"), REFUSALS)
async def test_what_no_instance_may_be_is_refused(limits: dict[str, Any], wanted: dict[str, Any], says: str) -> None:
    async with account_on(Wire(), limits=msgspec.convert(limits, Limits)) as account:
        refusal = clients(account).account.refusal(spec(**wanted))
    assert (refusal is None) == (not says)
    assert refusal is None or says in refusal[1]
