"""ARM's wire: api-versions with shapes of their own, headers, pages, lag, token buckets, locks, faults."""

from __future__ import annotations

from tests.devcloud.azure.conftest import SERVER, Arm

LOCK = "providers/Microsoft.Authorization/locks/keep"


def test_answers_carry_ids_and_what_is_left_of_the_buckets(arm: Arm) -> None:
    headers = {"x-ms-correlation-request-id": "3f0c7d1e-0000-4000-8000-000000000001"}
    read = arm.call("GET", arm.group_path, version="2020-06-01", headers=headers).headers
    write = arm.call("PUT", arm.path(), SERVER).headers
    refused = arm.call("GET", arm.path("none")).headers

    assert read["x-ms-correlation-request-id"] == headers["x-ms-correlation-request-id"]
    assert len({read["x-ms-request-id"], write["x-ms-request-id"], refused["x-ms-request-id"]}) == 3
    assert 200 < int(read["x-ms-ratelimit-remaining-subscription-reads"]) < 250
    assert 16_400 < int(read["x-ms-ratelimit-remaining-subscription-global-reads"]) < 16_500
    assert 190 < int(write["x-ms-ratelimit-remaining-subscription-writes"]) < 200
    assert refused["x-ms-failure-cause"] == "gateway"


def test_requests_beyond_the_bucket_are_refused_reads_writes_and_deletes_apart(arm: Arm) -> None:
    slow = {"read_per_s": 0.01, "write_per_s": 0.01, "delete_per_s": 0.01, "burst": 1, "read_burst": 2}
    arm.control("POST", "reset")
    arm.behave(throttle=slow)
    groups = f"/subscriptions/{arm.served.subscription}/resourceGroups"

    assert [arm.call("GET", groups, version="2020-06-01").status for _ in range(3)] == [200, 200, 429]
    refused = arm.call("GET", groups, version="2020-06-01")
    assert refused.refusal == (429, "SubscriptionRequestsThrottled")
    assert 90 < int(refused.headers["retry-after"]) <= 100
    body = {"location": "uksouth"}
    assert [arm.call("PUT", arm.group_path, body, version="2020-06-01").status for _ in range(2)] == [201, 429]
    assert arm.call("DELETE", arm.path("none")).status == 204
    assert [entry["outcome"] for entry in arm.control("GET", "audit")].count("SubscriptionRequestsThrottled") == 3


def test_read_only_lock_keeps_everything_as_it_is(arm: Arm) -> None:
    arm.created()
    arm.call("PUT", f"{arm.path()}/{LOCK}", {"properties": {"level": "ReadOnly"}}, version="2020-05-01")

    assert arm.patch({}).refusal == (409, "ScopeLocked")
    assert arm.call("POST", arm.path("pg1/stop")).refusal == (409, "ScopeLocked")
    assert arm.child("pg1/databases/app").refusal == (409, "ScopeLocked")
    assert arm.get()["properties"]["state"] == "Ready"
    assert arm.call("GET", f"{arm.path()}/{LOCK}", version="2020-05-01").body["name"] == "keep"
    assert arm.call("PUT", f"{arm.path()}/{LOCK}", {}, version="2020-05-01").refusal == (400, "InvalidLockLevel")
