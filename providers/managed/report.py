"""The status that a pass leaves: whole, redacted, stable between passes in which nothing happened. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import UNSET

from apis import connection
from apis.connection import Connection, SecretRef
from apis.identity import CA_KEY, credentials_secret_key
from apis.names import ACCOUNT, EXTERNAL_NAME, INCARNATION, RECONCILE_REQUESTED_AT
from providers.accounts.destroys import MADE_AT
from providers.credentials.passwords import Await, Keep, Kept, Missing, keyed_hash, unproven_text
from providers.credentials.secret_check import still_coming
from providers.external.consent import USED_CONSENTS, consents_given, written_consents
from providers.external.credential import Login
from providers.external.diff import shared_keys
from providers.external.observation import Change, Phase, Present, describe, digest
from providers.managed import record
from providers.managed.availability import is_usable, still_cut_off
from providers.managed.outcome import Outcome
from providers.managed.plan import Create, Plan, Refuse, Rest, Settled, Update, Wait
from providers.managed.record import used_now
from providers.managed.snapshot import Snapshot, proven_versions
from providers.reasons import BY_STATE, UNUSABLE, Kind, deadline_of, kind_of
from providers.settings import Settings
from runtime.conditions import Condition, find, instant, merge, timestamp
from runtime.objects import Object, annotations_of, generation_of, key_of, status_of

MOST_DRIFT = 32
TOLERATED = "Tolerated"
LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why things are as they are; an empty reason means that nothing is left to do.

    `unusable`: the published login was tried and refused, whatever else is to be said.
    """

    reason: str = ""
    message: str = ""
    held: tuple[Change, ...] = ()
    unusable: bool = False


def verdict_of(snapshot: Snapshot[Any], plan: Plan, *, busy_for: timedelta | None = None) -> Verdict:
    """Reduce a plan and the password's trouble to the one reason that counts most.

    `busy_for` tells for how long the cloud has been at work in its present state, where that is known.
    """
    if isinstance(plan, Wait) and plan.reason == "CloudBusy" and _nothing_waits(snapshot, busy_for):
        # A backup, the cloud's own maintenance: users are not concerned, and there is nothing to wait for.
        plan = Settled()
    if _is_login_dead(snapshot) and not (isinstance(plan, Refuse) and plan.reason in UNUSABLE):
        return Verdict("PasswordUnknown", _login_refused(snapshot), unusable=True)
    return _of_plan(snapshot, plan)


def _of_plan(snapshot: Snapshot[Any], plan: Plan) -> Verdict:  # noqa: PLR0911 - one arm for each cause
    match plan:
        case Wait(reason="CloudBusy") if isinstance(snapshot.step, Await):
            return _rotating(snapshot)
        case (
            Refuse(reason=reason, message=message, held=held)
            | Rest(reason=reason, message=message, held=held)
            | Wait(reason=reason, message=message, held=held)
        ):
            return Verdict(reason, message, held)
        case Create(restore=backup):
            how = ("Restoring", f"restored from {backup}") if backup else ("Creating", "made")
            return Verdict(how[0], f"the {snapshot.noun} is being {how[1]}")
        case Update(held=Rest() | Refuse() | Wait() as held):
            return Verdict(held.reason, held.message, held.held)
        case Update(changes=changes):
            paths = ", ".join(change.shown for change in changes)
            return Verdict("CloudBusy", f"still differs after the change: {paths}"[:400])
        case Settled() if snapshot.trouble is not None:
            return Verdict(*snapshot.trouble)
        case Settled() if isinstance(snapshot.step, Await):
            return _rotating(snapshot)
        case Settled() if snapshot.step == Missing(refused=True):
            return Verdict("PasswordUnknown", _login_refused(snapshot))
        case Settled() if isinstance(snapshot.step, Missing):
            return Verdict("PasswordUnknown", f"{_why_unknown(snapshot)}; {_way_to_another(snapshot)}")
        case _:
            return Verdict()


