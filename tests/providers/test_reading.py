"""A Kubernetes object as the decision reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apis.teardown import Policy, instruction_of
from providers.accounts.lister import ExternalStore
from providers.external.client import Operation, Sweep
from providers.external.consent import consent_of
from providers.external.ownership import Identity, identity_of, owner_of
from providers.managed import record
from runtime.objects import Object

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
P = "fairlead.dev/"


def obj(annotations: dict[str, str] | None = None, **fields: object) -> Object:
    meta = {"name": "db", "namespace": "team", "uid": "uid-1", "annotations": annotations or {}}
    return {"metadata": meta | {"labels": fields.pop("labels", {})}, **fields}


@pytest.mark.parametrize(
    ("word", "policy"),
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
def test_a_word_counts_for_its_own_uid_alone(word: str, policy: Policy | None) -> None:
    assert instruction_of(obj({P + "teardown": word})) is policy


@pytest.mark.parametrize("own", [Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE])
@pytest.mark.parametrize("word", [None, Policy.DETACH, Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE])
def test_a_word_destroys_no_more_than_the_resources_own_policy_asks_for(word: Policy | None, own: Policy) -> None:
    agreed = {
        (Policy.SNAPSHOT, Policy.SNAPSHOT),
        (Policy.SNAPSHOT, Policy.DELETE),
        (Policy.DELETE, Policy.DELETE),
    }
    destroys = word in (Policy.SNAPSHOT, Policy.DELETE)

    assert bool(record.withheld(word, own)) is (destroys and (word, own) not in agreed)


@pytest.mark.parametrize(
    ("value", "is_paused"),
    [
        ("true", True),
        ("2026-11-21T12:00:01Z", True),
        ("2026-11-21T12:00:00Z", False),
        ("2020-01-01T00:00:00Z", False),
        ("2999-01-01T00:00:00", True),
        ("false", False),
        ("yes", True),
        ("", False),
    ],
)
def test_a_pause_has_an_end(value: str, is_paused: bool) -> None:  # noqa: FBT001 - a column of the table
    assert bool(record.paused(obj({P + "paused": value}), NOW)) is is_paused


def test_a_pause_names_its_reason() -> None:
    assert "the rack moves" in record.paused(obj({P + "paused": "true", P + "paused-reason": "the rack moves"}), NOW)


def test_a_pause_that_came_with_the_claim_leads_to_who_set_it() -> None:
    paused = record.paused(obj({P + "paused": "true", P + "claim-name": "orders"}), NOW)

    assert "with its claim orders, which says by whom and when" in paused


def test_marks_are_read_from_either_place() -> None:
    names = {"external-name": "x", "incarnation": "7", "account": "a"}
    by_annotation = obj({P + key: value for key, value in names.items()})
    by_status = obj(status={"externalName": "x", "incarnation": "7", "account": "a"})

    for one in (by_annotation, by_status):
        marks = record.marks_of(one, absent_since=None)
        assert (marks.external_name, marks.incarnation, marks.account) == ("x", "7", "a")


def test_consent_is_a_list_of_paths_and_values() -> None:
    consent = consent_of(obj({P + "consent": "recreate=7, a.b = 3,nonsense", P + "adopt": "9"}))

    assert consent.to("recreate", "7")
    assert consent.to("a.b", "3")
    assert not consent.to("recreate", "8")
    assert not consent.to("nonsense", "")
    assert consent.adopt == "9"


def test_an_intent_is_read_as_it_was_written() -> None:
    calls = (record.Call("Create", "db"), record.Call("SetPassword", "app_a", "7", "hash"))
    intent = record.Intent(1, "process-1", NOW + timedelta(seconds=25), calls)

    assert record.intent_of(obj(status={"intent": record.written(intent)})) == intent
    assert record.intent_of(obj()) is None
    assert record.intent_of(obj(status={"intent": {"format": 1, "notAfter": "nonsense"}})) is None


def test_an_operation_is_read_from_status() -> None:
    found = record.operation_of(
        obj(status={"operation": {"id": "o", "kind": "Create", "startedAt": "2026-11-21T12:00:00Z"}})
    )

    assert found == Operation("o", "Create", NOW)
    assert record.operation_of(obj()) is None


def child(**changed: str) -> Object:
    annotations = {P + "claim-name": "shop", P + "resource": "database", P + "key": "eu"} | changed
    return obj(annotations, labels={P + "claim": "claim-uid"})


def test_a_child_is_named_by_its_claim_and_alone_by_itself() -> None:
    assert identity_of(child()) == Identity("claim-uid", "shop", "database", "eu", has_claim=True)
    assert identity_of(obj()) == Identity("uid-1", "db", "db", "", has_claim=False)
    # sha256("claim-uid\0database\0eu") in base32, lower case, ten characters.
    assert identity_of(child()).hash == "zrk474fypt"


def test_another_key_resource_namespace_or_claim_is_another_owner() -> None:
    owner = owner_of(child(), "home")
    assert owner.owns(owner_of(child(), "home"))
    others = [
        owner_of(child(**{P + "key": "us"}), "home"),
        owner_of(child(**{P + "resource": "cache"}), "home"),
        owner_of(child(**{P + "claim-name": "stall"}), "home"),
        owner_of(child(), "elsewhere"),
    ]
    elsewhere = child()
    elsewhere["metadata"]["namespace"] = "other"
    others.append(owner_of(elsewhere, "home"))
    assert not any(owner.owns(one) for one in others)
    assert not owner.owns(None)


def test_the_same_claim_under_another_identity_precedes() -> None:
    other = child()
    other["metadata"]["labels"] = {P + "claim": "claim-uid-2"}

    assert owner_of(other, "home").precedes(owner_of(child(), "home"))
    assert not owner_of(child(), "home").precedes(owner_of(child(), "home"))
    assert not owner_of(other, "elsewhere").precedes(owner_of(child(), "home"))


def test_what_lost_its_claim_is_in_doubt() -> None:
    unnamed = child()
    unnamed["metadata"]["annotations"] = {}
    unlabelled = child()
    unlabelled["metadata"]["labels"] = {}
    bare = obj()
    bare["metadata"]["ownerReferences"] = [{"kind": "PostgreSQLInstance", "name": "shop", "controller": True}]

    assert [identity_of(one).doubtful for one in (unnamed, unlabelled, bare, child(), obj())] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_list_wakes_what_changed_appeared_and_vanished() -> None:
    store = ExternalStore()
    # All of the first: what it shows may have changed after the look at a start.
    assert store.changed(Sweep({"a": "1", "b": "1"}, complete=True), 1.0) == ("a", "b")

    assert store.changed(Sweep({"a": "2", "b": "1", "c": "1"}, complete=True), 2.0) == ("a", "c")
    assert store.changed(Sweep({"a": "2"}, complete=True), 3.0) == ("b", "c")
    assert store.changed(Sweep({"a": "2"}, complete=True), 4.0) == ()


def test_an_older_list_replaces_nothing() -> None:
    store = ExternalStore()
    store.changed(Sweep({"a": "2"}, complete=True), 2.0)

    assert store.changed(Sweep({"a": "1"}, complete=True), 1.0) == ()
    assert store.changed(Sweep({"a": "2"}, complete=True), 3.0) == ()


def test_an_incomplete_list_shows_no_absence() -> None:
    store = ExternalStore()
    store.changed(Sweep({"a": "1", "b": "1"}, complete=True), 1.0)

    assert store.changed(Sweep({"a": "1"}, complete=False), 2.0) == ()
    assert store.changed(Sweep({"a": "1", "b": "1"}, complete=True), 3.0) == ()


def test_what_is_listed_as_it_was_looked_at_is_no_news_and_what_was_undone_meanwhile_is() -> None:
    store = ExternalStore()

    def woken(listed: str, look: str | None, as_of: float) -> bool:
        looks = {} if look is None else {"a": look}
        return store.changed(Sweep({"a": listed}, complete=True, looks=looks), as_of) == ("a",)

    # The first list after a start shows what the look at the start saw.
    assert not woken("1", "1", 1.0)
    # Changed and looked at between two lists, and undone again before the second.
    assert woken("1", "2", 2.0)
    assert not woken("1", "1", 3.0)
    assert woken("3", "1", 4.0)
    # A list that never shows what a look does wakes once, not for ever.
    assert not woken("3", "1", 5.0)
    assert woken("3", None, 6.0)
