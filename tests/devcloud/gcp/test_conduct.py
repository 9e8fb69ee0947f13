"""Faults, quota, lag, regions out of reach, losses behind the API's back, the log, pages, a restart."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

import pytest

from devcloud.gcp.server import Options, running
from tests.devcloud.gcp.conftest import QUICK, Cloud, Json, cloud_of, fetch, query
from tests.support.simulator_control import headers_of


def names(cloud: Cloud, **parameters: object) -> list[str]:
    return [item["name"] for item in cloud.call("GET", f"instances{query(**parameters)}").body.get("items", [])]


def steer(cloud: Cloud, body: Json, name: str = "db-1") -> None:
    cloud.control("POST", f"instances/{cloud.served.project}/{name}", body)


def test_region_out_of_reach_is_a_warning_in_an_answer_of_200(cloud: Cloud) -> None:
    cloud.created("db-1", region="europe-west1")
    cloud.created("db-2", region="us-central1")
    cloud.control("POST", "behaviour", {"unreachable_regions": ["us-central1"]})

    reply = cloud.call("GET", "instances")

    assert (reply.status, names(cloud)) == (200, ["db-1"])
    (warning,) = reply.body["warnings"]
    assert (warning["code"], warning["region"]) == ("REGION_UNREACHABLE", "us-central1")
    assert cloud.look("db-2")["name"] == "db-2"


@pytest.mark.parametrize("status", [429, 403])
def test_calls_beyond_the_quota_are_refused_reads_and_writes_together(status: int, cloud: Cloud) -> None:
    quota = {"per_minute": 0.001, "burst": 2, "status": status}
    cloud.control("POST", "behaviour", {"quota": quota})

    assert cloud.call("GET", "instances").status == 200
    assert cloud.insert().status == 200
    reply = cloud.call("GET", "instances")
    assert reply.refusal == (status, "rateLimitExceeded")
    assert "Queries per minute per user" in reply.message
    assert "project_number:123456789012" in reply.message
    assert reply.body["error"]["details"][0]["reason"] == "RATE_LIMIT_EXCEEDED"


def test_setting_that_is_dropped_is_never_shown_and_absence_may_be_a_missing_permission(cloud: Cloud) -> None:
    cloud.control("POST", "behaviour", {"dropped_settings": ["edition"]})

    assert "edition" not in cloud.created(edition="ENTERPRISE")["settings"]
    cloud.done(cloud.patch({"settings": {"edition": "ENTERPRISE"}}))
    assert "edition" not in cloud.look()["settings"]

    cloud.control("POST", "behaviour", {"forbidden_when_gone": ["db-*"]})

    assert cloud.look()["name"] == "db-1"
    cloud.done(cloud.call("DELETE", "instances/db-1"))
    assert cloud.call("GET", "instances/db-1").refusal == (403, "notAuthorized")
    assert cloud.call("GET", "instances/other").refusal == (404, "instanceDoesNotExist")
    assert names(cloud) == []


def test_lists_and_gets_lag(cloud: Cloud) -> None:
    # A name of its own: what was there long ago under another one shows as well.
    cloud.created("late-1")
    cloud.control("POST", "behaviour", {"list_lag_s": 1000, "get_lag_s": 500})

    assert "late-1" not in names(cloud)
    assert cloud.call("GET", "instances/late-1").refusal == (404, "instanceDoesNotExist")
    cloud.advance(501)
    assert "late-1" not in names(cloud)
    assert cloud.look("late-1")["state"] == "RUNNABLE"
    cloud.advance(500)
    assert names(cloud) == ["late-1"]


def test_list_comes_in_pages_and_filtered(cloud: Cloud) -> None:
    for name in ("db-1", "db-2", "db-3"):
        cloud.done(cloud.insert(name, userLabels={"team": name}))

    first = cloud.call("GET", f"instances{query(maxResults=2)}").body
    assert [item["name"] for item in first["items"]] == ["db-1", "db-2"]
    second = cloud.call("GET", f"instances{query(maxResults=2, pageToken=first['nextPageToken'])}").body
    assert [item["name"] for item in second["items"]] == ["db-3"]
    assert "nextPageToken" not in second
    assert names(cloud, filter="settings.userLabels.team:db-2 AND state:RUNNABLE") == ["db-2"]
    for parameters in ({"pageToken": "x"}, {"maxResults": "x"}, {"filter": "x"}):
        assert cloud.call("GET", f"instances{query(**parameters)}").refusal == (400, "invalid")


def test_fault_before_and_after_the_effect(cloud: Cloud) -> None:
    cloud.control("POST", "faults", {"action": "instances.insert", "code": "serverException"})
    assert cloud.insert().refusal == (503, "serverException")
    assert names(cloud) == []

    cloud.control("POST", "faults", {"action": "instances.insert", "kind": "drop", "identifier": "db-*"})
    with pytest.raises((http.client.HTTPException, OSError)):
        cloud.insert()

    assert names(cloud) == ["db-1"]
    calls = [(entry["action"], entry["outcome"], entry["mutating"]) for entry in cloud.control("GET", "audit")]
    assert calls == [
        ("instances.insert", "serverException", True),
        ("instances.list", "ok", False),
        ("instances.insert", "dropped", True),
        ("instances.list", "ok", False),
    ]


def test_log_has_no_password_and_a_reset_drops_instances_operations_and_conduct(cloud: Cloud) -> None:
    cloud.created()
    cloud.call("POST", "instances/db-1/users", {"name": "app", "password": "secret-pass"})
    url = f"{cloud.served.url}/_control/audit"

    log = str(fetch(url, "GET", None, headers_of(cloud.served.control_token)).body)

    assert "'rootPassword': '****'" in log
    assert "'password': '****'" in log
    assert "secret-pass" not in log
    assert "first-pass" not in log

    cloud.control("POST", "behaviour", {"list_lag_s": 60})

    cloud.control("POST", "reset")

    assert names(cloud) == cloud.control("GET", "operations") == []
    assert cloud.control("GET", "behaviour")["list_lag_s"] == 0


def test_somebody_else_changes_an_instance(cloud: Cloud) -> None:
    before = cloud.created()
    steer(cloud, {"set": {"settings": {"tier": "db-custom-2-7680"}}})
    steer(cloud, {"grow": 25})
    steer(cloud, {"rotate": True})
    steer(cloud, {"state": "SUSPENDED", "suspensionReason": ["BILLING_ISSUE"]})

    after = cloud.look()
    assert (after["settings"]["tier"], after["settings"]["dataDiskSizeGb"]) == ("db-custom-2-7680", "25")
    assert after["settings"]["settingsVersion"] == "2"
    assert (after["state"], after["suspensionReason"]) == ("SUSPENDED", ["BILLING_ISSUE"])
    stale = {"settings": {"settingsVersion": before["settings"]["settingsVersion"]}}
    steer(cloud, {"state": "RUNNABLE"})
    assert cloud.patch(stale).refusal == (412, "staleData")


def test_robot_takes_labels_off_an_instance_vanishes_and_another_takes_its_name(cloud: Cloud) -> None:
    cloud.created(userLabels={"fairlead-claim": "a", "team": "b"})
    cloud.control("POST", "behaviour", {"tag_robot": {"strip": ["fairlead-*"], "every_s": 0.001}})
    cloud.advance(1)

    first = cloud.look()
    assert first["settings"]["userLabels"] == {"team": "b"}

    steer(cloud, {"replace": True})

    other = cloud.look()
    assert other["createTime"] != first["createTime"]
    assert other["settings"]["userLabels"] == {}
    steer(cloud, {"vanish": True})
    assert cloud.call("GET", "instances/db-1").refusal == (404, "instanceDoesNotExist")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "instances/fairlead-devcloud/none", {"vanish": True}),
        ("POST", "backups/fairlead-devcloud/1", {"vanish": True}),
        ("POST", "bindings", {"who": "x"}),
        ("POST", "behaviour", {"quota": {"status": 500}}),
        ("DELETE", "keys/none", None),
        ("POST", "operations", {"colour": "red"}),
        ("DELETE", "operations/none", None),
        ("PATCH", "operations", {}),
        ("PATCH", "faults", {}),
        ("POST", "nothing", {}),
    ],
)
def test_control_call_that_makes_no_sense_is_refused(method: str, path: str, body: Json | None, cloud: Cloud) -> None:
    with pytest.raises(AssertionError, match="400"):
        cloud.control(method, path, body)


def test_restarted_simulator_goes_on(tmp_path: Path) -> None:
    options = Options(durations=QUICK, state=tmp_path / "state.json")
    with running(options) as served:
        cloud = cloud_of(served)
        shown = cloud.created(userLabels={"team": "a"})
        cloud.done(cloud.call("POST", "instances/db-1/databases", {"name": "app"}))
        cloud.done(cloud.call("POST", "instances/db-1/backupRuns", {}))
        cloud.created("db-2")
        cloud.done(cloud.call("DELETE", "instances/db-2"))
        cloud.at_real_length()
        open_operation = cloud.patch({"settings": {"tier": "db-custom-2-7680"}}).body
        # It runs, so that its end is known.
        cloud.advance(5)
        token = cloud.token

    with running(options) as served:
        again = Cloud(served, token)
        assert again.look() == shown
        assert again.patch({"settings": {}}).refusal == (409, "operationInProgress")
        assert again.insert("db-2").refusal == (409, "instanceAlreadyExists")
        assert again.call("GET", "instances/db-1/databases/app").status == 200
        assert len(again.call("GET", "instances/db-1/backupRuns").body["items"]) == 1
        again.advance(1000)
        assert again.call("GET", f"operations/{open_operation['name']}").body["status"] == "DONE"
        assert again.look()["settings"]["tier"] == "db-custom-2-7680"


def test_key_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    options = Options(key_file=path, state=tmp_path / "state.json")
    with running(options) as served:
        first = path.read_text()
        assert f"{served.url}/token" in first
    with running(options):
        assert path.read_text() == first
    # Another process that kept nothing knows no key: one that does not count is written anew.
    with running(Options(key_file=path)) as served:
        present, former = json.loads(path.read_text()), json.loads(first)
    assert present["private_key_id"] != former["private_key_id"]
    assert present["token_uri"] == f"{served.url}/token"