def _nothing_waits(snapshot: Snapshot[Any], busy_for: timedelta | None) -> bool:
    """Tell whether a database at which the cloud is at work, within its time, is usable and as it was asked for."""
    observed, scene = snapshot.observed, snapshot.scene
    if observed is None or observed.phase is not Phase.BUSY or not observed.usable:
        return False
    if busy_for is None or busy_for >= observed.deadline:
        return False
    known = scene.marks.converged
    if known is None or known.spec_hash != scene.desired.spec_hash or scene.bounds.refusal is not None:
        return False
    return not (scene.changes or observed.pending or observed.restart) and isinstance(snapshot.step, Keep)


def _is_login_dead(snapshot: Snapshot[Any]) -> bool:
    """Tell whether a login to a database that takes logins showed that the published password is no good."""
    return snapshot.login is Login.REFUSED and snapshot.step == Missing(refused=True)


def _login_refused(snapshot: Snapshot[Any]) -> str:
    return (
        f"the server refuses the password of login {_login_of(snapshot)}: somebody changed it, or there is no such"
        f" login; {_way_to_another(snapshot)}"
    )


def _why_unknown(snapshot: Snapshot[Any]) -> str:
    if snapshot.foreign:
        keys = ", ".join(snapshot.foreign)
        return f"the credentials Secret holds what Fairlead did not write ({keys}) and the password is found nowhere"
    if status_of(snapshot.obj).get("connection"):
        return "the credentials Secret was lost and the password is found nowhere"
    # Taken over with a login that was there before.
    return f"Fairlead does not know the password of the login {_login_of(snapshot)}".rstrip()


def _login_of(snapshot: Snapshot[Any]) -> str:
    return (snapshot.stored.kept.username if snapshot.stored is not None else "") or snapshot.target.active


def _way_to_another(snapshot: Snapshot[Any]) -> str:
    if snapshot.given:
        return "change the password in the Secret that passwordSecretRef names"
    return (
        "whoever knows it names a Secret with it in passwordSecretRef of the managed resource; or set"
        " passwordRotation.token to a new value for a new password"
    )


def _rotating(snapshot: Snapshot[Any]) -> Verdict:
    published = bool((status_of(snapshot.obj).get("connection") or {}).get("passwordRef"))
    if snapshot.step == Await(unproven=True) and snapshot.account is not None:
        text = unproven_text(str(snapshot.account.cloud.endpoint(snapshot.target)))
        return Verdict("Rotating" if published else "Creating", text)
    if not snapshot.scene.marks.incarnation:
        return Verdict("Creating", "the database is being made; its password does not count yet")
    return Verdict("Rotating", "the new password was accepted and does not count everywhere yet")


def status_after(
    snapshot: Snapshot[Any], verdict: Verdict, outcome: Outcome[Any], settings: Settings, now: datetime
) -> Object:
    """Return the whole status; equal to the old one when nothing happened."""
    obj, old = outcome.obj, status_of(outcome.obj)
    status: Object = {"observedGeneration": generation_of(obj)}
    status["conditions"] = _conditions(snapshot, outcome, _with_login(snapshot, outcome, verdict), now)
    marks = {
        "externalName": annotations_of(obj).get(EXTERNAL_NAME) or old.get("externalName"),
        "incarnation": annotations_of(obj).get(INCARNATION) or old.get("incarnation"),
        "account": annotations_of(obj).get(ACCOUNT) or old.get("account"),
        "lastHandledReconcileAt": annotations_of(obj).get(RECONCILE_REQUESTED_AT, "")[:256],
        "effectiveDeletionPolicy": _effective(snapshot),
        "atProvider": _at_provider(snapshot, outcome, old),
        "connection": _connection(snapshot, outcome, settings) or old.get("connection"),
        "drift": _drift(snapshot, verdict, outcome, old, now),
        "converged": _converged(snapshot, verdict, old),
        record.APPLIED_KEYS: _applied_keys(snapshot, verdict, old),
        MADE_AT: old.get(MADE_AT),
        USED_CONSENTS: _used_consents(snapshot, obj),
        record.RESTORING: old.get(record.RESTORING) if record.restoring_of(obj) else None,
        "rotation": _remembered(snapshot, outcome, settings, now),
        "operation": _operation(snapshot, outcome, old),
        "resolved": dict(snapshot.resolved),
    }
    if snapshot.scene.desired.lifecycle.deleting:
        # After a crash it tells whoever goes on that the absence is our own doing.
        marks["intent"] = old.get("intent")
    status |= {name: value for name, value in marks.items() if value}
    return status


