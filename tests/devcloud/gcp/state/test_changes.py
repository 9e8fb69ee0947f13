"""What a change does to sessions, what a patch makes of settings, which tiers there are."""

from __future__ import annotations

from devcloud.gcp.state.settings import defaults, merged, settled


def test_settings_are_filled_in() -> None:
    sent = {
        "tier": "db-f1-micro",
        "ipConfiguration": {"authorizedNetworks": [{"value": "10.0.0.0/8"}], "sslMode": "ENCRYPTED_ONLY"},
        "insightsConfig": {"queryInsightsEnabled": True},
        "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
    }
    kept = settled(merged(defaults("ENTERPRISE", "z"), sent), ("edition",))

    assert kept["ipConfiguration"]["authorizedNetworks"] == [{"value": "10.0.0.0/8", "kind": "sql#aclEntry"}]
    assert kept["ipConfiguration"]["requireSsl"] is False
    assert kept["insightsConfig"]["queryPlansPerMinute"] == 5
    assert kept["backupConfiguration"]["transactionalLogStorageState"] == "CLOUD_STORAGE"
    assert "edition" not in kept
