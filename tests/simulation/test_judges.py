"""Each judge sees the history that it is for, and nothing in a good one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.simulation.calls import PROVIDER, STRANGER, Made
from tests.simulation.history import Ended, History, Sample, Statement
from tests.simulation.judges import findings

_HOUR = 3600
DATABASE = Sample(
    at=0.0,
    name="CloudSQLDatabase team/app uid-1",
    external="server/app",
    ready=True,
    serves=True,
    policy="Delete",
    leaving=False,
    incarnation=1,
    says="Ready True",
    role="databases",
)


def minutes(sample: Sample, first: int = 0, last: int = 240) -> list[Sample]:
    return [replace(sample, at=minute * 60.0) for minute in range(first, last)]


def call(at: float, principal: str, action: str, *, had: bool = False) -> Made:
    return Made(at, principal, action, "server", "app", had)


def good() -> History:
    history = History(calm_since=2.0 * _HOUR, until=4.0 * _HOUR)
    history.calls.append(call(1, PROVIDER, "databases.create"))
    history.samples += minutes(DATABASE)
    history.left.add("server/app")
    return history


def strangers_object_changed(history: History) -> None:
    history.calls[:] = [call(1, STRANGER, "databases.create"), call(2, PROVIDER, "databases.delete", had=True)]
    history.samples.clear()
    history.dying["server/app"] = 1


def replacement_changed(history: History) -> None:
    history.dying["server/app"] = 1
    history.calls += [
        call(2, STRANGER, "databases.delete", had=True),
        call(3, STRANGER, "databases.create"),
        call(4, PROVIDER, "databases.delete", had=True),
    ]


def strangers_server_changed(history: History) -> None:
    history.calls += [
        Made(2, "", "servers.replace", "server", "", had=True),
        call(30, PROVIDER, "databases.change", had=True),
        Made(90, PROVIDER, "servers.change", "server", "", had=True),
    ]


def strangers_object_taken(history: History) -> None:
    history.calls[:] = [call(1, STRANGER, "databases.create")]


def ready_over_nothing(history: History) -> None:
    history.samples[:] = minutes(replace(DATABASE, serves=False))


def left_behind(history: History) -> None:
    history.samples.clear()
    history.ended.append(Ended(5, DATABASE.name, "server/app", "Delete"))


def left_by_its_claim(history: History) -> None:
    history.samples.clear()
    history.ended.append(Ended(5, DATABASE.name, "server/app", "Detach"))
    history.keepers["server/app"] = {"uid-2"}
    history.claims["uid-2"] = "Delete"


def endless_deletion(history: History) -> None:
    history.samples[:] = minutes(replace(DATABASE, leaving=True, ready=False, policy="Orphan"))


def waiting_for_nobody(history: History) -> None:
    claim = replace(DATABASE, name="PostgreSQLInstance team/a uid-2", role="", ready=False, says="Ready False Creating")
    history.samples += minutes(claim)


def of_another_size(history: History) -> None:
    history.samples[:] = minutes(replace(DATABASE, size="50 is asked for, 20 is there", says="Synced True InSync"))


def replaced(history: History) -> None:
    history.samples[:] = [*minutes(DATABASE, 0, 60), *minutes(replace(DATABASE, incarnation=2), 60)]


def deleted_without_a_cause(history: History) -> None:
    history.calls.append(call(2, PROVIDER, "databases.delete", had=True))


def deleted_though_kept(history: History) -> None:
    history.keepers["server/app"] = {"uid-1", "uid-2"}
    history.given_up["uid-2"] = 9
    history.dying["server/app"] = 1
    history.calls.append(call(2, PROVIDER, "databases.delete", had=True))


def server_of_nobody(history: History) -> None:
    history.calls.append(Made(2, PROVIDER, "servers.create", "lost", "", had=False))
    history.left.add("lost")


def restless(history: History) -> None:
    history.writes += [Statement(history.until - minute * 60, DATABASE.name) for minute in range(15)]


def status_of_before(history: History) -> None:
    history.backwards.append(Statement(5, DATABASE.name, "2 1"))


def password_exposed(history: History) -> None:
    history.exposed.append(Statement(5, DATABASE.name))


def published_too_early(history: History) -> None:
    history.calls.clear()
    history.unproven.append(Statement(5, "server/app", "Secret team/a-connection"))


def rollout_stands_still(history: History) -> None:
    history.rollouts += [Statement(minute * 60, "Composition c", "wave 1 of 2") for minute in range(120, 240)]


def kind_never_goes(history: History) -> None:
    history.going += [Statement(minute * 60, "CRD databases", "team/app") for minute in range(120, 240)]


def loop(history: History) -> None:
    history.calls += [call(3.0 * _HOUR + at, PROVIDER, "databases.change", had=True) for at in range(60)]


BAD: tuple[tuple[Callable[[History], None], str], ...] = (
    (strangers_object_changed, "a stranger's object is changed"),
    (replacement_changed, "a replacement of ours is changed"),
    (strangers_server_changed, "a stranger's server is changed"),
    (strangers_object_taken, "a stranger's object is taken"),
    (ready_over_nothing, "Ready over what takes no login"),
    (left_behind, "left behind without a word"),
    (left_by_its_claim, "left over by its claim"),
    (endless_deletion, "a deletion never ends"),
    (waiting_for_nobody, "waits without a cause"),
    (of_another_size, "in sync with another size"),
    (replaced, "replaced by an empty one without a word"),
    (loop, "a loop"),
    (deleted_without_a_cause, "deleted without a cause"),
    (deleted_though_kept, "data are deleted that nobody gave up"),
    (server_of_nobody, "a server of nobody"),
    (restless, "written again and again"),
    (status_of_before, "a status of before"),
    (password_exposed, "a password outside of Secrets"),
    (published_too_early, "a password is published too early"),
    (rollout_stands_still, "a rollout stands still without a cause"),
    (kind_never_goes, "a kind that was deleted never goes"),
)


def test_a_good_history_has_no_findings() -> None:
    assert findings(good()) == []


@pytest.mark.parametrize(("spoil", "rule"), BAD, ids=[rule for _, rule in BAD])
def test_a_bad_history_is_found(spoil: Callable[[History], None], rule: str) -> None:
    history = good()
    spoil(history)

    assert [finding.rule for finding in findings(history)] == [rule]


def test_a_replacement_with_a_warning_is_none() -> None:
    history = good()
    replaced(history)
    history.warnings.append((60 * 60.0, f"{DATABASE.name}: DatabaseLost"))

    assert findings(history) == []


def test_a_password_that_a_stranger_has_set_is_seen_by_nobody() -> None:
    history = good()
    ready_over_nothing(history)
    history.calls.append(call(2, STRANGER, "logins.create", had=True))

    assert findings(history) == []


def test_a_deletion_that_waits_for_people_is_none() -> None:
    history = good()
    endless_deletion(history)
    history.samples[-1] = replace(history.samples[-1], says="Ready False DeletionProtected: set it to false")

    assert findings(history) == []


def test_a_server_without_its_labels_may_stay() -> None:
    history = good()
    history.samples.clear()
    history.calls[:] = [Made(1, PROVIDER, "servers.create", "server", "", had=False)]
    history.ended.append(Ended(5, "CloudSQLInstance team/server uid-1", "server", "Delete"))
    history.left.add("server")
    assert [finding.rule for finding in findings(history)] == ["left behind without a word"]

    history.calls.append(Made(2, STRANGER, "servers.change", "server", "", had=True))

    assert findings(history) == []


@pytest.mark.parametrize(
    ("is_leaving", "held"),
    [
        (True, "Ready False DeletionProtected: set it to false"),
        (False, "Ready True Available; Stalled True HeldChange"),
    ],
)
def test_what_awaits_a_claim_that_is_held_waits_for_people(*, is_leaving: bool, held: str) -> None:
    history = good()
    endless_deletion(history)
    awaits = "Ready False AwaitingTeardown: deleted, but its claim has not said what shall become of the database"
    history.samples[-1] = replace(history.samples[-1], says=awaits)
    history.going += [Statement(minute * 60, "CRD databases", awaits) for minute in range(120, 240)]
    assert {finding.rule for finding in findings(history)} == {
        "a deletion never ends",
        "a kind that was deleted never goes",
    }

    claim = replace(DATABASE, name="PostgreSQLInstance team/a uid-2", role="", ready=not is_leaving)
    claim = replace(claim, leaving=is_leaving, says=held)
    history.samples += minutes(claim)

    assert findings(history) == []


def test_data_that_somebody_gave_up_may_be_deleted() -> None:
    history = good()
    deleted_though_kept(history)
    history.given_up["uid-2"] = 1

    assert findings(history) == []


def test_a_login_that_somebody_else_has_changed_may_be_published() -> None:
    history = good()
    published_too_early(history)
    history.calls.append(Made(4, STRANGER, "servers.change", "server", "", had=True))

    assert findings(history) == []


@pytest.mark.parametrize("by_others", [True, False])
def test_what_a_server_uses_that_others_replaced_or_that_awaits_a_consent_waits_for_them(*, by_others: bool) -> None:
    history = good()
    endless_deletion(history)
    used = "Stalled True CloudBusy: a database instance: server is still using it"
    history.samples = [replace(sample, says=used) for sample in history.samples]
    history.going += [Statement(minute * 60, "CRD databases", used) for minute in range(120, 240)]
    rules = ["a deletion never ends", "a kind that was deleted never goes"]
    assert [finding.rule for finding in findings(history)] == rules

    if by_others:
        history.calls.append(Made(2, "", "servers.replace", "server", "", had=True))
        history.left.add("server")
    else:
        held = "Stalled True HeldChange: to agree: `kubectl annotate`"
        history.samples += minutes(
            replace(DATABASE, name="Server team/s uid-3", external="server", role="servers", says=held, ready=False)
        )
    # It may be another claim's server.
    history.keepers |= {"server/app": {"claim"}, "server": {"other"}}
    assert [finding.rule for finding in findings(history)] == rules

    history.keepers["server"].add("claim")
    assert findings(history) == []

    # Or one of ours, in spite of what others changed.
    history.samples += minutes(
        replace(DATABASE, name="CloudSQLInstance team/a uid-2", external="server", role="servers")
    )
    assert [finding.rule for finding in findings(history)] == rules[: 2 if by_others else 0]


def test_what_is_denied_since_others_changed_owners_waits_for_people() -> None:
    history = good()
    endless_deletion(history)
    denied = "Stalled True AccessDenied: must be owner of database app"
    history.samples = [replace(sample, says=denied) for sample in history.samples]
    assert [finding.rule for finding in findings(history)] == ["a deletion never ends"]

    history.calls.append(call(2, STRANGER, "databases.change", had=True))

    assert findings(history) == []


def test_a_claim_that_says_who_can_change_it_may_wait() -> None:
    history = good()
    waiting_for_nobody(history)
    history.samples = [replace(sample, says="Ready False Refused; Stalled True Refused") for sample in history.samples]

    assert findings(history) == []


def test_what_says_that_it_is_not_in_sync_may_be_of_another_size() -> None:
    history = good()
    of_another_size(history)
    history.samples = [replace(sample, says="Synced False HeldChange") for sample in history.samples]

    assert findings(history) == []


def test_a_rollout_that_moves_is_none() -> None:
    history = good()
    rollout_stands_still(history)
    history.rollouts[-1] = replace(history.rollouts[-1], text="wave 2 of 2")

    assert findings(history) == []


def test_what_a_stranger_made_in_its_place_may_stay() -> None:
    history = good()
    left_behind(history)
    history.calls += [call(2, STRANGER, "databases.delete", had=True), call(3, STRANGER, "databases.create")]

    assert findings(history) == []


def test_what_was_orphaned_may_stay() -> None:
    history = good()
    left_behind(history)
    history.ended[0] = replace(history.ended[0], policy="Orphan")

    assert findings(history) == []
