"""All that one decision reads, gathered once, and what follows from it without a call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple

from apis.names import ADOPT, CONSENT
from apis.teardown import Policy
from providers.credentials.passwords import Keep, PasswordInputs, PasswordStep, Stored
from providers.external.client import FailedOperation, Target
from providers.external.consent import NONE_GIVEN, Consent
from providers.external.credential import Login
from providers.external.diff import diff
from providers.external.endpoint import NO_ENDPOINT, Endpoint
from providers.external.observation import (
    Change,
    ExternalRef,
    Keys,
    Observation,
    Observed,
    Predecessor,
    Present,
    SpecT,
    digest,
)
from providers.external.provider import ConnectedAccount, Kind, Revival
from providers.external.spec import Envelope
from providers.managed.decisions.attempts import NOTHING_TRIED, Attempts
from providers.managed.decisions.plan import Plan, Preview
from providers.managed.record import LOST_AT, Intent, LastSeen, is_made
from runtime import kubectl
from runtime.objects import Object, status_of
from runtime.replaced import replace

_NO_ENVELOPE = Envelope(for_provider=None)


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The state of the object in Kubernetes.

    `policy` is what its deletion means (None: the claim's teardown instruction is awaited). `destroy_refused` is why
    that instruction destroys nothing, empty when it may; `since` is when the deletion was requested.
    """

    deleting: bool = False
    has_finalizer: bool = False
    policy: Policy | None = Policy.ORPHAN
    paused: str = ""
    destroy_refused: str = ""
    since: datetime | None = None


# Without slots: a pass makes a dozen copies, which `replace` makes at once from what has a dictionary.
@dataclass(frozen=True)
class Inputs(Generic[SpecT]):
    """All that one decision reads: what is desired, observed, recorded, allowed by others, and tried before.

    `changes` is the whole difference, the provider's invariants included; `preview` is what adopting changes about what
    is somebody else's, None where nothing is, or where it may not be shown.

    `operating` is what an open operation does, `operation_failed` reason and message of one that has just failed.
    `server` carries the changes out, one at a time; `turn_of` is the other resource whose turn it is, empty for none.

    Of what others allow (the ProviderConfig, the account, the clock's windows) each text is empty when nothing forbids
    it, else the sentence for people. `eventual`: what was just made may not be seen at once. `stateful`: nothing is
    made in the place of what was lost. `revival` is how the cloud brings back what was deleted. `backups` are those
    that a lost one may be restored from, the newest first, None where they could not be listed. `delete_intended`: a
    deletion of ours is on record, `without_backup`: it takes no final backup. `window_at` is when
    the maintenance window opens next, not after `now` while it is open, None where there is none. `live`: it was
    observed in this very pass, and not known from a list or a look of before; `listed`: lists show what becomes of it,
    so that it needs no look by itself; `unlisted`: it was not found, and the last list lacks it as well. `last_seen` is
    what a look of this pass was answered, where it is to be recorded, else what stands in status.

    `passwords` is what the decision about the password reads, None where there is none to be made; `step` is what was
    decided, `password_problem` why nothing could be. `logins` are the names that may be logins, `foreign` the keys of
    the credentials Secret that somebody else wrote, which are not in `stored`, and `user_password` is a user's own.
    `namespace` is the object's.
    """

    target: Target[SpecT]
    observation: Observation[SpecT]
    external_ref: ExternalRef
    now: datetime
    spec_hash: str = ""
    generation: int = 0
    lifecycle: Lifecycle = Lifecycle()
    consent: Consent = NONE_GIVEN
    observe_only: bool = False
    correct_drift: bool = False
    apply_now: bool = False
    changes: tuple[Change, ...] = ()
    preview: Preview | None = None
    observed_hash: str = ""

    not_allowed: str = ""
    account_changed: str = ""
    limit_reached: str = ""
    destroy_limit_reached: str = ""
    refusal: tuple[str, str] | None = None
    takeover: str = ""
    adoption: bool = False
    window_at: datetime | None = None
    predecessors: tuple[Predecessor, ...] = ()
    backup: str = ""
    backups: tuple[str, ...] | None = None
    grace: timedelta = timedelta(seconds=60)
    settle: timedelta = timedelta(seconds=60)
    intent_until: datetime | None = None
    intent_unknown: str = ""
    delete_intended: bool = False
    without_backup: bool = False
    operating: str = ""
    operation_failed: FailedOperation | None = None
    server: str = ""
    turn_of: str = ""
    projection: int = 1
    eventual: bool = False
    stateful: bool = True
    inside: bool = False
    tagged: bool = True
    revival: Revival | None = None
    live: bool = True
    listed: bool = False
    unlisted: bool = False
    last_seen: LastSeen | None = None
    attempts: Attempts = NOTHING_TRIED

    obj: Object = field(default_factory=dict)
    envelope: Envelope = _NO_ENVELOPE
    account: ConnectedAccount[SpecT, Any] | None = None
    namespace: Object = field(default_factory=dict)
    intent: Intent | None = None
    resolved: Mapping[str, str] = field(default_factory=dict)

    stored: Stored | None = None
    passwords: PasswordInputs | None = field(default=None, repr=False)
    step: PasswordStep = field(default=Keep(), repr=False)
    password_problem: tuple[str, str] | None = None
    logins: tuple[str, str] = ("", "")
    foreign: tuple[str, ...] = ()
    login: Login = Login.NOT_TRIED
    user_password: str = field(default="", repr=False)

    @property
    def window_open(self) -> bool:
        """Whether the maintenance window is open."""
        return self.window_at is not None and self.window_at <= self.now

    @property
    def observed(self) -> Observed[SpecT, Any] | None:
        """The database as it was observed, None when it was not."""
        match self.observation:
            case Present(observed=observed):
                return observed
            case _:
                return None

    def is_ours(self, observed: Observed[SpecT, Any]) -> bool:
        """Return whether what was observed is this resource's: by its tags, else by what was recorded of it."""
        if self.target.owner.owns(observed.owner):
            return True
        # Recorded before its create was sent, when there was nothing under the name.
        is_recorded = is_made(self.obj, self.external_ref, tagged=self.tagged) and self.target.unanswered is None
        return observed.owner is None and is_recorded and not self.was_lost

    def may_show(self, observed: Observed[SpecT, Any]) -> bool:
        """Return whether this namespace may read what was observed: it is its own, or the platform team lets it.

        It allows adoption, or wrote the name of what is observed.
        """
        is_named = self.observe_only and not self.target.is_by_rule
        precedes = observed.owner is not None and self.target.owner.precedes(observed.owner)
        return self.is_ours(observed) or precedes or self.adoption or is_named

    @property
    def was_lost(self) -> bool:
        """Whether a database that its name alone identifies was reported as lost, and none was agreed to since."""
        return LOST_AT in status_of(self.obj)

    @property
    def is_another_at_work(self) -> bool:
        """Whether another process may still carry out the intent that it wrote."""
        return self.intent_until is not None and self.now < self.intent_until

    @property
    def noun(self) -> str:
        """What messages call what is made: `database`, or the kind where it holds no data."""
        return "database" if self.stateful else str(self.obj["kind"])

    @property
    def deadline(self) -> timedelta | None:
        """How long the cloud's present state may last; None where none was observed."""
        if self.observed is not None:
            return self.observed.deadline
        # The final backup of what is gone takes as long as there are data.
        is_kept = self.lifecycle.deleting and self.lifecycle.policy is Policy.SNAPSHOT and self.delete_intended
        return timedelta(days=1) if is_kept else None

    @property
    def endpoint(self) -> Endpoint:
        """How an application reaches the database; without a host where it was not seen, or nobody logs in."""
        return NO_ENDPOINT if self.observed is None else self.observed.endpoint

    @property
    def is_ca_outdated(self) -> bool:
        """Whether the published credentials have other certificates than the endpoint is verified by now.

        Not where the Secret holds what somebody else wrote: what counts of it is written back first.
        """
        if self.stored is None or not self.stored.kept.current or self.foreign:
            return False
        return bool(self.endpoint.host) and self.stored.kept.ca != self.endpoint.ca

    def consent_command(self, *entries: str) -> str:
        """Return the command that consents to these entries (`<path>=<value>`), with those that are there already."""
        paths = {entry.partition("=")[0] for entry in entries}
        present = tuple(f"{path}={value}" for path, value in self.consent.values if path not in paths & {"restore"})
        others = any(path != "adopt" for path, _ in self.consent.used)
        value = ",".join(dict.fromkeys((*present, *entries)))
        return kubectl.annotate(self.target.address, CONSENT, value, overwrites=bool(self.consent.values) or others)

    def adopt_command(self, incarnation: str) -> str:
        """Return the command that adopts a database."""
        before = self.consent.adopt or any(path == "adopt" for path, _ in self.consent.used)
        return kubectl.annotate(self.target.address, ADOPT, incarnation, overwrites=bool(before))


