"""The proxy that the environment names for a URL, as of curl: HTTPS_PROXY, HTTP_PROXY, NO_PROXY."""

from __future__ import annotations

import urllib.request

from yarl import URL


def proxy_of_environment(url: str) -> str:
    """Return the proxy that HTTPS_PROXY or HTTP_PROXY names, unless NO_PROXY excepts the URL's host; else nothing.

    Asked once a session: the HTTP library's own `trust_env` asks in a thread, twice a request, and obeys a ~/.netrc.
    """
    parsed = URL(url)
    if parsed.host is None or urllib.request.proxy_bypass(parsed.authority):
        return ""
    return urllib.request.getproxies().get(parsed.scheme, "")
