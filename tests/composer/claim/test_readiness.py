"""Ready=True is kept only while nothing that the claim uses is known to be unusable; the tables here are the oracle."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from apis import names
from composer.causes import cause
from composer.claim.outcomes import with_broken
from composer.claim.readiness import child_cause
from composer.claim.report import NOBODY, Findings, report, report_pause
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from composer.render.render import Rendered, Waiting
from runtime.objects import Object, Resource
from tests.composer.factories import (
    DATABASE,
    SETTINGS,
    child,
    claim,
    condition,
    conditions_of,
    desired,
    entry,
    live,
    rendered,
    snapshot,
)

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
FOREIGN = KindFacts(Resource("acid.zalan.do", "v1", "postgresql", "postgresqls"), stateful=True, reports=True)
WORKLOAD = KindFacts(Resource("apps", "v1", "StatefulSet", "statefulsets"), stateful=True)
NEVER_READY = "Creating"


READY_TRUE = condition("Ready", "True", "Available")
WAS_READY = claim(status={"conditions": [READY_TRUE]})
READY = {"observedGeneration": 1, "conditions": [READY_TRUE]}
LOST = {
    "observedGeneration": 1,
    "conditions": [condition("Ready", "False", "DatabaseLost"), condition("Stalled", "True", "DatabaseLost")],
}


def _known(
    status: Object | None, facts: KindFacts = DATABASE, *, of: Entry | None = None, **meta: Any
) -> ObservedChild:
    """Return the child `database` with a status; None for one that is gone."""
    obj = live(desired(facts=facts), **meta) if status is not None else None
    return ObservedChild(of or entry(facts=facts), {**obj, "status": status} if obj else None, facts)


def _ready(seen: Snapshot, findings: Findings) -> str:
    return conditions_of(report(seen, with_broken(seen, findings), AT))["Ready"]


# Where nothing is rendered: a hold, a refusal, a broken template

# After an outage, where nothing is rendered

AWAY = condition("Ready", "False", "ServerUnreachable")
AFTER_OUTAGE: dict[str, tuple[ObservedChild, bool, str]] = {
    "the database is back": (_known(READY), True, "True Available"),
    "the database is back, and the claim was never ready": (_known(READY), False, "False ServerUnreachable"),
    "the database is still away": (_known({**READY, "conditions": [AWAY]}), True, "False ServerUnreachable"),
    "the database was lost meanwhile": (_known(LOST), True, "False DatabaseLost"),
    "the child is gone": (_known(None), True, "False ChildNotReady"),
    "a kind that does not say that it is ready": (
        _known({"observedGeneration": 1, "readyReplicas": 1}, WORKLOAD), True, "False ServerUnreachable",
    ),
    "nothing that was ever ready is left": (
        _known(READY, of=entry(outcome=NEVER_READY)), True, "False ServerUnreachable",
    ),
}  # fmt: skip


def _after_outage(*, is_bound: bool) -> Object:
    bound = {"binding": {"name": "orders-connection"}} if is_bound else {}
    return claim(status={"conditions": [AWAY], **bound})


@pytest.mark.parametrize(("known", "is_bound", "expected"), AFTER_OUTAGE.values(), ids=AFTER_OUTAGE)
def test_ready_of_a_paused_claim_returns_after_an_outage(
    known: ObservedChild, *, is_bound: bool, expected: str
) -> None:
    status = report_pause(snapshot(known, of=_after_outage(is_bound=is_bound)), NOBODY, AT)

    assert conditions_of(status)["Ready"] == expected


# A connection Secret that is gone

GONE = cause("SecretNotFound", "the connection Secret orders-connection was deleted")


@pytest.mark.parametrize("before", [READY_TRUE, AWAY])
def test_a_claim_without_its_connection_secret_is_not_ready_paused_or_not(before: Object) -> None:
    owner = claim(status={"conditions": [before], "binding": {"name": "orders-connection"}})
    known = _known(READY)
    findings = Findings((cause("UnsupportedPolicy", "why"), GONE), (known.entry,), secret="orders-connection")

    paused = report_pause(snapshot(known, of=owner), NOBODY, AT, GONE)["conditions"][0]

    assert (paused["status"], paused["reason"], paused["message"]) == ("False", GONE.reason, GONE.message)
    assert _ready(snapshot(known, of=owner), replace(findings, published=False)) == "False SecretNotFound"


# Where it is rendered

PHASE = {"PostgresClusterStatus": "CreateFailed"}
RENDERED: dict[str, tuple[ObservedChild, bool, frozenset[str], str]] = {
    "readyWhen became false": (_known(PHASE, FOREIGN), False, frozenset({"database"}), "False ChildNotReady"),
    "readyWhen became false of a kind that says Ready": (
        _known(READY, FOREIGN), False, frozenset({"database"}), "False ChildNotReady",
    ),
    "readyWhen is false of an edit that nobody has seen": (
        _known({**PHASE, "observedGeneration": 1}, FOREIGN, generation=2), False, frozenset({"database"}),
        "True Available",
    ),
    "a workload lost its last replica": (
        _known({"observedGeneration": 1, "replicas": 1, "readyReplicas": 0}, WORKLOAD), False, frozenset(),
        "False ChildNotReady",
    ),
    "a workload is rolled and has a replica": (
        _known({"observedGeneration": 1, "replicas": 3, "readyReplicas": 2}, WORKLOAD), False, frozenset(),
        "True Available",
    ),
    "a provider works on a database that can be used": (
        _known({**READY, "conditions": [READY_TRUE, condition("Reconciling", "True", "CloudBusy")]}),
        False, frozenset(), "True Available",
    ),
    "a provider refuses an edit of a database that can be used": (
        _known({**READY, "conditions": [READY_TRUE, condition("Stalled", "True", "HeldChange")]}),
        False, frozenset(), "True Available",
    ),
    "a Zalando cluster failed": (_known(PHASE, FOREIGN), False, frozenset(), "False ChildNotReady"),
    "a Zalando cluster is updated": (
        _known({"PostgresClusterStatus": "Updating"}, FOREIGN), False, frozenset(), "True Available",
    ),
    "a lost database": (_known(LOST), False, frozenset(), "False DatabaseLost"),
}  # fmt: skip


def _reason_of(known: ObservedChild) -> str:
    conditions = (known.live or {}).get("status", {}).get("conditions") or [{"reason": "ChildNotReady"}]
    return str(conditions[-1]["reason"])


@pytest.mark.parametrize(("known", "ready", "judged", "expected"), RENDERED.values(), ids=RENDERED)
def test_ready_of_a_claim_whose_child_is_not_ready_follows_the_table(
    known: ObservedChild, *, ready: bool, judged: frozenset[str], expected: str
) -> None:
    why = cause("ChildNotReady" if judged else _reason_of(known), "why", resource="database")
    composed = rendered(child(desired(facts=known.facts or DATABASE), ready=ready))

    assert _ready(snapshot(known, of=WAS_READY), Findings((why,), (known.entry,), composed, judged=judged)) == expected


def test_the_phase_of_a_zalando_cluster_is_reported() -> None:
    known = _known(PHASE, FOREIGN)

    reported = child_cause("database", known.live, ready=False)

    assert reported is not None
    assert (reported.reason, reported.message.endswith("its operator says CreateFailed")) == ("ChildFailed", True)


# An edit that composes something new beside a database that works


def _new_database(status: Object | None, outcome: str = NEVER_READY) -> ObservedChild:
    made = live(desired("settings", SETTINGS), uid="settings-uid")
    obj = {**made, "status": status} if status is not None else None
    return ObservedChild(entry("settings", SETTINGS, uid="settings-uid", outcome=outcome), obj, SETTINGS)


def _with_settings(*, waiting: bool = False) -> Rendered:
    new = child(desired("settings", SETTINGS), "settings", ready=False)
    if waiting:
        return rendered(new, waiting=(Waiting("database", "settings", "resources.settings.status.name"),))
    return rendered(new, child(desired(), ready=True))


HELD = cause("HeldChange", "a consent is needed", resource="database")
EDITS: dict[str, tuple[tuple[ObservedChild, ...], Rendered, str]] = {
    "it is made in this pass": ((_known(READY),), _with_settings(), "True Available"),
    "it is not ready yet": (
        (_known(READY), _new_database({"conditions": [condition("Ready", "False", "CloudBusy")]})),
        _with_settings(),
        "True Available",
    ),
    "the database waits for it": ((_known(READY), _new_database({})), _with_settings(waiting=True), "True Available"),
    "the database waits for it and is lost": (
        (_known(LOST), _new_database({})),
        _with_settings(waiting=True),
        "False DatabaseLost",
    ),
    "what was ready before is gone": ((_known(READY), _new_database(None, "")), _with_settings(), "False HeldChange"),
    "what was composed before and holds data goes": (
        (_known(READY, deleted=True, annotations={names.TEARDOWN: "child-uid/Delete"}), _new_database({})),
        rendered(child(desired("settings", SETTINGS), "settings", ready=False)),
        "False HeldChange",
    ),
    "what was composed before and holds no data goes": (
        (_known(READY), replace(_new_database({}, ""), live=live(desired("settings", SETTINGS), deleted=True))),
        rendered(child(desired(), ready=False)),
        "True Available",
    ),
}


@pytest.mark.parametrize(("known", "composed", "expected"), EDITS.values(), ids=EDITS)
def test_ready_of_a_claim_with_an_edit_under_way_follows_the_table(
    known: tuple[ObservedChild, ...], composed: Rendered, expected: str
) -> None:
    findings = Findings((HELD,), tuple(observed.entry for observed in known), composed)

    assert _ready(snapshot(*known, of=WAS_READY), findings) == expected


GOING = _known(READY, deleted=True, annotations={names.TEARDOWN: "child-uid/Delete"})
SOURCE = {"from": "settings"}


REPLACED, REPLACING = _new_database({}, ""), _new_database({})


@pytest.mark.parametrize("connection", [SOURCE, {}], ids=["its login is to be published", "without a connection"])
def test_ready_is_false_while_a_database_is_deleted_and_its_replacement_waits(connection: dict[str, str]) -> None:
    waiting = (Waiting("settings", "net", "resources.net.status.id"),)
    composed = rendered(waiting=waiting, connection=connection)

    assert _ready(snapshot(GOING, of=WAS_READY), Findings((), (GOING.entry,), composed)) == "False Creating"