class Decision(NamedTuple):
    """What to do in one pass: the plan, the step about the password, and the attempts as they are after it."""

    plan: Plan
    step: PasswordStep
    attempts: Attempts


def with_differences(kind: Kind[SpecT, Any], inputs: Inputs[SpecT]) -> Inputs[SpecT]:
    """Return the inputs with all that differs between what is desired and what was observed."""
    if inputs.observed is None:
        return inputs
    if inputs.observe_only and not inputs.is_ours(inputs.observed):
        # What is kept true whatever the spec says is kept of what is managed.
        kind = replace(kind, invariants=lambda _target, _observed: ())
    changes = differences(kind, inputs.envelope, inputs.target, inputs.observed, inputs.external_ref.applied_keys)
    return replace(inputs, changes=changes, observed_hash=digest(inputs.observed.spec))


def differences(
    kind: Kind[SpecT, Any], envelope: Envelope, target: Target[SpecT], observed: Observed[SpecT, Any], applied: Keys
) -> tuple[Change, ...]:
    """Return all that differs, each change in its class; `applied` are keys that the spec set before."""
    from_spec = diff(target.spec, observed.spec, ignore=envelope.ignore_fields, applied=applied)
    return tuple(kind.classify(change, observed) for change in (*from_spec, *kind.invariants(target, observed)))


def proven_versions(obj: Object) -> dict[str, str]:
    """Return the row versions of the logins at which their passwords were last proven."""
    logins = (status_of(obj).get("atProvider") or {}).get("logins") or ()
    return {str(login.get("name")): str(login.get("version", "")) for login in logins}
