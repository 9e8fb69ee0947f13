"""The closed set of things a pass may do with one resource, and what a decision may look at. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeAlias

from apis import names
from apis.teardown import Policy
from providers.external.consent import NONE_GIVEN, Consent
from providers.external.observation import Change, Found, Marks, Observation, SpecT
from providers.external.ownership import Owner
from runtime import kubectl


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
class Desired(Generic[SpecT]):
    """What one managed resource asks for; `address` is the resource as kubectl takes it, for messages."""

    spec: SpecT
    spec_hash: str
    generation: int
    owner: Owner
    lifecycle: Lifecycle = Lifecycle()
    consent: Consent = NONE_GIVEN
    observe_only: bool = False
    correct_drift: bool = False
    apply_now: bool = False
    address: str = field(kw_only=True)

    def consent_command(self, *entries: str) -> str:
        """Return the command that agrees to these entries (`<path>=<value>`) beside those that are there already."""
        paths = {entry.partition("=")[0] for entry in entries}
        present = tuple(f"{path}={value}" for path, value in self.consent.values if path not in paths & {"restore"})
        others = any(path != "adopt" for path, _ in self.consent.used)
        value = ",".join(dict.fromkeys((*present, *entries)))
        return kubectl.annotate(self.address, names.CONSENT, value, overwrites=bool(self.consent.values) or others)

    def adopt_command(self, incarnation: str) -> str:
        """Return the command that has a database taken over."""
        before = self.consent.adopt or any(path == "adopt" for path, _ in self.consent.used)
        return kubectl.annotate(self.address, names.ADOPT, incarnation, overwrites=bool(before))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What others allow: the ProviderConfig, the account, the clock's windows.

    Each text is empty when there is nothing to object, else the sentence for people. `eventual`: what was just made may
    not be seen at once. `stateful`: nothing is made in the place of what was lost. `backups` are those that a lost one
    may be restored from, the newest first, None where they could not be listed.
    """

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
    intent_until: datetime | None = None
    intent_unknown: str = ""
    delete_intended: bool = False
    operating: str = ""
    translator: int = 1
    eventual: bool = False
    stateful: bool = True


@dataclass(frozen=True, slots=True)
class Scene(Generic[SpecT]):
    """All that one decision looks at; `changes` is the whole difference, what the provider guards included."""

    desired: Desired[SpecT]
    observation: Observation[SpecT]
    marks: Marks
    bounds: Bounds
    now: datetime
    changes: tuple[Change, ...] = field(default=())
    observed_hash: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is done until a person likes to: `reason` says why."""

    reason: str
    message: str
    held: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Fairlead or the cloud has the move; look again after `after`. `quiet` leaves the status as it is."""

    reason: str
    message: str
    after: timedelta
    quiet: bool = False
    held: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """Make the database; `instead_of` names a lost incarnation, `restore` the backup that it begins with.

    Without such a backup the lost one was given up by a person.
    """

    instead_of: str = ""
    restore: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Make `changes` now; `held` wait for their window or for consent, for the cause beside them.

    `queued` are handed to the cloud's own queue, which makes them in the maintenance window.
    """

    changes: tuple[Change, ...]
    held: Rest | Refuse | Wait | None = None
    drift: bool = True
    queued: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopt:
    """Write our tags onto a database that a person named."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Only a person's change can help."""

    reason: str
    message: str
    held: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """Let the database live on without us; `mark` says so in its tags."""

    mark: bool


@dataclass(frozen=True, slots=True)
class Destroy:
    """Take the database away as `policy` says."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing of ours is left in the cloud: let the object go."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not a thing of ours: write nothing at all."""


Plan: TypeAlias = Settled | Rest | Wait | Create | Update | Adopt | Refuse | Release | Destroy | Finish | Ignore
