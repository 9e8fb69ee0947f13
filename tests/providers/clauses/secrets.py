"""Of secrets: no password is in a status, an event, a log or an error."""

from __future__ import annotations

import base64

from structlog.testing import capture_logs

from runtime.objects import SECRETS
from tests.providers.adapter import Adapter, Mode, Property, clause

_MODES: tuple[Mode, ...] = ("refused", "invalid", "unanswered")


@clause(Property.LOGINS)
async def password_is_in_no_status_event_log_or_error(cloud: Adapter) -> None:
    passwords, errors = set(), []
    with capture_logs() as logs:
        cloud.ask()
        for mode in _MODES:
            cloud.fail("create", mode)
            for _ in range(3):
                errors.append(repr(await cloud.world.step()))
                passwords |= _passwords(cloud)
        cloud.heal()
        cloud.world.annotate(**{"reconcile-requested-at": "now"})
        await cloud.until_ready()
        cloud.fail("password", "refused")
        cloud.ask(passwordRotation={"token": "1"})
        for _ in range(10):
            await cloud.step()
            passwords |= _passwords(cloud)
    public = repr([obj for (kind, _), obj in cloud.kube.objects.items() if kind != SECRETS])
    events = repr(list(cloud.world.events._waiting))
    said = "\n".join((public, events, repr(logs), *errors))
    assert len(passwords) >= 2
    assert [password for password in passwords if password in said] == []


def _passwords(cloud: Adapter) -> set[str]:
    """Return the passwords that the credentials Secret holds now."""
    data = (cloud.secret() or {}).get("data", {})
    return {base64.b64decode(data[key]).decode() for key in ("current", "pending") if data.get(key)}
