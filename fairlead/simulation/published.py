"""What a claim's application has: the connection Secret, and whether the cloud takes its login."""

from __future__ import annotations

import base64

from fairlead.simulation.platform import Platform
from runtime.objects import SECRETS, Key, Object


def secret_of(platform: Platform, obj: Object, name: str) -> dict[str, str]:
    """Return a Secret in the namespace of an object, decoded; empty where there is none."""
    secret = platform.server.find(SECRETS, Key(obj["metadata"]["namespace"], name)) or {}
    return {part: decoded(value) for part, value in (secret.get("data") or {}).items()}


def connection_of(platform: Platform, claim: Object) -> dict[str, str]:
    """Return the connection Secret of a claim, decoded; empty where there is none."""
    return secret_of(platform, claim, str(((claim.get("status") or {}).get("binding") or {}).get("name", "")))


def logs_in(platform: Platform, claim: Object) -> bool:
    """Return whether an application that reads the connection Secret gets into the database now."""
    secret = connection_of(platform, claim)
    user, password, database = (secret.get(part, "") for part in ("username", "password", "database"))
    server = platform.description.server_at(secret.get("host", ""))
    return platform.cloud.admits(server, user, password, database)


def decoded(value: str) -> str:
    """Return a value of a Secret as text."""
    return base64.b64decode(value).decode(errors="replace")
