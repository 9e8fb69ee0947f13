"""The comparison of recorded exchanges: an equal one passes, each kind of difference is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.devcloud.gcp.conftest import Cloud
from tests.devcloud.gcp.exchanges import Exchange, Recording, Replay, recordings

API = "https://sqladmin.googleapis.com/sql/v1beta4/projects/${projectId}"
OPERATION = {
    "insertTime": "2024-04-01T12:34:56.123456Z",
    "kind": "sql#operation",
    "name": "${operationID}",
    "operationType": "CREATE",
    "selfLink": f"{API}/operations/${{operationID}}",
    "status": "PENDING",
    "targetId": "kept-${uniqueId}",
    "targetLink": f"{API}/instances/kept-${{uniqueId}}",
    "targetProject": "${projectId}",
    "user": "user@example.com",
}
CREATE = Exchange(
    "POST",
    f"{API}/instances?alt=json",
    {
        "databaseVersion": "POSTGRES_16",
        "name": "kept-${uniqueId}",
        "region": "us-central1",
        "settings": {"tier": "db-f1-micro", "edition": "ENTERPRISE"},
    },
    200,
    OPERATION,
    "create",
)
ABSENT_ERROR = {
    "error": {
        "code": 404,
        "errors": [
            {
                "domain": "global",
                "message": "The Cloud SQL instance does not exist.",
                "reason": "instanceDoesNotExist",
            }
        ],
        "message": "The Cloud SQL instance does not exist.",
    }
}
ABSENT = Exchange("GET", f"{API}/instances/none?alt=json", {}, 404, ABSENT_ERROR, "absent")
ENDED = Exchange(
    "GET",
    f"{API}/operations/${{operationID}}?alt=json",
    {},
    200,
    {**OPERATION, "status": "DONE", "startTime": "t", "endTime": "t"},
    "ended",
)


def lines(cloud: Cloud, *exchanges: Exchange) -> list[str]:
    return list(Replay(cloud).differences(Recording("a recording", exchanges)))


def test_equal_exchanges_pass(cloud: Cloud) -> None:
    assert lines(cloud, ABSENT, CREATE, ENDED) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": {**OPERATION, "status": "RUNNING"}}, ".status is 'PENDING', was 'RUNNING'"),
        ({"answer": {**OPERATION, "more": 1}}, ".more is missing"),
        ({"answer": {**OPERATION, "user": 5}}, ".user is str, was int"),
        ({"status": 409}, "HTTP status: 200, was 409"),
    ],
)
def test_unequal_exchange_is_noticed(change: dict[str, Any], says: str, cloud: Cloud) -> None:
    (line,) = lines(cloud, msgspec.structs.replace(CREATE, **change))

    assert says in line


def test_file_is_read_into_its_exchanges(tmp_path: Path) -> None:
    (tmp_path / "x.http.log").write_text(
        f'GET {API}/instances/a?alt=json\nUser-Agent: x\n\n404 Not Found\nServer: ESF\n\n{{\n  "error": {{}}\n}}\n\n'
        f'---\n\nPOST {API}/instances\nContent-Type: application/json\n\n{{\n  "name": "a"\n}}\n\n'
        '200 OK\nServer: ESF\n\n{\n  "status": "PENDING"\n}\n'
    )
    (tmp_path / "other.http.log").write_text("GET https://compute.googleapis.com/x\n\n200 OK\n")

    (recording,) = recordings(tmp_path)

    assert [(item.method, item.status, item.request, item.answer) for item in recording.exchanges] == [
        ("GET", 404, {}, {"error": {}}),
        ("POST", 200, {"name": "a"}, {"status": "PENDING"}),
    ]
