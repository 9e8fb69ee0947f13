"""The operations of a project, read into its log. Impure: it sends requests."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from providers.gcp.account import GcpAccount
from providers.gcp.operations import Entry, entry_of
from runtime import clock

_MOST_PAGES: Final = 20


async def read_operations(account: GcpAccount) -> None:
    """Read the project's operations since the last time, the newest first, and how those ended that were open.

    Raises:
        Failure: The list was refused; what was known before stands.
    """
    began = clock.now()
    until = covers = account.log.reads_until(began)
    read: list[Entry] = []
    count = 0
    async with aclosing(account.pages("operations.list", "list the project's operations")) as pages:
        async for page in pages:
            entries = [entry for entry in map(entry_of, page.items) if entry is not None]
            read += entries
            count += 1
            if entries and max(entry.at for entry in entries) < until and not account.log.lacks(read):
                break
            if count == _MOST_PAGES:
                # What is older than the last one is not known: what was seen before is looked at again.
                covers = min((entry.began for entry in read), default=began)
                break
    account.log.record(read, began, covers=covers)
