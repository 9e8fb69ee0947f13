"""What a pass reports is decided on the login that it gave a password just now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from providers.credentials.passwords import Kept, Stored
from providers.external.client import Target
from providers.external.observation import Change, ExternalRef, Observed, Phase, Present
from providers.external.ownership import Owner
from providers.managed.decisions.plan import Settled
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, inputs_after
from tests.providers.toy import ToyCloud, ToyParameters, provider_of

OWNER = Owner("home", "uid-1", "claim-1")
SEEN = Observed("db", "one", OWNER, Phase.READY, ToyParameters(), None, {})
TARGET = Target("db", ToyParameters(), OWNER, "hash", active="app_a")


def _shut_logins(target: Target[ToyParameters], _seen: Observed[ToyParameters, None]) -> tuple[Change, ...]:
    """Return what differs where both logins work."""
    working = {target.active, target.coming, target.retiring}
    return tuple(
        Change(("roles", name, "login"), want=False, have=True) for name in ("app_a", "app_b") if name not in working
    )


def test_outcome_of_a_rotation_lets_the_login_work_that_has_its_password_on_the_way() -> None:
    kind = replace(provider_of(ToyCloud()).kinds[0], invariants=_shut_logins)
    now = datetime(2026, 11, 23, tzinfo=UTC)
    inputs = Inputs(TARGET, Present(SEEN), ExternalRef("db", "one", "account"), now, logins=("app_a", "app_b"))
    sent = Stored(Kept(current="1", pending="2", username="app_a"), "uid", "7")

    rotating = inputs_after(kind, inputs, Settled(), Outcome({}, sent, observation=Present(SEEN)))
    assert (rotating.target.coming, rotating.changes) == ("app_b", ())

    kept = Stored(Kept(current="2", username="app_b"), "uid", "8")
    rotated = inputs_after(
        kind, rotating, Settled(), Outcome({}, kept, observation=Present(SEEN), rotated_from="app_a")
    )
    assert (rotated.target.active, rotated.target.coming, rotated.changes) == ("app_b", "", ())