def _with_login(snapshot: Snapshot[Any], outcome: Outcome[Any], verdict: Verdict) -> Verdict:
    """Add that the published login was refused in a pass that failed before it could put the password back."""
    is_put_back = any(change.path[-1] == "password" for change in outcome.corrected)
    if not verdict.reason or snapshot.login is not Login.REFUSED or is_put_back:
        return verdict
    return Verdict(verdict.reason, verdict.message, verdict.held, unusable=True)


def _effective(snapshot: Snapshot[Any]) -> str:
    policy = snapshot.scene.desired.lifecycle.policy
    return policy.value if policy is not None else "Awaiting"


def _conditions(snapshot: Snapshot[Any], outcome: Outcome[Any], verdict: Verdict, now: datetime) -> list[Object]:
    obj = outcome.obj
    generation, reason = generation_of(obj), verdict.reason
    message, kind = verdict.message[:LONGEST_MESSAGE], kind_of(reason)
    old = status_of(obj).get("conditions") or []
    stalled = kind is Kind.STALLED or (
        kind is not Kind.RESTING and kind is not Kind.FINE and _overdue(snapshot, obj, verdict, now)
    )
    if not _is_repeated(find(obj, "Reconciling"), verdict):
        # The deadline is each state's own: the next one begins anew.
        old = [condition for condition in old if condition.get("type") != "Reconciling"]
    usable = not verdict.unusable and is_usable(snapshot, outcome, reason)
    ready = _ready(snapshot, obj, verdict, Kind.FINE if usable else kind)
    found = [still_cut_off(snapshot, ready, reason)]
    if kind is Kind.FINE:
        found.append(Condition("Synced", "True", "InSync", f"the {snapshot.noun} is as it was asked for", generation))
        return merge(old, found, now)
    synced: Literal["True", "False"] = "True" if reason == "ObserveOnly" else "False"
    found.append(Condition("Synced", synced, reason, message, generation))
    if stalled:
        found.append(Condition("Stalled", "True", reason, message, generation))
    elif kind not in {Kind.RESTING, Kind.TEARDOWN}:
        found.append(Condition("Reconciling", "True", reason, message, generation))
    return merge(old, found, now)


def _is_repeated(condition: Object | None, verdict: Verdict) -> bool:
    """Tell whether a condition says what is to be said now: of a cloud at work that it is in the same state."""
    if condition is None or condition.get("reason") != verdict.reason:
        return False
    return verdict.reason not in BY_STATE or condition.get("message") == verdict.message[:LONGEST_MESSAGE]


def _overdue(snapshot: Snapshot[Any], obj: Object, verdict: Verdict, now: datetime) -> bool:
    """Tell whether the same has stood for longer than it may; once stalled it stays so until something moves."""
    if _is_repeated(find(obj, "Stalled"), verdict):
        return True
    # What waits for a word has no Reconciling.
    of_teardown = kind_of(verdict.reason) is Kind.TEARDOWN
    known = find(obj, "Synced" if of_teardown else "Reconciling")
    if known is None or not _is_repeated(known, verdict):
        return False
    since = instant(str(known.get("lastTransitionTime", "")))
    return since is not None and now - since >= deadline_of(verdict.reason, snapshot.deadline)


