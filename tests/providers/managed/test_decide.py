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
    Preview,
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
PREVIEW = Preview("oid-1", (SIZE,), ((ONLINE, "Now"),), "hash-1")
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
    of_lifecycle = ("deleting", "has_finalizer", "policy", "paused", "destroy_refused", "since")
    lifecycle = {key: changed.pop(key) for key in of_lifecycle if key in changed}
    base = DELETING if lifecycle.get("deleting") else Lifecycle(has_finalizer=True)
    whole: dict[str, Any] = {"spec_hash": "spec-1", "generation": 1, "grace": GRACE, **changed}
    target = whole.pop("target", TARGET)
    return Inputs(target, observation, external_ref, NOW, lifecycle=replace(base, **lifecycle), **whole)


@dataclass(frozen=True)
class Row:
    """One set of inputs and the plan it must lead to: the kind of plan, and what it must hold."""

    inputs: Inputs[Spec]
    plan: type
    holds: dict[str, Any]


def row(plan: type, observation: Any, external_ref: ExternalRef = RECORDED, **changed: Any) -> Row:
    """Return a row; `reason` and `holds` are what its plan must hold, the rest are the inputs of its decision."""
    reason = {"reason": changed.pop("reason")} if "reason" in changed else {}
    holds = reason | changed.pop("holds", {})
    return Row(inputs(observation, external_ref, **changed), plan, holds)


def leaving(plan: type, observation: Any, external_ref: ExternalRef = RECORDED, **changed: Any) -> Row:
    """Return the row of a resource that is being deleted, under the policy Delete where no other is named."""
    return row(plan, observation, external_ref, deleting=True, **changed)


def to(**agreed: str) -> Consent:
    return Consent(tuple(agreed.items()))


THERE, NOBODYS, STRANGERS = there(), there(owner=None), there(owner=STRANGER)
BUSY, STOPPED, REMAINS = there(phase=Phase.BUSY), there(phase=Phase.STOPPED), Absent(remains=True)
YOUNG = replace(TARGET, is_new=True)
OTHERS_SERVER, NO_LOGIN = Unknown("AdoptionRefused", "x"), Unknown("CredentialsInvalid", "x")
DETACH, ORPHAN, SNAPSHOT, FRESH = Policy.DETACH, Policy.ORPHAN, Policy.SNAPSHOT, ExternalRef()
LATE_BACKUP: Any = {"policy": SNAPSHOT, "delete_intended": True, "eventual": True}
UNUSABLE = Present(replace(BUSY.observed, owner=None, usable=False))
FORMERS, START_IT = Predecessor("old", "oid-0", FORMER), Change(("activation",), "always", "never", starts=True)
LONG_GONE = replace(RECORDED, absent_since=NOW - GRACE)
MISNAMED = replace(RECORDED, former_name="orders_w", absent_since=NOW - GRACE)
JUST_GONE = replace(RECORDED, absent_since=NOW - timedelta(seconds=1))
EMPTY = f"`kubectl annotate {ADDRESS} fairlead.dev/consent=recreate=oid-1`"
UNKNOWN = Unknown("CloudUnreachable", "no answer")

REFUSED = {"status": {"conditions": [{"type": "Synced", "status": "False", "reason": "CloudBusy", "message": "x"}]}}

