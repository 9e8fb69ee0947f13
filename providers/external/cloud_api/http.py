"""Requests over aiohttp that are sent once. Impure: it sets up a session."""

from __future__ import annotations

import aiohttp


def without_resending(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """Return the session, set to send each request once.

    By itself aiohttp sends an idempotent request (PUT and DELETE among them) again where a connection that was used
    before breaks: behind every fence, and after a successor may have begun. It has no public name for this.
    """
    session._retry_connection = False  # noqa: SLF001 - as said above; tests of each cloud see it come back
    return session
