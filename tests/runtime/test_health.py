import asyncio

import pytest

from runtime import metrics
from runtime.health import Health, serve_health


async def asked(port: int, request: bytes) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/healthz", 200, "[+] queues: ok"),
        ("/readyz", 503, "[-] lists: no complete list yet of Widget"),
        ("/metrics", 200, "# TYPE workqueue_depth gauge"),
        ("/elsewhere", 404, "/healthz"),
    ],
)
async def test_each_path_has_its_answer(path: str, status: int, said: str) -> None:
    health = Health(live={"queues": lambda: None}, ready={"lists": lambda: "no complete list yet of Widget"})
    server = await serve_health(health, host="127.0.0.1", port=0)
    port = server.sockets[0].getsockname()[1]
    code, body = await asked(port, f"GET {path}?verbose HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    strange, _ = await asked(port, b"\x00\xff nonsense\r\n\r\n")
    server.close()
    await server.wait_closed()

    assert code == status
    assert said in body
    assert strange == 404


def test_metrics_have_the_names_that_dashboards_ask_for() -> None:
    text = metrics.exposition().decode()
    wanted = (
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_queue_duration_seconds",
        "workqueue_work_duration_seconds",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "rest_client_requests_total",
        "leader_election_master_status",
    )

    assert [name for name in wanted if f"# TYPE {name} " not in text] == []
    assert "_created" not in text
