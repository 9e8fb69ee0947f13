"""How requests to ARM and Entra travel: each once, to whoever the right authority vouches for. Impure: it is the SDK's.

azure-core takes the authority as the path of a file alone; here it is the text that a Secret holds.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport

from providers.external.cloud_api.http import without_resending

SECONDS: Final = {"connection_timeout": 5, "read_timeout": 15}
"""How long a connection and an answer may take, by azure-core's names."""
NewTransport: TypeAlias = Callable[[str], AsyncHttpTransport[Any, Any]]
"""Makes what carries requests, from the PEM of the authority of whoever answers."""


class Transport(AioHttpTransport):  # type: ignore[misc]  # exported in a way that hides its type
    """Sends each request once; `ca` is the PEM of the authority of whoever answers, empty for the system's roots."""

    session: aiohttp.ClientSession | None

    def __init__(self, ca: str = "") -> None:
        super().__init__(**SECONDS)
        self._ca = ca

    async def open(self) -> None:
        """Open the session of aiohttp."""
        if self._ca and self.session is None and not self._has_been_opened:
            context = ssl.create_default_context(cadata=self._ca)
            # Apart from the authority as azure-core's own: it reads bodies as they are, and keeps no cookies.
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context),
                trust_env=True,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        await super().open()
        if self.session is not None:
            without_resending(self.session)
