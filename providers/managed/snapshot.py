"""What one pass knows, and what follows from it without asking anybody. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic

from apis.teardown import Policy
from providers.credentials.passwords import Keep, PasswordStep, Stored
from providers.external.client import Target
from providers.external.credential import Login
from providers.external.diff import diff
from providers.external.observation import Change, Keys, Observed, Present, SpecT
from providers.external.provider import Account, Provider
from providers.external.spec import Envelope
from providers.managed.plan import Scene
from providers.managed.record import Intent
from runtime.objects import Object, status_of


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[SpecT]):
    """What one pass knows; `namespace` is the object's.

    `step` is what the password needs, `trouble` why that cannot be told. `logins` are the names that may be logins, and
    `foreign` the keys of the credentials Secret that somebody else wrote, which are not in `stored`.
    """

    obj: Object
    envelope: Envelope
    scene: Scene[SpecT]
    target: Target[SpecT]
    account: Account[SpecT, Any] | None = None
    namespace: Object = field(default_factory=dict)
    intent: Intent | None = None
    stored: Stored | None = None
    step: PasswordStep = field(default=Keep(), repr=False)
    trouble: tuple[str, str] | None = None
    logins: tuple[str, str] = ("", "")
    foreign: tuple[str, ...] = ()
    login: Login = Login.NOT_TRIED
    given: str = field(default="", repr=False)
    resolved: Mapping[str, str] = field(default_factory=dict)

    @property
    def observed(self) -> Observed[SpecT] | None:
        """The database as it was seen, None when it was not."""
        match self.scene.observation:
            case Present(observed=observed):
                return observed
            case _:
                return None

    @property
    def noun(self) -> str:
        """What people call what is made: `database`, or the kind where it holds no data."""
        return "database" if self.scene.bounds.stateful else str(self.obj["kind"])

    @property
    def deadline(self) -> timedelta | None:
        """What the cloud's present state may take; None where none is seen."""
        if self.observed is not None:
            return self.observed.deadline
        bounds, lifecycle = self.scene.bounds, self.scene.desired.lifecycle
        # The final backup of what is gone takes as long as there are data.
        is_kept = lifecycle.deleting and lifecycle.policy is Policy.SNAPSHOT and bounds.delete_intended
        return timedelta(days=1) if is_kept else None


def differences(
    provider: Provider[SpecT, Any], envelope: Envelope, target: Target[SpecT], observed: Observed[SpecT], applied: Keys
) -> tuple[Change, ...]:
    """Return all that differs, each change in its class; `applied` are keys that the spec set before. Pure."""
    asked = diff(target.spec, observed.spec, ignore=envelope.ignore_fields, applied=applied)
    return tuple(provider.classify(change, observed) for change in (*asked, *provider.guarded(target, observed)))


def proven_versions(obj: Object) -> dict[str, str]:
    """Return the row versions of the logins at which their passwords were last proven."""
    logins = (status_of(obj).get("atProvider") or {}).get("logins") or ()
    return {str(one.get("name")): str(one.get("version", "")) for one in logins}
