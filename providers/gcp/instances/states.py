"""What may be done with an instance in which state and for how long, and when its maintenance window opens. Pure.

Resource `instances`, `state` and `suspensionReason`. RUNNABLE is also what an instance says that its owner stopped
(`settings.activationPolicy` NEVER). A state that is not known here is waited out and shown as it is; of one that
google-cloud-sql's messages do not have either, nothing is left but that.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from providers.external.observation import Phase
from providers.external.windows import next_opening
from providers.gcp.instances.facts import Answer, settings_of

RUNNABLE = "RUNNABLE"
STOPPED = "RUNNABLE, stopped"
UNNAMED = "a state that is not known here"
CREATING = "PENDING_CREATE"
_READY = frozenset({RUNNABLE, "ONLINE_MAINTENANCE"})
_FAILED = {
    "FAILED": "delete it, and restore it from a backup",
    "SUSPENDED": "see to the project's billing or to what Google wrote to its owner",
}
_SUSPENDED = {
    "BILLING_ISSUE": "see to the project's billing account",
    "LEGAL_ISSUE": "see to what Google wrote to the project's owner",
    "OPERATIONAL_ISSUE": "see to what Google says of the instance in its console, for example a full disk",
    "KMS_KEY_ISSUE": "have its KMS key enabled and granted to Cloud SQL again",
}
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_DEADLINES = {
    "": timedelta(minutes=10),
    RUNNABLE: timedelta(minutes=10),
    "PENDING_DELETE": _HOUR,
    CREATING: _HOUR,
    "MAINTENANCE": timedelta(minutes=90),
    "REPAIRING": _DAY,
}
ALWAYS, NEVER = "ALWAYS", "NEVER"


def phase_of(state: str, activation: str) -> Phase:
    """Return what a state lets us do, with the activation policy beside it."""
    if state in _READY:
        return Phase.STOPPED if activation == NEVER else Phase.READY
    return Phase.FAILED if state in _FAILED else Phase.BUSY


def usable(state: str, activation: str) -> bool:
    """Return whether logins may work: nobody is served in any other state than these."""
    return state in _READY and activation != NEVER


def what_a_password_lacks(ssl_mode: str | None, connector_enforcement: str | None) -> str:
    """Return by which setting a password is not enough to log in, and what else is needed; empty where it is enough.

    https://cloud.google.com/sql/docs/postgres/admin-api/rest/v1/instances, `sslMode` and `connectorEnforcement`.
    """
    if ssl_mode == "TRUSTED_CLIENT_CERTIFICATE_REQUIRED":
        return (
            f"sslMode {ssl_mode}: a login needs a client certificate, and Fairlead publishes none; set ENCRYPTED_ONLY"
        )
    if connector_enforcement == "REQUIRED":
        return "connectorEnforcement REQUIRED: only Google's connectors log in, and no Secret is one; set NOT_REQUIRED"
    return ""


def is_at_rest(answer: Answer) -> bool:
    """Return whether an instance serves, by an answer about it."""
    activation = str(settings_of(answer).get("activationPolicy", ALWAYS))
    return usable(str(answer.get("state", "")), activation)


def shown(state: str, activation: str) -> str:
    """Return the state for people: Cloud SQL calls a stopped instance RUNNABLE."""
    return STOPPED if state == RUNNABLE and activation == NEVER else state or UNNAMED


def remedy(state: str, activation: str, suspended: tuple[str, ...]) -> str:
    """Return what ends a state in which nobody can use an instance, empty where it ends by itself."""
    if state == RUNNABLE and activation == NEVER:
        return "set activationPolicy to ALWAYS, or start it where it was stopped"
    known = [_SUSPENDED[reason] for reason in suspended if reason in _SUSPENDED]
    return "; ".join(known) or _FAILED.get(state, "")


def deadline(state: str, *, restored: bool) -> timedelta:
    """Return after how long in one state a person should look; a restore takes as long as there are data."""
    if state == CREATING and restored:
        return _DAY
    return _DEADLINES.get(state, _HOUR)


def next_window(day: int, hour: int, now: datetime) -> datetime | None:
    """Return when the weekly window of an hour in UTC opens next: `now` while it is open, None where there is none.

    `day` is 1 (Monday) to 7 (Sunday), 0 for no window, and `hour` 0 to 23, as `settings.maintenanceWindow` has them.
    """
    if not day:
        return None
    return next_opening(timedelta(days=day - 1, hours=hour), _HOUR, now)
