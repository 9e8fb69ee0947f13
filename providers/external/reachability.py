"""Which endpoints gave no answer a moment ago: for a while nobody waits for them again.

Memory of one process, shared by all who connect to the databases of an account. A restart begins with none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer, TryLogin
from providers.external.endpoint import Endpoint
from providers.external.login import try_login
from runtime import clock

REMEMBERED = timedelta(minutes=1)


class Reachability:
    """Remembers the endpoints that gave no answer, each for `remembered`, by host, port and database."""

    def __init__(
        self,
        connect: TryLogin = try_login,
        *,
        remembered: timedelta = REMEMBERED,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._connect = connect
        self._remembered = remembered
        self._monotonic = monotonic
        self._unreachable_until: dict[tuple[str, int, str], float] = {}

    def is_unreachable(self, endpoint: Endpoint) -> bool:
        """Return whether an endpoint gave no answer a moment ago."""
        return self._unreachable_until.get(_key(endpoint), float("-inf")) > self._monotonic()

    def record(self, endpoint: Endpoint, *, is_reached: bool) -> None:
        """Record whether an endpoint answered."""
        if is_reached:
            self.forget(endpoint)
        else:
            self._unreachable_until[_key(endpoint)] = self._monotonic() + self._remembered.total_seconds()

    def forget(self, endpoint: Endpoint) -> None:
        """Connect to an endpoint at the next occasion, whatever was recorded."""
        self._unreachable_until.pop(_key(endpoint), None)

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try a login unless the endpoint is known to be unreachable, and record whether it answered."""
        if self.is_unreachable(endpoint):
            return NO_ANSWER
        answer = await self._connect(endpoint, credential)
        self.record(endpoint, is_reached=answer.login is not Login.UNKNOWN or bool(answer.code))
        return answer


def _key(endpoint: Endpoint) -> tuple[str, int, str]:
    return endpoint.host, endpoint.port, endpoint.database
