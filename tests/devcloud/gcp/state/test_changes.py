"""What a change does to sessions, what a patch makes of settings, which tiers there are."""

from __future__ import annotations

from typing import Any

import pytest

from devcloud.gcp.effects import access_of
from devcloud.gcp.state.settings import defaults, merged, settled

BARRED = [{"ipConfiguration": {"sslMode": "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"}}, {"connectorEnforcement": "REQUIRED"}]


@pytest.mark.parametrize("settings", BARRED, ids=str)
def test_a_password_opens_nothing_where_a_certificate_or_a_connector_is_needed(settings: dict[str, Any]) -> None:
    of_all = merged(defaults("ENTERPRISE", "z"), {"ipConfiguration": {"authorizedNetworks": [{"value": "0.0.0.0/0"}]}})
    assert access_of(settled(of_all)).networks
    assert not access_of(settled(merged(of_all, settings))).networks
