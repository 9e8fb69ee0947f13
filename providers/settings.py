"""The settings of a provider process, and its clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one provider process.

    `process` names it in intents, `namespace` is its own. `call_budget` bounds when the calls of an intent may start,
    `skew` is how much clocks may differ. `takeover` is why nothing may be changed after the cluster was restored.
    `rotation_grace` is how long a former login works after a rotation, `forced_grace` after a forced one.
    `settle` is how long an asynchronous cloud may show nothing of a change that it accepted, `pass_limit` how long a
    pass may take.
    `now` is the wall clock, `monotonic` orders what was asked, in seconds that never go back.
    `endpoints` are the hosts that a ProviderConfig may name instead of the cloud's own.
    """

    installation: str
    process: str
    namespace: str
    manager: str
    hash_key: bytes = field(repr=False)
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    takeover: str = ""
    endpoints: tuple[str, ...] = ()
    grace: timedelta = timedelta(seconds=60)
    call_budget: timedelta = timedelta(seconds=20)
    skew: timedelta = timedelta(seconds=5)
    rotation_grace: timedelta = timedelta(hours=1)
    forced_grace: timedelta = timedelta(minutes=1)
    settle: timedelta = timedelta(seconds=60)
    sweep: timedelta = timedelta(seconds=30)
    resync: timedelta = timedelta(minutes=10)
    pass_limit: timedelta = timedelta(seconds=100)
