"""What an instance is restored from, and whose a clone is, over the wire."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devcloud.gcp.server import ACCOUNT
from providers.external.credential import Credential
from providers.external.observation import Change, Class, Present
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount
from providers.gcp.instances.changes import classify
from providers.gcp.instances.client import clients
from providers.gcp.models import Clone, RestoreFrom
from providers.gcp.names import owner_labels
from runtime import clock
from runtime.errors import Failure
from tests.providers.gates import OPEN
from tests.providers.gcp.answers import OWNER, instance, spec, target
from tests.providers.gcp.wire import PROJECT, Wire, account_on, operation

NAME, CLAIM = "fl-orders-abcdefghij", "customers"
TIME = "2026-11-20T13:00:00+01:00"
UNREACHABLE = {"items": [], "warnings": [{"code": "REGION_UNREACHABLE", "message": "europe-west1"}]}
SOURCE = replace(OWNER, identity="44444444-0000-4000-8000-000000000000", name=CLAIM)
ANOTHER = replace(SOURCE, identity="55555555-0000-4000-8000-000000000000")
STORE, CACHE, FORMER = (replace(ANOTHER, **more) for more in (
    {"resource": "store"}, {"resource": "cache"}, {"namespace_uid": "former"}
))  # fmt: skip


def _settings(owner: Owner, **more: Any) -> dict[str, Any]:
    return instance(userLabels=owner_labels(owner), **more)


def _a(owner: Owner = SOURCE, *, name: str = "fl-a", day: int = 1, **more: Any) -> dict[str, Any]:
    return {**_settings(owner), "name": name, "createTime": f"2026-11-0{day}T00:00:00Z", **more}


def _b(owner: Owner = SOURCE, *, day: int = 2) -> dict[str, Any]:
    return _a(owner, name="fl-b", day=day)


def _kept(name: str) -> dict[str, Any]:
    settings, day = _settings(FORMER if name == "former" else SOURCE), f"2026-11-2{len(name)}T00:00:00Z"
    place = f"projects/{PROJECT}/backups/{name}"
    kept = {"name": place, "state": "SUCCESSFUL", "backupInterval": {"endTime": day}, "instanceSettings": settings}
    gone = {"instance": "fl-a", "type": "AUTOMATED" if name == "daily" else "FINAL", "instanceDeletionTime": day}
    return kept | (gone if name in {"daily", "final"} else {})


_NETWORKED = _settings(SOURCE, ipConfiguration={"privateNetwork": "projects/p/global/networks/n"})
CLONED, BLOCKED, WRONG = "instances/fl-a/clone", "ReferenceNotFound", "InvalidValue"
# What is there, the backups that are kept, at which time: what is called, or the reason of a refusal.
CLONES: list[tuple[str, list[dict[str, Any]], list[str], str, str]] = [
    ("the instance", [_a()], [], "", CLONED),
    ("the instance at a time", [_a()], [], TIME, "'pointInTime': '2026-11-20T12:00:00Z'"),
    ("no clone of it with its labels", [_b(), _a()], [], "", CLONED),
    ("nor one that is being made", [_a(state="PENDING_CREATE")], [], "", BLOCKED),
    ("nor itself", [_a(name=NAME), _a(day=2)], [], "", CLONED),
    ("of two resources that of its name", [_b(STORE), _a()], [], "", CLONED),
    ("none of two of other names", [_b(STORE), _a(CACHE)], [], "", WRONG),
    ("of two identities the newer", [_b(ANOTHER, day=1), _a(day=2)], [], "", CLONED),
    ("of two namespaces its own", [_b(FORMER), _a()], [], "", CLONED),
    ("none of a former namespace", [_a(FORMER)], [], "", "AdoptionRefused"),
    ("of the deleted one the last backup", [], ["bb", "a"], "", "backups/bb'"),
    ("and none of a backup of a former namespace", [], ["former"], "", "AdoptionRefused"),
    ("and none of that at a time", [], ["bb"], TIME, BLOCKED),
    ("nor by its final one", [], ["final"], TIME, BLOCKED),
    ("it at a time where its daily ones are", [], ["daily"], TIME, "'sourceInstanceDeletionTime': '2026-11-25T00:00"),
    ("none in another region", [_a(region="us-east1")], [], "", WRONG),
    ("none of another version", [_a(databaseVersion="POSTGRES_15")], [], "", WRONG),
    ("none in another network", [{**_NETWORKED, "name": "fl-a"}], [], "", WRONG),
]  # fmt: skip


@pytest.mark.parametrize(
    ("living", "kept", "time", "outcome"), [row[1:] for row in CLONES], ids=[row[0] for row in CLONES]
)
async def test_what_is_kept_of_a_claim_is_restored(
    living: list[dict[str, Any]], kept: list[str], time: str, outcome: str
) -> None:
    wire = Wire()
    wire.answer("GET instances", {"items": living})
    wire.answer("GET backups", {"backups": [_kept(name) for name in kept]})
    for call in (CLONED, f"instances/{NAME}/restoreBackup"):
        wire.answer(f"POST {call}", operation())
    wanted = spec(restore_from=RestoreFrom(clone=Clone(source_claim=CLAIM, point_in_time=time or None)))
    # That adoption is allowed is for what is named by itself.
    async with account_on(wire, allow_adoption=True) as account:
        creating = clients(account).external.create(target(wanted), Credential("", ""), OPEN)
        if not outcome.isalpha():
            await creating
            assert outcome in f"{wire.changes} {wire.requests[-1].body}"
            return
        with pytest.raises(Failure) as refusal:
            await creating
    assert (getattr(refusal.value, "reason", ""), wire.changes) == (outcome, [])


@pytest.mark.parametrize("part", ["backup", "clone"])
async def test_nothing_is_made_of_what_is_named_and_of_a_former_namespace(
    wire: Wire, account: GcpAccount, part: str
) -> None:
    wire.answer("GET instances/fl-a", _a(FORMER))
    wire.answer("GET backups/former", _kept("former"))
    named = {"backup": _kept("former")["name"], "clone": Clone(source_instance="fl-a")}
    wanted = spec(restore_from=RestoreFrom(**{part: named[part]}))
    with pytest.raises(Failure, match="not proven to be of this namespace"):
        await clients(account).external.create(target(wanted), Credential("", ""), OPEN)
    assert wire.changes == []


async def test_nothing_is_made_of_a_claim_where_a_region_is_silent(wire: Wire, account: GcpAccount) -> None:
    wire.answer("GET instances", UNREACHABLE)
    wanted = spec(restore_from=RestoreFrom(clone=Clone(source_claim=CLAIM)))
    with pytest.raises(Failure, match="did not answer"):
        await clients(account).external.create(target(wanted), Credential("", ""), OPEN)


ALICE = "alice@example.com"
MAKERS = [("CLONE", ACCOUNT, ALICE, True), ("CREATE", ACCOUNT, ALICE, True), ("CLONE", ALICE, ACCOUNT, False)]


@pytest.mark.parametrize("by_rule", [True, False])
@pytest.mark.parametrize(("kind", "maker", "former", "ours"), MAKERS)
async def test_a_clone_with_its_sources_labels_is_ours_where_the_operations_name_us(
    wire: Wire, account: GcpAccount, kind: str, maker: str, former: str, *, ours: bool, by_rule: bool
) -> None:
    account.log.own.add(ACCOUNT)
    wire.answer(f"GET instances/{NAME}", _settings(SOURCE))
    wire.answer(f"PATCH instances/{NAME}", operation())
    made = [
        operation(f"op-{hours}", operationType=kind, targetId=NAME, user=user, insertTime=at.isoformat())
        for hours, user in enumerate((maker, former))
        for at in (clock.now() - timedelta(hours=hours),)
    ]
    wire.answer("GET operations", {"items": made})
    wanted = spec(restore_from=RestoreFrom(clone=Clone(source_claim=CLAIM)))
    whose = target(wanted, is_by_rule=by_rule)
    present = await clients(account).external.observe(whose)
    assert isinstance(present, Present)
    is_own = ours and by_rule
    assert present.observed.owner == (OWNER if is_own else SOURCE)
    zonal = classify(Change(("availabilityType",), "REGIONAL", "ZONAL"), present.observed)
    upgrade = classify(Change(("databaseVersion",), "POSTGRES_17", "POSTGRES_16"), present.observed)
    assert (zonal.kind is Class.ONLINE, upgrade.kind) == (is_own, Class.LOSS)
    await clients(account).external.release(whose, present.observed, OPEN)
    assert owner_labels(OWNER).items() <= wire.requests[-1].body["settings"]["userLabels"].items()
