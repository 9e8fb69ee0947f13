"""Every row of the one decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis.teardown import Policy
from providers.external.consent import Consent
from providers.external.observation import (
    Absent,
    Change,
    Class,
    Converged,
    Found,
    Marks,
    Observed,
    Phase,
    Present,
    Unknown,
)
from providers.external.ownership import Owner
from providers.managed.decide import decide
from providers.managed.plan import (
    Adopt,
    Bounds,
    Create,
    Desired,
    Destroy,
    Finish,
    Ignore,
    Lifecycle,
    Plan,
    Refuse,
    Release,
    Rest,
    Scene,
    Settled,
    Update,
    Wait,
)


class Spec(msgspec.Struct, frozen=True):
    size: int | None = None


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OURS = Owner("home", "uid-1", "claim-1", "team", "orders", "db")
FORMER = replace(OURS, identity="uid-0")
STRANGER = Owner("elsewhere", "uid-9", "claim-9")
GRACE = timedelta(seconds=60)
SIZE = Change(("size",), 5, 3)
ONLINE = Change(("limit",), 5, 3)
RESTART = Change(("class",), "large", "small", Class.RESTART)
LOCKOUT = Change(("port",), 5433, 5432, Class.LOCKOUT)
LOSS = Change(("backups",), 0, 7, Class.LOSS)
CONVERGED = Converged(1, "spec-1", "seen-1", 1)


def there(incarnation: str = "oid-1", owner: Owner | None = OURS, phase: Phase = Phase.READY) -> Present[Spec]:
    return Present(Observed("orders_x", incarnation, owner, phase, Spec(), None, {}))


GONE: Any = Absent()
ADDRESS = "toy/orders-db -n team"
DESIRED = Desired(Spec(), "spec-1", 1, OURS, Lifecycle(held=True), address=ADDRESS)
MARKED = Marks("orders_x", "oid-1", "account-1", CONVERGED)
DELETING = Lifecycle(deleting=True, held=True, policy=Policy.DELETE)


def scene(observation: Any, marks: Marks = MARKED, **changed: Any) -> Scene[Spec]:
    """Build a scene; names of Desired, Lifecycle, Bounds and Scene may be changed."""
    of_lifecycle = ("deleting", "held", "policy", "paused", "withheld")
    lifecycle = {key: changed.pop(key) for key in of_lifecycle if key in changed}
    desired = {
        key: changed.pop(key)
        for key in ("consent", "observe_only", "correct_drift", "apply_now", "spec_hash")
        if key in changed
    }
    whole = {key: changed.pop(key) for key in ("changes", "observed_hash") if key in changed}
    base = DELETING if lifecycle.get("deleting") else DESIRED.lifecycle
    wanted = replace(DESIRED, lifecycle=replace(base, **lifecycle), **desired)
    return Scene(wanted, observation, marks, replace(Bounds(grace=GRACE), **changed), NOW, **whole)


@dataclass(frozen=True)
class Row:
    """One scene and the plan it must lead to: the kind of plan, and what it must hold."""

    scene: Scene[Spec]
    plan: type
    holds: dict[str, Any]


def row(given: Scene[Spec], plan: type, **holds: Any) -> Row:
    return Row(given, plan, holds)


FRESH = Marks()
LONG_GONE = replace(MARKED, absent_since=NOW - GRACE)
JUST_GONE = replace(MARKED, absent_since=NOW - timedelta(seconds=1))
UNKNOWN = Unknown("CloudUnreachable", "no answer")

ROWS: dict[str, Row] = {
    # Nothing known
    "unknown creates nothing": row(scene(UNKNOWN, FRESH), Wait, reason="CloudUnreachable"),
    "unknown changes nothing": row(scene(UNKNOWN), Wait, reason="CloudUnreachable"),
    "unknown deletes nothing": row(scene(UNKNOWN, deleting=True), Wait, reason="CloudUnreachable"),
    "unknown lets go of no orphan": row(scene(UNKNOWN, deleting=True, policy=Policy.ORPHAN), Wait),
    "unknown does not keep a detached one": row(
        scene(UNKNOWN, deleting=True, policy=Policy.DETACH), Release, mark=False
    ),
    # Not ours to move
    "a namespace that is not allowed creates nothing": row(
        scene(GONE, FRESH, not_allowed="no"), Refuse, reason="NotAllowed"
    ),
    "a namespace no longer allowed changes nothing": row(
        scene(there(), not_allowed="no", changes=(ONLINE,)), Refuse, reason="NotAllowed"
    ),
    "another account is not absence": row(scene(GONE, LONG_GONE, account_changed="x"), Refuse, reason="AccountChanged"),
    "an open intent of another process is waited for": row(
        scene(GONE, FRESH, intent_until=NOW + timedelta(seconds=7)), Wait, after=timedelta(seconds=7), quiet=True
    ),
    "an intent whose time is over is resolved from the cloud": row(scene(GONE, FRESH, intent_until=NOW), Create),
    "an unknown intent format is left alone": row(scene(there(), intent_unknown="x"), Refuse, reason="NewerProvider"),
    "a create under way is waited for": row(scene(GONE, FRESH, operating="Create"), Wait, reason="Creating"),
    "an update under way is waited for": row(scene(there(), operating="Update"), Wait, reason="CloudBusy"),
    "a deletion under way is waited for": row(
        scene(there(), deleting=True, operating="Delete"), Wait, reason="Deleting"
    ),
    # Absent, never Ready
    "absent and never Ready is made": row(scene(GONE, FRESH), Create, instead_of=""),
    "absent after a crash of the create is made": row(scene(GONE, Marks("orders_x", "", "account-1")), Create),
    "paused makes nothing": row(scene(GONE, FRESH, paused="later"), Rest, reason="Paused"),
    "observe makes nothing": row(scene(GONE, FRESH, observe_only=True), Wait, reason="ResourcePending"),
    "a restored cluster makes nothing": row(scene(GONE, FRESH, takeover="x"), Rest, reason="AwaitingTakeover"),
    "what the server cannot serve is not made": row(
        scene(GONE, FRESH, refusal=("UnsupportedVersion", "x")), Refuse, reason="UnsupportedVersion"
    ),
    "a predecessor stops a create": row(
        scene(GONE, FRESH, predecessors=(Found("old", "oid-0", FORMER),)), Refuse, reason="PredecessorFound"
    ),
    "a person may start beside a predecessor": row(
        scene(GONE, FRESH, predecessors=(Found("old", "oid-0", FORMER),), consent=Consent(adopt="none")), Create
    ),
    "a limit stops a create": row(scene(GONE, FRESH, limit_reached="full"), Refuse, reason="LimitReached"),
    # Absent, was Ready
    "the first not-found is not believed": row(scene(GONE), Wait, after=GRACE, quiet=True),
    "within the grace it is not believed": row(scene(GONE, JUST_GONE), Wait, after=timedelta(seconds=59), quiet=True),
    "two not-founds over the grace are a loss": row(scene(GONE, LONG_GONE), Refuse, reason="DatabaseLost"),
    "a loss with the wrong consent stays a loss": row(
        scene(GONE, LONG_GONE, consent=Consent((("recreate", "oid-2"),))), Refuse, reason="DatabaseLost"
    ),
    "a loss given up is made anew": row(
        scene(GONE, LONG_GONE, consent=Consent((("recreate", "oid-1"),))), Create, instead_of="oid-1"
    ),
    "consent does not shorten the grace": row(scene(GONE, JUST_GONE, consent=Consent((("recreate", "oid-1"),))), Wait),
    "observe makes nothing anew": row(
        scene(GONE, LONG_GONE, observe_only=True, consent=Consent((("recreate", "oid-1"),))),
        Refuse,
        reason="DatabaseLost",
    ),
    # Present, whose?
    "another incarnation is only read": row(scene(there("oid-2"), changes=(ONLINE,)), Refuse, reason="Replaced"),
    "no tag of ours is not ours": row(scene(there(owner=STRANGER), FRESH), Refuse, reason="NotOwned"),
    "what an adoption would change is told before it": row(
        scene(there(owner=None), FRESH, adoption=True, changes=(ONLINE,)), Refuse, reason="NotOwned", held=(ONLINE,)
    ),
    "what may not be adopted tells nothing of itself": row(
        scene(there(owner=None), FRESH, changes=(ONLINE,)), Refuse, reason="NotOwned", held=()
    ),
    "no tag at all is not ours": row(scene(there(owner=None), FRESH), Refuse, reason="NotOwned"),
    "a lost tag on a recorded incarnation is drift": row(
        scene(there(owner=None), changes=(ONLINE,)), Update, changes=(ONLINE,)
    ),
    "a stranger's tag on a recorded incarnation is not ours": row(
        scene(there(owner=STRANGER)), Refuse, reason="NotOwned"
    ),
    "an adoption that is not allowed is refused": row(
        scene(there(owner=None), FRESH, consent=Consent(adopt="oid-1")), Refuse, reason="AdoptionRefused"
    ),
    "an allowed adoption is done": row(
        scene(there(owner=None), FRESH, consent=Consent(adopt="oid-1"), adoption=True), Adopt, incarnation="oid-1"
    ),
    "one's own predecessor needs no permission": row(
        scene(there(owner=FORMER), FRESH, consent=Consent(adopt="oid-1")), Adopt
    ),
    "another installation's is never adopted": row(
        scene(there(owner=STRANGER), FRESH, consent=Consent(adopt="oid-1"), adoption=True),
        Refuse,
        reason="AdoptionRefused",
    ),
    "adoption names the incarnation": row(
        scene(there(owner=None), FRESH, consent=Consent(adopt="oid-7"), adoption=True), Refuse, reason="NotOwned"
    ),
    "a replacement can be adopted": row(
        scene(there("oid-2", None), consent=Consent(adopt="oid-2"), adoption=True), Adopt, incarnation="oid-2"
    ),
    "a paused adoption waits": row(
        scene(there(owner=None), FRESH, consent=Consent(adopt="oid-1"), adoption=True, paused="x"), Refuse
    ),
    # Present and ours
    "no difference is settled": row(scene(there()), Settled),
    "paused changes nothing and shows it": row(scene(there(), paused="x", changes=(ONLINE,)), Rest, held=(ONLINE,)),
    "observe changes nothing and shows it": row(
        scene(there(), observe_only=True, changes=(ONLINE,)), Rest, reason="ObserveOnly", held=(ONLINE,)
    ),
    "a restored cluster changes nothing": row(
        scene(there(), takeover="x", changes=(ONLINE,)), Rest, reason="AwaitingTakeover"
    ),
    "busy is waited for": row(scene(there(phase=Phase.BUSY), changes=(ONLINE,)), Wait, reason="CloudBusy"),
    "stopped is told": row(scene(there(phase=Phase.STOPPED)), Refuse, reason="DatabaseStopped"),
    "a refused edit holds what the spec asks for": row(
        scene(there(), refusal=("InvalidValue", "x"), changes=(SIZE,)), Refuse, reason="InvalidValue"
    ),
    "a refused edit holds what would lock out": row(
        scene(there(), refusal=("InvalidValue", "x"), changes=(SIZE, LOCKOUT)), Refuse, reason="InvalidValue"
    ),
    "a refused edit keeps nothing that is guarded from being put back": row(
        scene(there(), refusal=("InvalidValue", "x"), changes=(SIZE, ONLINE)), Update, changes=(ONLINE,), drift=True
    ),
    "online drift is put back at once": row(scene(there(), changes=(ONLINE,)), Update, changes=(ONLINE,), drift=True),
    "an online edit is made at once": row(
        scene(there(), changes=(ONLINE,), spec_hash="spec-2"), Update, changes=(ONLINE,), drift=False
    ),
    "a first convergence is no drift": row(
        scene(there(), replace(MARKED, converged=None), changes=(ONLINE,)), Update, drift=False
    ),
    "restarting drift waits for the window": row(scene(there(), changes=(RESTART,)), Rest, reason="DriftHeld"),
    "restarting drift is put back in the window": row(
        scene(there(), changes=(RESTART,), window_open=True), Update, changes=(RESTART,)
    ),
    "restarting drift is put back when asked for": row(scene(there(), changes=(RESTART,), correct_drift=True), Update),
    "lockout drift waits for the window": row(scene(there(), changes=(LOCKOUT,)), Rest, reason="DriftHeld"),
    "a restarting edit waits for the window": row(
        scene(there(), changes=(RESTART,), spec_hash="spec-2"), Rest, reason="WaitingForWindow"
    ),
    "a restarting edit is made now when asked for": row(
        scene(there(), changes=(RESTART,), spec_hash="spec-2", apply_now=True), Update
    ),
    "driftPolicy does not hurry an edit": row(
        scene(there(), changes=(RESTART,), spec_hash="spec-2", correct_drift=True), Rest
    ),
    "apply Immediate does not hurry drift": row(scene(there(), changes=(RESTART,), apply_now=True), Rest),
    "the brake stops restarts": row(
        scene(there(), changes=(RESTART, ONLINE), window_open=True, brake="x"), Update, changes=(ONLINE,)
    ),
    "a loss needs consent, whatever else is asked": row(
        scene(there(), changes=(LOSS,), apply_now=True, correct_drift=True, window_open=True),
        Refuse,
        reason="HeldChange",
    ),
    "consent names field and value": row(
        scene(there(), changes=(LOSS,), consent=Consent((("backups", "1"),))), Refuse, reason="HeldChange"
    ),
    "a consented loss is made": row(scene(there(), changes=(LOSS,), consent=Consent((("backups", "0"),))), Update),
    "what can be made is made beside what is held": row(
        scene(there(), changes=(ONLINE, RESTART, LOSS)), Update, changes=(ONLINE,)
    ),
    "a new version of ours is no drift": row(
        scene(there(), changes=(ONLINE,), translator=2, observed_hash="seen-1"), Rest, reason="TranslatorChanged"
    ),
    "real drift under a new version of ours is drift": row(
        scene(there(), changes=(ONLINE,), translator=2, observed_hash="seen-2"), Update, changes=(ONLINE,)
    ),
    # Deletion
    "never held goes by itself": row(scene(GONE, FRESH, deleting=True, held=False), Ignore),
    "paused deletes nothing": row(scene(there(), deleting=True, paused="x"), Rest, reason="Paused"),
    "without a word nothing is destroyed": row(
        scene(there(), deleting=True, policy=None), Wait, reason="AwaitingTeardown"
    ),
    "without a word nothing absent is let go": row(scene(GONE, LONG_GONE, deleting=True, policy=None), Wait),
    "detach touches nothing": row(scene(there(), deleting=True, policy=Policy.DETACH), Release, mark=False),
    "a word beyond the resource's own policy destroys nothing": row(
        scene(there(), deleting=True, withheld="x"), Refuse, reason="HeldDeletion"
    ),
    "and holds up nothing that is gone": row(scene(GONE, LONG_GONE, deleting=True, withheld="x"), Finish),
    "orphan is marked released": row(scene(there(), deleting=True, policy=Policy.ORPHAN), Release, mark=True),
    "delete destroys": row(scene(there(), deleting=True), Destroy, policy=Policy.DELETE),
    "snapshot keeps": row(scene(there(), deleting=True, policy=Policy.SNAPSHOT), Destroy, policy=Policy.SNAPSHOT),
    "an orphan needs no credentials that work": row(
        scene(Unknown("CredentialsInvalid", "x"), deleting=True, policy=Policy.ORPHAN), Release, mark=False
    ),
    "an orphan waits for a cloud that is away": row(
        scene(Unknown("CloudUnreachable", "x"), deleting=True, policy=Policy.ORPHAN), Wait, reason="CloudUnreachable"
    ),
    "without credentials nothing is destroyed": row(
        scene(Unknown("CredentialsInvalid", "x"), deleting=True), Wait, reason="CredentialsInvalid"
    ),
    "observe lets go": row(scene(there(), deleting=True, observe_only=True), Release, mark=False),
    "another incarnation is not destroyed": row(scene(there("oid-2"), deleting=True), Release, mark=False),
    "a stranger's is not destroyed": row(scene(there(owner=STRANGER), FRESH, deleting=True), Release, mark=False),
    "no tag and never ours is not destroyed": row(scene(there(owner=None), FRESH, deleting=True), Release, mark=False),
    "a namespace no longer allowed destroys nothing": row(
        scene(there(), deleting=True, not_allowed="x"), Refuse, reason="NotAllowed"
    ),
    "a namespace no longer allowed lets orphans go": row(
        scene(there(), deleting=True, not_allowed="x", policy=Policy.ORPHAN), Release, mark=True
    ),
    "another account destroys nothing": row(
        scene(GONE, LONG_GONE, deleting=True, account_changed="x"), Refuse, reason="AccountChanged"
    ),
    "a restored cluster destroys nothing": row(scene(there(), deleting=True, takeover="x"), Rest),
    "the brake stops destroys": row(scene(there(), deleting=True, brake="x"), Refuse, reason="Brake"),
    "a busy one is destroyed later": row(scene(there(phase=Phase.BUSY), deleting=True), Wait, reason="Deleting"),
    "an open intent stops a deletion": row(scene(there(), deleting=True, intent_until=NOW + GRACE), Wait, quiet=True),
    "absent and never Ready is let go": row(scene(GONE, FRESH, deleting=True), Finish),
    "what a crashed create left is taken away": row(
        scene(Absent(remains=True), FRESH, deleting=True), Destroy, policy=Policy.DELETE
    ),
    "one not-found lets nothing go": row(scene(GONE, deleting=True), Wait, quiet=True),
    "two not-founds over the grace let go": row(scene(GONE, LONG_GONE, deleting=True), Finish),
    "our own deletion needs no grace": row(scene(GONE, deleting=True, delete_intended=True), Finish),
    "our own deletion is finished": row(
        scene(Absent(remains=True), deleting=True, delete_intended=True), Destroy, policy=Policy.DELETE
    ),
    "what others took away is not let go under Snapshot without a backup": row(
        scene(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT), Refuse, reason="BackupImpossible"
    ),
    "what others took away goes under Snapshot where a backup is seen": row(
        scene(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, backup="b"), Finish
    ),
    "our own deletion under Snapshot lets nothing go without its backup": row(
        scene(GONE, deleting=True, policy=Policy.SNAPSHOT, delete_intended=True), Refuse, reason="BackupImpossible"
    ),
    "where backups take their time the final one is waited for": row(
        scene(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, delete_intended=True, eventual=True),
        Wait,
        reason="Deleting",
    ),
    "a retirement that was cut off is finished before its backup is looked for": row(
        scene(Absent(remains=True), deleting=True, policy=Policy.SNAPSHOT, delete_intended=True), Destroy
    ),
    "what was never Ready is let go under Snapshot": row(
        scene(GONE, FRESH, deleting=True, policy=Policy.SNAPSHOT), Finish
    ),
    "a kind without data is let go under Snapshot": row(
        scene(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, stateful=False), Finish
    ),
    "an orphan's logins stay": row(scene(Absent(remains=True), LONG_GONE, deleting=True, policy=Policy.ORPHAN), Finish),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_row(case: Row) -> None:
    plan: Plan = decide(case.scene)

    assert type(plan) is case.plan, plan
    assert {key: getattr(plan, key) for key in case.holds} == case.holds


def test_every_plan_has_a_row() -> None:
    assert {case.plan for case in ROWS.values()} == {
        Settled,
        Rest,
        Wait,
        Create,
        Update,
        Adopt,
        Refuse,
        Release,
        Destroy,
        Finish,
        Ignore,
    }
