"""Create an object whose former create may have been cut off."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from providers.external.client import ExternalClient, Target
from providers.external.cloud_api.refusals import AlreadyThere
from providers.external.observation import Absent, FactsT, SpecT
from runtime.errors import Transient

AnswerT = TypeVar("AnswerT")


async def created(
    call: Awaitable[AnswerT], client: ExternalClient[SpecT, FactsT], target: Target[SpecT], shown: str
) -> AnswerT | None:
    """Return the answer of a create; None where the object is there and ours, as an interrupted create made it.

    `shown` is what people call the object: `instance fl-orders`.

    Raises:
        AlreadyThere: Another's object has the name.
        Transient: It is there, and observations do not show it yet.
    """
    try:
        return await call
    except AlreadyThere as refused:
        observation = await client.observe(target)
        if isinstance(observation, Absent):
            raise Transient(f"{shown} is there and not shown yet") from None
        if not target.owner.owns(observation.observed.owner):
            raise refused from None
    return None
