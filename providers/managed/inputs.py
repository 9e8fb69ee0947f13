"""All that one decision looks at, gathered once, and what follows from it without asking anybody. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple

from apis.names import ADOPT, CONSENT
from apis.teardown import Policy
from providers.credentials.passwords import Keep, PasswordStep, PasswordView, Stored
from providers.external.client import NO_ENDPOINT, Endpoint, Target
from providers.external.consent import NONE_GIVEN, Consent
from providers.external.credential import Login
from providers.external.diff import diff
from providers.external.observation import Change, Found, Keys, Marks, Observation, Observed, Present, SpecT, digest
from providers.external.provider import Account, Kind
from providers.external.spec import Envelope
from providers.managed.attempts import NOTHING_TRIED, Attempts
from providers.managed.plan import Plan
from providers.managed.record import Intent
from runtime import kubectl
from runtime.objects import Object, status_of

_NO_ENVELOPE = Envelope(for_provider=None)


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How the object stands in Kubernetes.

    `held` tells whether our finalizer is on it, `policy` what its deletion means (None: a claim's word is awaited).
    `withheld` says why that word destroys nothing, empty when it may; `since` is when the deletion was asked for.
    """

    deleting: bool = False
    held: bool = False
    policy: Policy | None = Policy.ORPHAN
    paused: str = ""
    withheld: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Inputs(Generic[SpecT]):
    """All that one decision looks at: what is asked for, seen, remembered, allowed by others, and tried before.

    `changes` is the whole difference, what the provider guards included.

    Of what others allow (the ProviderConfig, the account, the clock's windows) each text is empty when there is nothing
    to object, else the sentence for people. `eventual`: what was just made may not be seen at once. `stateful`: nothing
    is made in the place of what was lost. `backups` are those that a lost one may be restored from, the newest first,
    None where they could not be listed.

    `passwords` is what the decision about the password looks at, None where there is none to be made; `step` is what
    was decided, `trouble` why that cannot be told. `logins` are the names that may be logins, and `foreign` the keys of
    the credentials Secret that somebody else wrote, which are not in `stored`. `namespace` is the object's.
    """

    target: Target[SpecT]
    observation: Observation[SpecT]
    marks: Marks
    now: datetime
    spec_hash: str = ""
    generation: int = 0
    lifecycle: Lifecycle = Lifecycle()
    consent: Consent = NONE_GIVEN
    observe_only: bool = False
    correct_drift: bool = False
    apply_now: bool = False
    changes: tuple[Change, ...] = ()
    observed_hash: str = ""

    not_allowed: str = ""
    account_changed: str = ""
    limit_reached: str = ""
    brake: str = ""
    refusal: tuple[str, str] | None = None
    takeover: str = ""
    adoption: bool = False
    window_open: bool = False
    predecessors: tuple[Found, ...] = ()
    backup: str = ""
    backups: tuple[str, ...] | None = None
    grace: timedelta = timedelta(seconds=60)
    settle: timedelta = timedelta(seconds=60)
    intent_until: datetime | None = None
    intent_unknown: str = ""
    delete_intended: bool = False
    operating: str = ""
    translator: int = 1
    eventual: bool = False
    stateful: bool = True
    attempts: Attempts = NOTHING_TRIED

    obj: Object = field(default_factory=dict)
    envelope: Envelope = _NO_ENVELOPE
    account: Account[SpecT, Any] | None = None
    namespace: Object = field(default_factory=dict)
    intent: Intent | None = None
    resolved: Mapping[str, str] = field(default_factory=dict)

    stored: Stored | None = None
    passwords: PasswordView | None = field(default=None, repr=False)
    step: PasswordStep = field(default=Keep(), repr=False)
    trouble: tuple[str, str] | None = None
    logins: tuple[str, str] = ("", "")
    foreign: tuple[str, ...] = ()
    login: Login = Login.NOT_TRIED
    given: str = field(default="", repr=False)

    @property
    def observed(self) -> Observed[SpecT] | None:
        """The database as it was seen, None when it was not."""
        match self.observation:
            case Present(observed=observed):
                return observed
            case _:
                return None

    @property
    def noun(self) -> str:
        """What people call what is made: `database`, or the kind where it holds no data."""
        return "database" if self.stateful else str(self.obj["kind"])

    @property
    def deadline(self) -> timedelta | None:
        """What the cloud's present state may take; None where none is seen."""
        if self.observed is not None:
            return self.observed.deadline
        # The final backup of what is gone takes as long as there are data.
        is_kept = self.lifecycle.deleting and self.lifecycle.policy is Policy.SNAPSHOT and self.delete_intended
        return timedelta(days=1) if is_kept else None

    @property
    def endpoint(self) -> Endpoint:
        """How an application reaches the database; without a host where nothing is known, or nobody logs in."""
        logins = self.account.clients.logins if self.account is not None else None
        return NO_ENDPOINT if logins is None else logins.endpoint(self.target)

    def consent_command(self, *entries: str) -> str:
        """Return the command that agrees to these entries (`<path>=<value>`) beside those that are there already."""
        paths = {entry.partition("=")[0] for entry in entries}
        present = tuple(f"{path}={value}" for path, value in self.consent.values if path not in paths & {"restore"})
        others = any(path != "adopt" for path, _ in self.consent.used)
        value = ",".join(dict.fromkeys((*present, *entries)))
        return kubectl.annotate(self.target.address, CONSENT, value, overwrites=bool(self.consent.values) or others)

    def adopt_command(self, incarnation: str) -> str:
        """Return the command that has a database taken over."""
        before = self.consent.adopt or any(path == "adopt" for path, _ in self.consent.used)
        return kubectl.annotate(self.target.address, ADOPT, incarnation, overwrites=bool(before))


class Decision(NamedTuple):
    """What to do in one pass: the plan, the password's step beside it, and what is remembered of attempts after it."""

    plan: Plan
    step: PasswordStep
    attempts: Attempts


def with_differences(kind: Kind[SpecT], inputs: Inputs[SpecT]) -> Inputs[SpecT]:
    """Return the inputs with all that differs between what is asked for and what was seen."""
    if inputs.observed is None:
        return inputs
    changes = differences(kind, inputs.envelope, inputs.target, inputs.observed, inputs.marks.applied_keys)
    return replace(inputs, changes=changes, observed_hash=digest(inputs.observed.spec))


def differences(
    kind: Kind[SpecT], envelope: Envelope, target: Target[SpecT], observed: Observed[SpecT], applied: Keys
) -> tuple[Change, ...]:
    """Return all that differs, each change in its class; `applied` are keys that the spec set before."""
    asked = diff(target.spec, observed.spec, ignore=envelope.ignore_fields, applied=applied)
    return tuple(kind.classify(change, observed) for change in (*asked, *kind.guarded(target, observed)))


def proven_versions(obj: Object) -> dict[str, str]:
    """Return the row versions of the logins at which their passwords were last proven."""
    logins = (status_of(obj).get("atProvider") or {}).get("logins") or ()
    return {str(login.get("name")): str(login.get("version", "")) for login in logins}
