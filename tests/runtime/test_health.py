import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from runtime import metrics
from runtime.health import Health, serve_health


async def answer_to(port: int, request: bytes) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/healthz", 200, "[+] queues: ok"),
        ("/readyz", 503, "[-] lists: no complete list yet of Widget"),
        ("/metrics", 200, "# TYPE workqueue_depth gauge"),
        ("/elsewhere", 404, "/healthz"),
    ],
)
async def test_each_path_has_its_answer(path: str, status: int, message: str) -> None:
    health = Health(live={"queues": lambda: None}, ready={"lists": lambda: "no complete list yet of Widget"})
    server = await serve_health(health, host="127.0.0.1", port=0)
    port = server.sockets[0].getsockname()[1]
    code, body = await answer_to(port, f"GET {path}?verbose HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    strange, _ = await answer_to(port, b"\x00\xff nonsense\r\n\r\n")
    server.close()
    await server.wait_closed()

    assert code == status
    assert message in body
    assert strange == 404


@dataclass
class Served:
    """A server on a free port, a clock of its own, and how often its checks ran."""

    now: float = 0.0
    checks_run: int = 0
    port: int = 0

    def check(self) -> None:
        self.checks_run += 1


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    health = Health(live={"counted": made.check}, ready={})
    server = await serve_health(health, host="127.0.0.1", port=0, monotonic=lambda: made.now)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


async def test_metrics_are_computed_once_a_second_however_often_they_are_asked_for(served: Served) -> None:
    request = b"GET /metrics HTTP/1.1\r\n\r\n"
    answers = {(await answer_to(served.port, request))[1] for _ in range(20)}
    assert served.checks_run == 1
    assert len(answers) == 1

    served.now += 1.0
    await answer_to(served.port, request)
    assert served.checks_run == 2


async def test_a_probe_is_answered_however_many_idle_connections_there_are(served: Served) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(100)]

    code, _ = await answer_to(served.port, b"GET /healthz HTTP/1.1\r\n\r\n")

    # The oldest gave way: 32 places, one of which the probe had.
    ends = await asyncio.gather(*(_end(reader) for reader, _ in idle[:69]))
    assert code == 200
    assert ends == [True] * 69
    assert not any(reader.at_eof() for reader, _ in idle[69:])
    for _, writer in idle:
        writer.close()


async def test_an_idle_connection_and_one_that_takes_no_answer_are_closed(served: Served) -> None:
    idle, idle_writer = await asyncio.open_connection("127.0.0.1", served.port)
    begun, begun_writer = await asyncio.open_connection("127.0.0.1", served.port)
    begun_writer.write(b"GET /metrics HTTP/1.1\r\n")

    assert await _end(idle)
    assert await _end(begun)
    idle_writer.close()
    begun_writer.close()


async def test_a_line_without_an_end_is_not_kept(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"GET /" + b"a" * 100_000)

    assert await _end(reader)
    writer.close()


async def _end(reader: asyncio.StreamReader) -> bool:
    """Wait until the server has closed a connection without an answer."""
    try:
        return await asyncio.wait_for(reader.read(), 60.0) == b""
    except ConnectionError:
        return True


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