ROWS: dict[str, Row] = {
    # Nothing known
    "unknown creates nothing": row(Wait, UNKNOWN, FRESH, reason="CloudUnreachable"),
    "what went with its server names its own consent at once": row(
        Wait, Unknown("DatabaseLost", "x"), holds={"message": f"x; to have an empty one in a server made anew: {EMPTY}"}
    ),
    "unknown changes nothing": row(Wait, UNKNOWN, reason="CloudUnreachable"),
    "a server of others is refused, whatever is recorded": row(
        Refuse, OTHERS_SERVER, reason="AdoptionRefused", holds={"message": "x"}
    ),
    "nothing is made in a server of others": row(Refuse, OTHERS_SERVER, FRESH, holds={"message": "x"}),
    "what was never made in a server of others ends": leaving(
        RemoveFinalizer, OTHERS_SERVER, FRESH, inside=True, tagged=False
    ),
    "what was made in a server that is others' now is not left behind": leaving(
        Refuse, OTHERS_SERVER, reason="AdoptionRefused", tagged=False
    ),
    "so is what a create may have made there": leaving(
        Refuse, OTHERS_SERVER, FRESH, tagged=False, obj={"status": {"madeAt": "x"}}
    ),
    "a name that somebody wrote since is no loss": row(Refuse, GONE, MISNAMED, stateful=True, reason="ImmutableField"),
    "nor does it let anything go": leaving(Refuse, GONE, MISNAMED, stateful=True, reason="ImmutableField"),
    "nor leave another's behind": leaving(Refuse, there("oid-2"), MISNAMED, reason="ImmutableField"),
    "a name under which it is is its name": row(Settled, THERE, replace(RECORDED, former_name="orders_w")),
    "unknown deletes nothing": leaving(Wait, UNKNOWN, reason="CloudUnreachable"),
    "unknown lets go of no orphan": leaving(Wait, UNKNOWN, policy=ORPHAN),
    "unknown does not keep a detached one": leaving(Orphan, UNKNOWN, policy=DETACH, holds={"tagged": False}),
    # Not ours to move
    "a namespace that is not allowed creates nothing": row(Refuse, GONE, FRESH, reason="NotAllowed", not_allowed="no"),
    "a namespace no longer allowed changes nothing": row(
        Refuse, THERE, reason="NotAllowed", not_allowed="no", changes=(ONLINE,)
    ),
    "another account is not absence": row(Refuse, GONE, LONG_GONE, reason="AccountChanged", account_changed="x"),
    "an open intent of another process is waited for": row(
        Wait, GONE, FRESH, intent_until=NOW + timedelta(seconds=7), holds={"after": timedelta(seconds=7), "quiet": True}
    ),
    "an intent whose time is over is resolved from the cloud": row(Create, GONE, FRESH, intent_until=NOW),
    "an unknown intent format is left alone": row(Refuse, THERE, reason="NewerProvider", intent_unknown="x"),
    "a create under way is waited for": row(Wait, GONE, FRESH, reason="Creating", operating="Create"),
    "an update under way is waited for": row(Wait, THERE, reason="CloudBusy", operating="Update"),
    "a deletion under way is waited for": leaving(Wait, THERE, reason="Deleting", operating="Delete"),
    # Absent, never Ready
    "absent and never Ready is made": row(Create, GONE, FRESH, holds={"instead_of": ""}),
    "absent after a crash of the create is made": row(Create, GONE, ExternalRef("orders_x", "", "account-1")),
    "paused makes nothing": row(Rest, GONE, FRESH, reason="Paused", paused="later"),
    "observe makes nothing": row(Wait, GONE, FRESH, reason="ResourcePending", observe_only=True),
    "a restored cluster makes nothing": row(Rest, GONE, FRESH, reason="AwaitingTakeover", takeover="x"),
    "what the server cannot serve is not made": row(
        Refuse, GONE, FRESH, reason="UnsupportedVersion", refusal=("UnsupportedVersion", "x")
    ),
    "a predecessor stops a create": row(Refuse, GONE, FRESH, reason="PredecessorFound", predecessors=(FORMERS,)),
    "a person may start beside a predecessor": row(
        Create, GONE, FRESH, predecessors=(FORMERS,), consent=Consent(adopt="none")
    ),
    "a limit stops a create": row(Refuse, GONE, FRESH, reason="LimitReached", limit_reached="full"),
    # Absent, was Ready
    "the first not-found is not believed": row(Wait, GONE, holds={"after": GRACE, "quiet": True}),
    "within the grace it is not believed": row(
        Wait, GONE, JUST_GONE, holds={"after": timedelta(seconds=59), "quiet": True}
    ),
    "two not-founds over the grace are a loss": row(Refuse, GONE, LONG_GONE, reason="DatabaseLost"),
    "a loss with the wrong consent stays a loss": row(
        Refuse, GONE, LONG_GONE, reason="DatabaseLost", consent=to(recreate="oid-2")
    ),
    "a loss given up is made anew": row(
        Create, GONE, LONG_GONE, consent=to(recreate="oid-1"), holds={"instead_of": "oid-1"}
    ),
    "consent does not shorten the grace": row(Wait, GONE, JUST_GONE, consent=to(recreate="oid-1")),
    "observe makes nothing anew": row(
        Refuse, GONE, LONG_GONE, reason="DatabaseLost", observe_only=True, consent=to(recreate="oid-1")
    ),
    # Present, whose?
    "another incarnation is only read": row(Refuse, there("oid-2"), reason="Replaced", changes=(ONLINE,)),
    "no tag of ours is not ours": row(Refuse, STRANGERS, FRESH, reason="NotOwned"),
    "what an adoption would change is told before it": row(
        Refuse, NOBODYS, FRESH, reason="NotOwned", adoption=True, preview=PREVIEW, holds={"held": (SIZE, ONLINE)}
    ),
    "what is only observed is nobody's to adopt": row(
        Rest, NOBODYS, FRESH, reason="ObserveOnly", observe_only=True, consent=Consent(adopt="oid-1"), adoption=True
    ),
    "what is only observed and stopped cannot be used": row(
        Refuse, there(owner=None, phase=Phase.STOPPED), FRESH, reason="DatabaseStopped", observe_only=True
    ),
    "what is only observed and failed cannot be used": row(
        Refuse, there(owner=None, phase=Phase.FAILED), FRESH, reason="DatabaseFailed", observe_only=True
    ),
    "what is only observed and being made cannot be used yet": row(
        Wait, UNUSABLE, FRESH, reason="Updating", observe_only=True
    ),
    "what may not be adopted tells nothing of itself": row(
        Refuse, NOBODYS, FRESH, reason="NotOwned", changes=(ONLINE,), holds={"held": ()}
    ),
    "no tag at all is not ours": row(Refuse, NOBODYS, FRESH, reason="NotOwned"),
    "a lost tag on a recorded incarnation is drift": row(
        Update, NOBODYS, changes=(ONLINE,), holds={"changes": (ONLINE,)}
    ),
    "a stranger's tag on a recorded incarnation is not ours": row(Refuse, STRANGERS, reason="NotOwned"),
    "an adoption that is not allowed is refused": row(
        Refuse, NOBODYS, FRESH, reason="AdoptionRefused", consent=Consent(adopt="oid-1")
    ),
    "an allowed adoption is done": row(
        Adopt, NOBODYS, FRESH, consent=Consent(adopt="oid-1"), adoption=True, holds={"incarnation": "oid-1"}
    ),
    "an adoption by the hash of what it changes is done": row(
        Adopt, NOBODYS, FRESH, consent=Consent(adopt="oid-1/hash-1"), adoption=True, preview=PREVIEW
    ),
    "an adoption by another hash is refused": row(
        Refuse, NOBODYS, FRESH, reason="NotOwned", consent=Consent(adopt="oid-1/hash-0"), adoption=True, preview=PREVIEW
    ),
    "one's own predecessor needs no permission": row(Adopt, there(owner=FORMER), FRESH, consent=Consent(adopt="oid-1")),
    "another installation's is never adopted": row(
        Refuse, STRANGERS, FRESH, reason="AdoptionRefused", consent=Consent(adopt="oid-1"), adoption=True
    ),
    "adoption names the incarnation": row(
        Refuse, NOBODYS, FRESH, reason="NotOwned", consent=Consent(adopt="oid-7"), adoption=True
    ),
    "a replacement can be adopted": row(
        Adopt, there("oid-2", None), consent=Consent(adopt="oid-2"), adoption=True, holds={"incarnation": "oid-2"}
    ),
    "a paused adoption waits": row(Refuse, NOBODYS, FRESH, consent=Consent(adopt="oid-1"), adoption=True, paused="x"),
    # Present and ours
    "no difference is settled": row(Settled, THERE),
    "paused changes nothing and shows it": row(Rest, THERE, paused="x", changes=(ONLINE,), holds={"held": (ONLINE,)}),
    "observe changes nothing and shows it": row(
        Rest, THERE, reason="ObserveOnly", observe_only=True, changes=(ONLINE,), holds={"held": (ONLINE,)}
    ),
    "a restored cluster changes nothing": row(Rest, THERE, reason="AwaitingTakeover", takeover="x", changes=(ONLINE,)),
    "busy is waited for": row(Wait, BUSY, reason="CloudBusy", changes=(ONLINE,)),
    "stopped is started where the spec wants it running": row(
        Update, STOPPED, changes=(START_IT, ONLINE), holds={"changes": (START_IT,)}
    ),
    "stopped is reported": row(Refuse, STOPPED, reason="DatabaseStopped"),
    "a refused edit holds what the spec asks for": row(
        Refuse, THERE, reason="InvalidValue", refusal=("InvalidValue", "x"), changes=(SIZE,)
    ),
    "a refused edit holds what would lock out": row(
        Refuse, THERE, reason="InvalidValue", refusal=("InvalidValue", "x"), changes=(SIZE, LOCKOUT)
    ),
    "a refused edit keeps nothing that always holds from being put back": row(
        Update,
        THERE,
        refusal=("InvalidValue", "x"),
        changes=(SIZE, ONLINE),
        holds={"changes": (ONLINE,), "drift": True},
    ),
    "online drift is put back at once": row(
        Update, THERE, changes=(ONLINE,), holds={"changes": (ONLINE,), "drift": True}
    ),
    "an online edit is made at once": row(
        Update, THERE, changes=(ONLINE,), spec_hash="spec-2", holds={"changes": (ONLINE,), "drift": False}
    ),
    "a first convergence is no drift": row(
        Update, THERE, replace(RECORDED, converged=None), changes=(ONLINE,), holds={"drift": False}
    ),
    "restarting drift waits for the window": row(Rest, THERE, reason="DriftHeld", changes=(RESTART,)),
    "restarting drift is put back in the window": row(
        Update, THERE, changes=(RESTART,), window_at=NOW, holds={"changes": (RESTART,)}
    ),
    "restarting drift is put back when asked for": row(Update, THERE, changes=(RESTART,), correct_drift=True),
    "lockout drift waits for the window": row(Rest, THERE, reason="DriftHeld", changes=(LOCKOUT,)),
    "a restarting edit waits for the window": row(
        Rest, THERE, reason="WaitingForWindow", changes=(RESTART,), spec_hash="spec-2"
    ),
    "a restarting edit is made now when asked for": row(
        Update, THERE, changes=(RESTART,), spec_hash="spec-2", apply_now=True
    ),
    "driftPolicy does not hurry an edit": row(Rest, THERE, changes=(RESTART,), spec_hash="spec-2", correct_drift=True),
    "apply Immediate does not hurry drift": row(Rest, THERE, changes=(RESTART,), apply_now=True),
    "the destroy limit stops restarts": row(
        Update, THERE, changes=(RESTART, ONLINE), window_at=NOW, destroy_limit_reached="x", holds={"changes": (ONLINE,)}
    ),
    "a loss needs consent, whatever else is asked": row(
        Refuse, THERE, reason="HeldChange", changes=(LOSS,), apply_now=True, correct_drift=True, window_at=NOW
    ),
    "consent names field and value": row(Refuse, THERE, reason="HeldChange", changes=(LOSS,), consent=to(backups="1")),
    "a consented loss is made": row(Update, THERE, changes=(LOSS,), consent=to(backups="0")),
    "what can be made is made beside what is held": row(
        Update, THERE, changes=(ONLINE, RESTART, LOSS), holds={"changes": (ONLINE,)}
    ),
    "a new version of ours is no drift": row(
        Rest, THERE, reason="TranslatorChanged", changes=(ONLINE,), projection=2, observed_hash="seen-1"
    ),
    "real drift under a new version of ours is drift": row(
        Update, THERE, changes=(ONLINE,), projection=2, observed_hash="seen-2", holds={"changes": (ONLINE,)}
    ),
    # Deletion
    "never held goes by itself": leaving(Ignore, GONE, FRESH, has_finalizer=False),
    "paused deletes nothing": leaving(Rest, THERE, reason="Paused", paused="x"),
    "without a word nothing is destroyed": leaving(Wait, THERE, reason="AwaitingTeardown", policy=None),
    "without a word nothing absent is let go": leaving(Wait, GONE, LONG_GONE, policy=None),
    "detach touches nothing": leaving(Orphan, THERE, policy=DETACH, holds={"tagged": False}),
    "a word beyond the resource's own policy destroys nothing": leaving(
        Refuse, THERE, reason="HeldDeletion", destroy_refused="x"
    ),
    "and holds up nothing that is gone": leaving(RemoveFinalizer, GONE, LONG_GONE, destroy_refused="x"),
    "orphan is marked released": leaving(Orphan, THERE, policy=ORPHAN, holds={"tagged": True}),
    "a tag that is refused is tried": leaving(
        Orphan, THERE, policy=ORPHAN, since=NOW - timedelta(minutes=4), obj=REFUSED, holds={"tagged": True}
    ),
    "and given up in time": leaving(
        Orphan, THERE, policy=ORPHAN, since=NOW - timedelta(minutes=5), obj=REFUSED, holds={"tagged": False}
    ),
    "one that was never refused is tried, however late": leaving(
        Orphan, THERE, policy=ORPHAN, since=NOW - timedelta(hours=5), holds={"tagged": True}
    ),
    "delete destroys": leaving(Delete, THERE, holds={"policy": Policy.DELETE}),
    "snapshot keeps": leaving(Delete, THERE, policy=SNAPSHOT, holds={"policy": Policy.SNAPSHOT}),
    "an orphan needs no credentials that work": leaving(Orphan, NO_LOGIN, policy=ORPHAN, holds={"tagged": False}),
    "an orphan waits for a cloud that is away": leaving(Wait, UNKNOWN, reason="CloudUnreachable", policy=ORPHAN),
    "without credentials nothing is destroyed": leaving(Wait, NO_LOGIN, reason="CredentialsInvalid"),
    "observe lets go": leaving(Orphan, THERE, observe_only=True, holds={"tagged": False}),
    "another incarnation is not destroyed": leaving(Orphan, there("oid-2"), holds={"tagged": False}),
    "a stranger's is not destroyed": leaving(Orphan, STRANGERS, FRESH, holds={"tagged": False}),
    "no tag and never ours is not destroyed": leaving(Orphan, NOBODYS, FRESH, holds={"tagged": False}),
    "a namespace no longer allowed destroys nothing": leaving(Refuse, THERE, reason="NotAllowed", not_allowed="x"),
    "a namespace no longer allowed lets orphans go": leaving(
        Orphan, THERE, policy=ORPHAN, not_allowed="x", holds={"tagged": True}
    ),
    "another account destroys nothing": leaving(Refuse, GONE, LONG_GONE, reason="AccountChanged", account_changed="x"),
    "a restored cluster destroys nothing": leaving(Rest, THERE, takeover="x"),
    "the destroy limit stops destroys": leaving(Refuse, THERE, reason="Brake", destroy_limit_reached="x"),
    "a busy one is destroyed later": leaving(Wait, BUSY, reason="Deleting"),
    "an open intent stops a deletion": leaving(Wait, THERE, intent_until=NOW + GRACE, holds={"quiet": True}),
    "what was inside of a server that others replaced is let go": leaving(RemoveFinalizer, Unknown("Replaced", "x")),
    "absent and never Ready is let go": leaving(RemoveFinalizer, GONE, FRESH),
    "what a crashed create left is taken away": leaving(Delete, REMAINS, FRESH, holds={"policy": Policy.DELETE}),
    "one not-found lets nothing go": leaving(Wait, GONE, holds={"quiet": True}),
    "two not-founds over the grace let go": leaving(RemoveFinalizer, GONE, LONG_GONE),
    "what was made a moment ago may be shown yet": leaving(
        Wait, GONE, LONG_GONE, target=YOUNG, eventual=True, holds={"quiet": True}
    ),
    "unless the cloud's record shows its deletion": leaving(
        RemoveFinalizer, Absent(is_deleted=True), LONG_GONE, target=YOUNG, eventual=True
    ),
    "our own deletion needs no grace": leaving(RemoveFinalizer, GONE, delete_intended=True),
    "our own deletion is finished": leaving(Delete, REMAINS, delete_intended=True, holds={"policy": Policy.DELETE}),
    "what others took away is not let go under Snapshot without a backup": leaving(
        Refuse, GONE, LONG_GONE, reason="BackupImpossible", policy=SNAPSHOT
    ),
    "nor is what is left of it": leaving(Refuse, REMAINS, LONG_GONE, reason="BackupImpossible", policy=SNAPSHOT),
    "what others took away goes under Snapshot where a backup is seen": leaving(
        RemoveFinalizer, GONE, LONG_GONE, policy=SNAPSHOT, backup="b"
    ),
    "our own deletion under Snapshot lets nothing go without its backup": leaving(
        Refuse, GONE, reason="BackupImpossible", policy=SNAPSHOT, delete_intended=True
    ),
    "where backups take their time the final one is waited for": leaving(
        Wait, GONE, LONG_GONE, reason="Deleting", **LATE_BACKUP
    ),
    "none comes of a deletion that began under Delete": leaving(
        Refuse, GONE, LONG_GONE, reason="BackupImpossible", without_backup=True, **LATE_BACKUP
    ),
    "a retirement that was cut off is finished before its backup is looked for": leaving(
        Delete, REMAINS, policy=SNAPSHOT, delete_intended=True
    ),
    "what was never Ready is let go under Snapshot": leaving(RemoveFinalizer, GONE, FRESH, policy=SNAPSHOT),
    "a kind without data is let go under Snapshot": leaving(
        RemoveFinalizer, GONE, LONG_GONE, policy=SNAPSHOT, stateful=False
    ),
    "an orphan's logins stay": leaving(RemoveFinalizer, REMAINS, LONG_GONE, policy=ORPHAN),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_decide_returns_the_plan_of_each_row(case: Row) -> None:
    plan: Plan = decide(case.inputs).plan

    assert type(plan) is case.plan, plan
    assert {key: getattr(plan, key) for key in case.holds} == case.holds


def test_rows_cover_every_plan() -> None:
    plans = {Settled, Rest, Wait, Create, Update, Adopt, Refuse, Orphan, Delete, RemoveFinalizer, Ignore}
    assert {case.plan for case in ROWS.values()} == plans
