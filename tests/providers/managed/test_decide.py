"""Every row of the one decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis.teardown import Policy
from providers.external.client import Target
from providers.external.consent import Consent
from providers.external.observation import (
    Absent,
    Change,
    Class,
    Converged,
    ExternalRef,
    Observed,
    Phase,
    Predecessor,
    Present,
    Unknown,
)
from providers.external.ownership import Owner
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import (
    Adopt,
    Create,
    Delete,
    Ignore,
    Orphan,
    Plan,
    Refuse,
    RemoveFinalizer,
    Rest,
    Settled,
    Update,
    Wait,
)
from providers.managed.inputs import Inputs, Lifecycle


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


def there(incarnation: str = "oid-1", owner: Owner | None = OURS, phase: Phase = Phase.READY) -> Present[Spec, Any]:
    return Present(Observed("orders_x", incarnation, owner, phase, Spec(), None, {}))


GONE: Any = Absent()
ADDRESS = "toy/orders-db -n team"
TARGET = Target("orders_x", Spec(), OURS, "hash", address=ADDRESS)
RECORDED = ExternalRef("orders_x", "oid-1", "account-1", CONVERGED)
DELETING = Lifecycle(deleting=True, has_finalizer=True, policy=Policy.DELETE)


def inputs(observation: Any, external_ref: ExternalRef = RECORDED, **changed: Any) -> Inputs[Spec]:
    """Build the inputs of a decision; names of Lifecycle and Inputs may be changed."""
    of_lifecycle = ("deleting", "has_finalizer", "policy", "paused", "destroy_refused")
    lifecycle = {key: changed.pop(key) for key in of_lifecycle if key in changed}
    base = DELETING if lifecycle.get("deleting") else Lifecycle(has_finalizer=True)
    whole: dict[str, Any] = {"spec_hash": "spec-1", "generation": 1, "grace": GRACE, **changed}
    return Inputs(TARGET, observation, external_ref, NOW, lifecycle=replace(base, **lifecycle), **whole)


@dataclass(frozen=True)
class Row:
    """One set of inputs and the plan it must lead to: the kind of plan, and what it must hold."""

    inputs: Inputs[Spec]
    plan: type
    holds: dict[str, Any]


def row(facts: Inputs[Spec], plan: type, **holds: Any) -> Row:
    return Row(facts, plan, holds)


START_IT = Change(("activation",), "always", "never", starts=True)
FRESH = ExternalRef()
LONG_GONE = replace(RECORDED, absent_since=NOW - GRACE)
JUST_GONE = replace(RECORDED, absent_since=NOW - timedelta(seconds=1))
UNKNOWN = Unknown("CloudUnreachable", "no answer")

ROWS: dict[str, Row] = {
    # Nothing known
    "unknown creates nothing": row(inputs(UNKNOWN, FRESH), Wait, reason="CloudUnreachable"),
    "unknown changes nothing": row(inputs(UNKNOWN), Wait, reason="CloudUnreachable"),
    "a server of others is refused, whatever is recorded": row(
        inputs(Unknown("AdoptionRefused", "x")), Refuse, reason="AdoptionRefused", message="x"
    ),
    "nothing is made in a server of others": row(inputs(Unknown("AdoptionRefused", "x"), FRESH), Refuse, message="x"),
    "what was never made in a server of others ends": row(
        inputs(Unknown("AdoptionRefused", "x"), FRESH, deleting=True, inside=True, tagged=False), RemoveFinalizer
    ),
    "what was made in a server that is others' now is not left behind": row(
        inputs(Unknown("AdoptionRefused", "x"), deleting=True, tagged=False), Refuse, reason="AdoptionRefused"
    ),
    "so is what a create may have made there": row(
        inputs(Unknown("AdoptionRefused", "x"), FRESH, deleting=True, tagged=False, obj={"status": {"madeAt": "x"}}),
        Refuse,
    ),
    "unknown deletes nothing": row(inputs(UNKNOWN, deleting=True), Wait, reason="CloudUnreachable"),
    "unknown lets go of no orphan": row(inputs(UNKNOWN, deleting=True, policy=Policy.ORPHAN), Wait),
    "unknown does not keep a detached one": row(
        inputs(UNKNOWN, deleting=True, policy=Policy.DETACH), Orphan, tagged=False
    ),
    # Not ours to move
    "a namespace that is not allowed creates nothing": row(
        inputs(GONE, FRESH, not_allowed="no"), Refuse, reason="NotAllowed"
    ),
    "a namespace no longer allowed changes nothing": row(
        inputs(there(), not_allowed="no", changes=(ONLINE,)), Refuse, reason="NotAllowed"
    ),
    "another account is not absence": row(
        inputs(GONE, LONG_GONE, account_changed="x"), Refuse, reason="AccountChanged"
    ),
    "an open intent of another process is waited for": row(
        inputs(GONE, FRESH, intent_until=NOW + timedelta(seconds=7)), Wait, after=timedelta(seconds=7), quiet=True
    ),
    "an intent whose time is over is resolved from the cloud": row(inputs(GONE, FRESH, intent_until=NOW), Create),
    "an unknown intent format is left alone": row(inputs(there(), intent_unknown="x"), Refuse, reason="NewerProvider"),
    "a create under way is waited for": row(inputs(GONE, FRESH, operating="Create"), Wait, reason="Creating"),
    "an update under way is waited for": row(inputs(there(), operating="Update"), Wait, reason="CloudBusy"),
    "a deletion under way is waited for": row(
        inputs(there(), deleting=True, operating="Delete"), Wait, reason="Deleting"
    ),
    # Absent, never Ready
    "absent and never Ready is made": row(inputs(GONE, FRESH), Create, instead_of=""),
    "absent after a crash of the create is made": row(inputs(GONE, ExternalRef("orders_x", "", "account-1")), Create),
    "paused makes nothing": row(inputs(GONE, FRESH, paused="later"), Rest, reason="Paused"),
    "observe makes nothing": row(inputs(GONE, FRESH, observe_only=True), Wait, reason="ResourcePending"),
    "a restored cluster makes nothing": row(inputs(GONE, FRESH, takeover="x"), Rest, reason="AwaitingTakeover"),
    "what the server cannot serve is not made": row(
        inputs(GONE, FRESH, refusal=("UnsupportedVersion", "x")), Refuse, reason="UnsupportedVersion"
    ),
    "a predecessor stops a create": row(
        inputs(GONE, FRESH, predecessors=(Predecessor("old", "oid-0", FORMER),)), Refuse, reason="PredecessorFound"
    ),
    "a person may start beside a predecessor": row(
        inputs(GONE, FRESH, predecessors=(Predecessor("old", "oid-0", FORMER),), consent=Consent(adopt="none")), Create
    ),
    "a limit stops a create": row(inputs(GONE, FRESH, limit_reached="full"), Refuse, reason="LimitReached"),
    # Absent, was Ready
    "the first not-found is not believed": row(inputs(GONE), Wait, after=GRACE, quiet=True),
    "within the grace it is not believed": row(inputs(GONE, JUST_GONE), Wait, after=timedelta(seconds=59), quiet=True),
    "two not-founds over the grace are a loss": row(inputs(GONE, LONG_GONE), Refuse, reason="DatabaseLost"),
    "a loss with the wrong consent stays a loss": row(
        inputs(GONE, LONG_GONE, consent=Consent((("recreate", "oid-2"),))), Refuse, reason="DatabaseLost"
    ),
    "a loss given up is made anew": row(
        inputs(GONE, LONG_GONE, consent=Consent((("recreate", "oid-1"),))), Create, instead_of="oid-1"
    ),
    "consent does not shorten the grace": row(inputs(GONE, JUST_GONE, consent=Consent((("recreate", "oid-1"),))), Wait),
    "observe makes nothing anew": row(
        inputs(GONE, LONG_GONE, observe_only=True, consent=Consent((("recreate", "oid-1"),))),
        Refuse,
        reason="DatabaseLost",
    ),
    # Present, whose?
    "another incarnation is only read": row(inputs(there("oid-2"), changes=(ONLINE,)), Refuse, reason="Replaced"),
    "no tag of ours is not ours": row(inputs(there(owner=STRANGER), FRESH), Refuse, reason="NotOwned"),
    "what an adoption would change is told before it": row(
        inputs(there(owner=None), FRESH, adoption=True, changes=(ONLINE,)), Refuse, reason="NotOwned", held=(ONLINE,)
    ),
    "what may not be adopted tells nothing of itself": row(
        inputs(there(owner=None), FRESH, changes=(ONLINE,)), Refuse, reason="NotOwned", held=()
    ),
    "no tag at all is not ours": row(inputs(there(owner=None), FRESH), Refuse, reason="NotOwned"),
    "a lost tag on a recorded incarnation is drift": row(
        inputs(there(owner=None), changes=(ONLINE,)), Update, changes=(ONLINE,)
    ),
    "a stranger's tag on a recorded incarnation is not ours": row(
        inputs(there(owner=STRANGER)), Refuse, reason="NotOwned"
    ),
    "an adoption that is not allowed is refused": row(
        inputs(there(owner=None), FRESH, consent=Consent(adopt="oid-1")), Refuse, reason="AdoptionRefused"
    ),
    "an allowed adoption is done": row(
        inputs(there(owner=None), FRESH, consent=Consent(adopt="oid-1"), adoption=True), Adopt, incarnation="oid-1"
    ),
    "one's own predecessor needs no permission": row(
        inputs(there(owner=FORMER), FRESH, consent=Consent(adopt="oid-1")), Adopt
    ),
    "another installation's is never adopted": row(
        inputs(there(owner=STRANGER), FRESH, consent=Consent(adopt="oid-1"), adoption=True),
        Refuse,
        reason="AdoptionRefused",
    ),
    "adoption names the incarnation": row(
        inputs(there(owner=None), FRESH, consent=Consent(adopt="oid-7"), adoption=True), Refuse, reason="NotOwned"
    ),
    "a replacement can be adopted": row(
        inputs(there("oid-2", None), consent=Consent(adopt="oid-2"), adoption=True), Adopt, incarnation="oid-2"
    ),
    "a paused adoption waits": row(
        inputs(there(owner=None), FRESH, consent=Consent(adopt="oid-1"), adoption=True, paused="x"), Refuse
    ),
    # Present and ours
    "no difference is settled": row(inputs(there()), Settled),
    "paused changes nothing and shows it": row(inputs(there(), paused="x", changes=(ONLINE,)), Rest, held=(ONLINE,)),
    "observe changes nothing and shows it": row(
        inputs(there(), observe_only=True, changes=(ONLINE,)), Rest, reason="ObserveOnly", held=(ONLINE,)
    ),
    "a restored cluster changes nothing": row(
        inputs(there(), takeover="x", changes=(ONLINE,)), Rest, reason="AwaitingTakeover"
    ),
    "busy is waited for": row(inputs(there(phase=Phase.BUSY), changes=(ONLINE,)), Wait, reason="CloudBusy"),
    "stopped is started where the spec wants it running": row(
        inputs(there(phase=Phase.STOPPED), changes=(START_IT, ONLINE)), Update, changes=(START_IT,)
    ),
    "stopped is told": row(inputs(there(phase=Phase.STOPPED)), Refuse, reason="DatabaseStopped"),
    "a refused edit holds what the spec asks for": row(
        inputs(there(), refusal=("InvalidValue", "x"), changes=(SIZE,)), Refuse, reason="InvalidValue"
    ),
    "a refused edit holds what would lock out": row(
        inputs(there(), refusal=("InvalidValue", "x"), changes=(SIZE, LOCKOUT)), Refuse, reason="InvalidValue"
    ),
    "a refused edit keeps nothing that always holds from being put back": row(
        inputs(there(), refusal=("InvalidValue", "x"), changes=(SIZE, ONLINE)), Update, changes=(ONLINE,), drift=True
    ),
    "online drift is put back at once": row(inputs(there(), changes=(ONLINE,)), Update, changes=(ONLINE,), drift=True),
    "an online edit is made at once": row(
        inputs(there(), changes=(ONLINE,), spec_hash="spec-2"), Update, changes=(ONLINE,), drift=False
    ),
    "a first convergence is no drift": row(
        inputs(there(), replace(RECORDED, converged=None), changes=(ONLINE,)), Update, drift=False
    ),
    "restarting drift waits for the window": row(inputs(there(), changes=(RESTART,)), Rest, reason="DriftHeld"),
    "restarting drift is put back in the window": row(
        inputs(there(), changes=(RESTART,), window_at=NOW), Update, changes=(RESTART,)
    ),
    "restarting drift is put back when asked for": row(inputs(there(), changes=(RESTART,), correct_drift=True), Update),
    "lockout drift waits for the window": row(inputs(there(), changes=(LOCKOUT,)), Rest, reason="DriftHeld"),
    "a restarting edit waits for the window": row(
        inputs(there(), changes=(RESTART,), spec_hash="spec-2"), Rest, reason="WaitingForWindow"
    ),
    "a restarting edit is made now when asked for": row(
        inputs(there(), changes=(RESTART,), spec_hash="spec-2", apply_now=True), Update
    ),
    "driftPolicy does not hurry an edit": row(
        inputs(there(), changes=(RESTART,), spec_hash="spec-2", correct_drift=True), Rest
    ),
    "apply Immediate does not hurry drift": row(inputs(there(), changes=(RESTART,), apply_now=True), Rest),
    "the destroy limit stops restarts": row(
        inputs(there(), changes=(RESTART, ONLINE), window_at=NOW, destroy_limit_reached="x"),
        Update,
        changes=(ONLINE,),
    ),
    "a loss needs consent, whatever else is asked": row(
        inputs(there(), changes=(LOSS,), apply_now=True, correct_drift=True, window_at=NOW),
        Refuse,
        reason="HeldChange",
    ),
    "consent names field and value": row(
        inputs(there(), changes=(LOSS,), consent=Consent((("backups", "1"),))), Refuse, reason="HeldChange"
    ),
    "a consented loss is made": row(inputs(there(), changes=(LOSS,), consent=Consent((("backups", "0"),))), Update),
    "what can be made is made beside what is held": row(
        inputs(there(), changes=(ONLINE, RESTART, LOSS)), Update, changes=(ONLINE,)
    ),
    "a new version of ours is no drift": row(
        inputs(there(), changes=(ONLINE,), projection=2, observed_hash="seen-1"), Rest, reason="TranslatorChanged"
    ),
    "real drift under a new version of ours is drift": row(
        inputs(there(), changes=(ONLINE,), projection=2, observed_hash="seen-2"), Update, changes=(ONLINE,)
    ),
    # Deletion
    "never held goes by itself": row(inputs(GONE, FRESH, deleting=True, has_finalizer=False), Ignore),
    "paused deletes nothing": row(inputs(there(), deleting=True, paused="x"), Rest, reason="Paused"),
    "without a word nothing is destroyed": row(
        inputs(there(), deleting=True, policy=None), Wait, reason="AwaitingTeardown"
    ),
    "without a word nothing absent is let go": row(inputs(GONE, LONG_GONE, deleting=True, policy=None), Wait),
    "detach touches nothing": row(inputs(there(), deleting=True, policy=Policy.DETACH), Orphan, tagged=False),
    "a word beyond the resource's own policy destroys nothing": row(
        inputs(there(), deleting=True, destroy_refused="x"), Refuse, reason="HeldDeletion"
    ),
    "and holds up nothing that is gone": row(
        inputs(GONE, LONG_GONE, deleting=True, destroy_refused="x"), RemoveFinalizer
    ),
    "orphan is marked released": row(inputs(there(), deleting=True, policy=Policy.ORPHAN), Orphan, tagged=True),
    "delete destroys": row(inputs(there(), deleting=True), Delete, policy=Policy.DELETE),
    "snapshot keeps": row(inputs(there(), deleting=True, policy=Policy.SNAPSHOT), Delete, policy=Policy.SNAPSHOT),
    "an orphan needs no credentials that work": row(
        inputs(Unknown("CredentialsInvalid", "x"), deleting=True, policy=Policy.ORPHAN), Orphan, tagged=False
    ),
    "an orphan waits for a cloud that is away": row(
        inputs(Unknown("CloudUnreachable", "x"), deleting=True, policy=Policy.ORPHAN), Wait, reason="CloudUnreachable"
    ),
    "without credentials nothing is destroyed": row(
        inputs(Unknown("CredentialsInvalid", "x"), deleting=True), Wait, reason="CredentialsInvalid"
    ),
    "observe lets go": row(inputs(there(), deleting=True, observe_only=True), Orphan, tagged=False),
    "another incarnation is not destroyed": row(inputs(there("oid-2"), deleting=True), Orphan, tagged=False),
    "a stranger's is not destroyed": row(inputs(there(owner=STRANGER), FRESH, deleting=True), Orphan, tagged=False),
    "no tag and never ours is not destroyed": row(
        inputs(there(owner=None), FRESH, deleting=True), Orphan, tagged=False
    ),
    "a namespace no longer allowed destroys nothing": row(
        inputs(there(), deleting=True, not_allowed="x"), Refuse, reason="NotAllowed"
    ),
    "a namespace no longer allowed lets orphans go": row(
        inputs(there(), deleting=True, not_allowed="x", policy=Policy.ORPHAN), Orphan, tagged=True
    ),
    "another account destroys nothing": row(
        inputs(GONE, LONG_GONE, deleting=True, account_changed="x"), Refuse, reason="AccountChanged"
    ),
    "a restored cluster destroys nothing": row(inputs(there(), deleting=True, takeover="x"), Rest),
    "the destroy limit stops destroys": row(
        inputs(there(), deleting=True, destroy_limit_reached="x"), Refuse, reason="Brake"
    ),
    "a busy one is destroyed later": row(inputs(there(phase=Phase.BUSY), deleting=True), Wait, reason="Deleting"),
    "an open intent stops a deletion": row(inputs(there(), deleting=True, intent_until=NOW + GRACE), Wait, quiet=True),
    "absent and never Ready is let go": row(inputs(GONE, FRESH, deleting=True), RemoveFinalizer),
    "what a crashed create left is taken away": row(
        inputs(Absent(remains=True), FRESH, deleting=True), Delete, policy=Policy.DELETE
    ),
    "one not-found lets nothing go": row(inputs(GONE, deleting=True), Wait, quiet=True),
    "two not-founds over the grace let go": row(inputs(GONE, LONG_GONE, deleting=True), RemoveFinalizer),
    "our own deletion needs no grace": row(inputs(GONE, deleting=True, delete_intended=True), RemoveFinalizer),
    "our own deletion is finished": row(
        inputs(Absent(remains=True), deleting=True, delete_intended=True), Delete, policy=Policy.DELETE
    ),
    "what others took away is not let go under Snapshot without a backup": row(
        inputs(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT), Refuse, reason="BackupImpossible"
    ),
    "nor is what is left of it": row(
        inputs(Absent(remains=True), LONG_GONE, deleting=True, policy=Policy.SNAPSHOT),
        Refuse,
        reason="BackupImpossible",
    ),
    "what others took away goes under Snapshot where a backup is seen": row(
        inputs(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, backup="b"), RemoveFinalizer
    ),
    "our own deletion under Snapshot lets nothing go without its backup": row(
        inputs(GONE, deleting=True, policy=Policy.SNAPSHOT, delete_intended=True), Refuse, reason="BackupImpossible"
    ),
    "where backups take their time the final one is waited for": row(
        inputs(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, delete_intended=True, eventual=True),
        Wait,
        reason="Deleting",
    ),
    "a retirement that was cut off is finished before its backup is looked for": row(
        inputs(Absent(remains=True), deleting=True, policy=Policy.SNAPSHOT, delete_intended=True), Delete
    ),
    "what was never Ready is let go under Snapshot": row(
        inputs(GONE, FRESH, deleting=True, policy=Policy.SNAPSHOT), RemoveFinalizer
    ),
    "a kind without data is let go under Snapshot": row(
        inputs(GONE, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT, stateful=False), RemoveFinalizer
    ),
    "an orphan's logins stay": row(
        inputs(Absent(remains=True), LONG_GONE, deleting=True, policy=Policy.ORPHAN), RemoveFinalizer
    ),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_decide_returns_the_plan_of_each_row(case: Row) -> None:
    plan: Plan = decide(case.inputs).plan

    assert type(plan) is case.plan, plan
    assert {key: getattr(plan, key) for key in case.holds} == case.holds


def test_rows_cover_every_plan() -> None:
    assert {case.plan for case in ROWS.values()} == {
        Settled,
        Rest,
        Wait,
        Create,
        Update,
        Adopt,
        Refuse,
        Orphan,
        Delete,
        RemoveFinalizer,
        Ignore,
    }