def _ready(snapshot: Snapshot[Any], obj: Object, verdict: Verdict, kind: Kind) -> Condition:
    generation = generation_of(obj)
    if kind is Kind.FINE:
        works = " and its password works" if snapshot.scene.bounds.stateful else ""
        return Condition("Ready", "True", "Available", f"the {snapshot.noun} is there{works}", generation)
    message = verdict.message[:LONGEST_MESSAGE]
    known = find(obj, "Ready")
    if kind is Kind.NOT_READY or verdict.unusable or verdict.reason in UNUSABLE or known is None:
        return Condition("Ready", "False", verdict.reason, message, generation)
    if known["status"] == "True":
        return Condition("Ready", "True", known["reason"], known["message"], generation)
    return Condition("Ready", "False", verdict.reason, message, generation)


def _at_provider(snapshot: Snapshot[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    observed = outcome.fresh.observed if isinstance(outcome.fresh, Present) else snapshot.observed
    if observed is None:
        return old.get("atProvider")
    found: Object = dict(observed.at_provider)
    # Whatever became of it in this pass: it is tried again until it works.
    refused = _login_of(snapshot) if snapshot.login is Login.REFUSED else ""
    known = {name: version for name, version in proven_versions(outcome.obj).items() if name != refused}
    proven = known | {name: version for name, version in outcome.proven.items() if version}
    if proven:
        found["logins"] = [{"name": name, "version": version} for name, version in sorted(proven.items())][-2:]
    return found


def _connection(snapshot: Snapshot[Any], outcome: Outcome[Any], settings: Settings) -> Object | None:
    kept: Kept | None = outcome.stored.kept if outcome.stored is not None else None
    if snapshot.account is None or kept is None or not kept.current:
        return None
    endpoint = snapshot.account.cloud.endpoint(snapshot.target)
    if not endpoint.host:
        return None
    name = credentials_secret_key(key_of(outcome.obj)).name
    published = Connection(
        host=endpoint.host,
        port=endpoint.port,
        database=endpoint.database,
        username=kept.username,
        sslmode=endpoint.sslmode,
        password_ref=SecretRef(name, "current", hash=keyed_hash(settings.hash_key, kept.current)),
        ca_ref=SecretRef(name, CA_KEY, hash=digest(kept.ca)) if kept.ca else UNSET,
    )
    return connection.dump(published)


def _drift(
    snapshot: Snapshot[Any], verdict: Verdict, outcome: Outcome[Any], old: Object, now: datetime
) -> list[Object]:
    """List what is held now, what is left on purpose, and what was put back last until something else is."""
    known = _entries(old)
    corrected = [_entry(change, "Corrected", {}, now) for change in outcome.corrected]
    if not corrected:
        corrected = [entry for entry in old.get("drift") or () if entry["action"] == "Corrected"]
    action = "Observed" if verdict.reason == "ObserveOnly" else "Held"
    held = [_entry(change, action, known, now) for change in verdict.held]
    observed = outcome.fresh.observed if isinstance(outcome.fresh, Present) else snapshot.observed
    ignored = snapshot.envelope.ignore_fields
    left = () if observed is None else (one for one in observed.tolerated if one.shown not in ignored)
    return (held + [_entry(change, TOLERATED, known, now) for change in left] + corrected)[:MOST_DRIFT]


def announced(changes: tuple[Change, ...], old: Object, now: datetime) -> list[Object]:
    """Return the differences as status shows them before anything is done about them."""
    return [_entry(change, "Held", _entries(old), now) for change in changes][:MOST_DRIFT]


def _entries(status: Object) -> dict[Any, Object]:
    return {(entry["path"], entry["action"]): entry for entry in status.get("drift") or ()}


def _entry(change: Change, action: str, known: dict[Any, Object], now: datetime) -> Object:
    before = known.get((change.shown, action))
    return {
        "path": change.shown[:256],
        "desired": describe(change.want),
        "observed": describe(change.have),
        "since": before["since"] if before else timestamp(now),
        "action": action,
    }


def _converged(snapshot: Snapshot[Any], verdict: Verdict, old: Object) -> Object | None:
    known, desired = old.get("converged"), snapshot.scene.desired
    if verdict.reason or not isinstance(snapshot.scene.observation, Present):
        return known
    if known and (known.get("specHash"), known.get("translator")) == (
        desired.spec_hash,
        snapshot.scene.bounds.translator,
    ):
        return {**known, "generation": desired.generation}
    return {
        "generation": desired.generation,
        "specHash": desired.spec_hash,
        "observedHash": snapshot.scene.observed_hash,
        "translator": snapshot.scene.bounds.translator,
    }


def _applied_keys(snapshot: Snapshot[Any], verdict: Verdict, old: Object) -> Object | None:
    """Remember what is the spec's own; once nothing differs that is what the spec names, and no more."""
    if verdict.reason or not isinstance(snapshot.scene.observation, Present):
        return old.get(record.APPLIED_KEYS)
    return record.written_keys(shared_keys(snapshot.target.spec))


def _used_consents(snapshot: Snapshot[Any], obj: Object) -> list[str]:
    """List the consents that count no more; nothing is read of a database where none was given."""
    entries = consents_given(obj)
    return written_consents(obj, used_now(snapshot.scene, entries)) if entries else []


def _operation(snapshot: Snapshot[Any], outcome: Outcome[Any], old: Object) -> Object | None:
    begun = outcome.operation
    if begun is not None:
        return {"id": begun.id, "kind": begun.kind, "startedAt": timestamp(begun.started_at)}
    return old.get("operation") if snapshot.scene.bounds.operating else None


def _remembered(snapshot: Snapshot[Any], outcome: Outcome[Any], settings: Settings, now: datetime) -> Object:
    """Return how the last rotation stands, and by which hash what is in the Secret and not published is known again."""
    old: Object = dict(status_of(outcome.obj).get("rotation") or {})
    coming = old.pop("coming", "")
    rotation = dict(_rotation(snapshot, outcome, settings, old, now))
    if outcome.stored is not None:
        kept = outcome.stored.kept
        connection = _connection(snapshot, outcome, settings) or status_of(outcome.obj).get("connection") or {}
        accepted = bool(kept.pending) and rotation.get("sent") == keyed_hash(settings.hash_key, kept.pending)
        coming = "" if accepted else still_coming(settings.hash_key, snapshot.logins, kept, connection)
    return rotation | ({"coming": coming} if coming else {})


def _rotation(snapshot: Snapshot[Any], outcome: Outcome[Any], settings: Settings, old: Object, now: datetime) -> Object:
    token = snapshot.envelope.password_rotation.token or ""
    rotation: Object
    if outcome.sent:
        # Done from here on: the pending password is kept until it is proven, so no crash asks for a second one.
        rotation = {"token": token, "sent": keyed_hash(settings.hash_key, outcome.sent)}
        if not outcome.resent:
            return rotation
        before = int(old.get("sends", 1)) if old.get("sent") == rotation["sent"] else 0
        return rotation | {"sentAt": timestamp(now), "sends": before + 1}
    if outcome.rotated_from is not None:
        rotation = {"token": token}
        if outcome.rotated_from:
            rotation["retiring"] = outcome.rotated_from
            is_forced = snapshot.envelope.password_rotation.force
            grace = min(settings.forced_grace, settings.rotation_grace) if is_forced else settings.rotation_grace
            rotation["retireAt"] = timestamp(now + grace)
        return rotation
    if outcome.retired and old:
        return {"token": old.get("token", "")}
    if not old and outcome.stored is not None and outcome.stored.kept.current:
        return {"token": token}
    return old
