"""The replay judges: an exchange that the simulator makes equal passes, one that it does not is noticed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.devcloud.azure.conftest import Arm
from tests.devcloud.azure.exchanges import Exchange, Recording, differences, server_path

VERSION = "api-version=2022-12-01"
HOST = "https://management.azure.com"
OPERATION = (
    f"{HOST}/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.DBforPostgreSQL/locations/uksouth"
)
HANDLE = "2d3d19a9-70e4-4ee8-a6b5-f2683cb67639"
WANTED = {
    "location": "uksouth",
    "name": "recorded",
    "properties": {
        "administratorLogin": "myadmin",
        "administratorLoginPassword": "{PASSWORD}",
        "storage": {"storageSizeGB": 128},
        "version": "13",
    },
    "sku": {"name": "Standard_D4s_v3", "tier": "GeneralPurpose"},
}


def session(arm: Arm) -> list[Exchange]:
    """Return a creation and its polls, as a recording of 2023 has them."""
    url = f"{HOST}{server_path(arm, 'recorded')}?{VERSION}"
    urls = {
        "azure-asyncoperation": f"{OPERATION}/azureAsyncOperation/{HANDLE}?{VERSION}",
        "location": f"{OPERATION}/operationResults/{HANDLE}?{VERSION}",
    }

    def poll(status: str) -> Exchange:
        body = json.dumps({"name": HANDLE, "status": status, "startTime": "2001-02-03T04:05:06Z"})
        return Exchange(
            method="GET",
            url=urls["azure-asyncoperation"],
            request="",
            status=200,
            headers={"retry-after": "60"},
            body=body,
        )

    missing = json.dumps({"error": {"code": "ResourceNotFound", "message": "Not there."}})
    accepted = json.dumps({"operation": "UpsertServerManagementOperationV2", "startTime": "2001-02-03T04:05:06Z"})
    return [
        Exchange(method="GET", url=url, request="", status=404, headers={}, body=missing),
        Exchange(
            method="PUT",
            url=url,
            request=json.dumps(WANTED),
            status=202,
            headers={"retry-after": "60", **urls},
            body=accepted,
        ),
        poll("InProgress"),
        poll("Succeeded"),
    ]


def test_session_that_is_equal_passes(arm: Arm) -> None:
    assert differences(arm, Recording("equal", tuple(session(arm)))) == []


@pytest.mark.parametrize(
    ("index", "changed", "says"),
    [
        (0, {"status": 200}, "status 404, was 200"),
        (0, {"headers": {"x-ms-ratelimit-remaining-subscription-none": "1"}}, "is missing"),
        (1, {"headers": {"retry-after": "10"}}, "Retry-After 60, was 10"),
        (1, {"headers": {"retry-after": "60"}}, "azure-asyncoperation"),
        (2, {"body": json.dumps({"name": "other", "status": "InProgress"})}, "was {'name': 'other'"),
    ],
)
def test_difference_is_noticed(index: int, changed: dict[str, Any], says: str, arm: Arm) -> None:
    exchanges = session(arm)
    exchanges[index] = msgspec.structs.replace(exchanges[index], **changed)

    texts = differences(arm, Recording("other", tuple(exchanges[: index + 1])))

    assert any(says in text for text in texts), texts
