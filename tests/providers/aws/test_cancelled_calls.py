"""A pass that is cancelled while one of its calls is in a thread."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from providers.aws.account import AwsAccount
from providers.external.client import Fence

pytestmark = pytest.mark.rds

_ARN = "arn:aws:rds:eu-west-1:123456789012:db:orders"


async def test_a_change_that_is_about_to_be_sent_is_waited_for(account: AwsAccount) -> None:
    is_checked, may_end = threading.Event(), threading.Event()

    def leads() -> bool:
        is_checked.set()
        may_end.wait(60)
        return False

    fence = Fence(float("inf"), leads, time.monotonic)
    call = asyncio.create_task(
        account.call("remove_tags_from_resource", "untag", fence=fence, ResourceName=_ARN, TagKeys=["team"])
    )
    await asyncio.to_thread(is_checked.wait)
    call.cancel()
    done, _ = await asyncio.wait((call,), timeout=0.2)
    may_end.set()

    assert done == set()
    with pytest.raises(asyncio.CancelledError):
        await call
