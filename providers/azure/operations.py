"""Operations of ARM: what a call leaves behind, and how it ended. Impure: it calls the SDK, and reads the clock.

"Track asynchronous Azure operations": a 202 carries a URL in Azure-AsyncOperation, which answers 200 with `status` and,
of one that failed, `error`. The URL is all that is remembered; it is signed, and 3,206 characters long in recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from providers.azure.arm import Answer, AzureAccount
from providers.azure.config import is_of
from providers.azure.errors import Refused, failure_of, is_busy, pause, refused
from providers.external.client import Operation, PushedAside
from runtime import clock

LONGEST_URL = 4096
"""How many characters `status.operation.id` takes; a test compares it with the CRDs."""
_OK = 200
_GONE = frozenset({404, 410})
_RUNNING_LEAST = timedelta(0)
_MOST_REMEMBERED = 5000
_FAILED = frozenset({"failed", "canceled", "cancelled"})


def operation_of(answer: Answer, kind: str, endpoint: str) -> Operation | None:
    """Return the operation that an answer began; None where it was carried out at once, or has no handle of ARM's.

    Then the server's own state says when it is done.
    """
    url = answer.headers.get("Azure-AsyncOperation", "")
    if not url or len(url) > LONGEST_URL or not is_of(url, endpoint):
        return None
    return Operation(url, kind)


def outcome_of(status: str, refusal: Refused, kind: str) -> bool:
    """Return whether an operation has ended well, by the `status` of its answer in any letter case.

    Raises:
        PushedAside: Another change pushed it aside (ServerIsBusy, OperationCancelled, InternalServerError), or it
            failed with a code of no known class: it has ended, and is sent again ever more slowly.
        Terminal, Blocked: It failed for a reason that does not pass.
    """
    if status.lower() == "succeeded":
        return True
    if status.lower() not in _FAILED:
        return False
    failure = failure_of(refusal, f"{kind.lower()} it: ARM accepted the call, and its operation failed")
    if not refusal.code or is_busy(refusal) or not hasattr(failure, "reason"):
        raise PushedAside(str(failure))
    raise failure


class ArmOperations:
    """Operations of one subscription.

    `not_before` is when each URL may be asked again, as Retry-After said. It saves calls; without it the same happens.
    """

    def __init__(self, account: AzureAccount, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._account = account
        self._monotonic = monotonic
        self._not_before: dict[str, float] = {}

    async def poll(self, operation: Operation) -> bool:
        """Return whether an operation has ended; a URL of another host gets no token, and ended.

        Raises:
            Terminal, Blocked: It failed.
            Failure: Nothing was learnt.
        """
        url = operation.id
        if not is_of(url, self._account.endpoint):
            return True
        if self._not_before.get(url, float("-inf")) > self._monotonic():
            return False
        answer = await self._account.ask(url, "ask how far an operation is", also=_GONE)
        if answer.status in _GONE:
            self._not_before.pop(url, None)
            return True
        body = answer.body if isinstance(answer.body, dict) else {}
        status = str(body.get("status") or "")
        if answer.status != _OK or not outcome_of(status, refused(_OK, body, {}), operation.kind):
            self._remember(url, answer.headers.get("Retry-After", ""))
            return False
        self._not_before.pop(url, None)
        return True

    def _remember(self, url: str, retry_after: str) -> None:
        if len(self._not_before) >= _MOST_REMEMBERED:
            self._not_before.clear()
        self._not_before[url] = self._monotonic() + pause(retry_after, _RUNNING_LEAST).total_seconds()
