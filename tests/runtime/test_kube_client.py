"""The client against servers that answer badly or not at all, and against credentials that rotate."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from devcloud.certificates import new_authority
from runtime import fence
from runtime.errors import ApiError, Forbidden, NoAnswer, NotLeading
from runtime.kube import Selection
from runtime.kube_client import KubeClient
from runtime.kube_session import SessionSource
from runtime.objects import CONFIG_MAPS, SECRETS, Key, Object
from runtime.preconditions import patch_tests
from tests.runtime.virtual_clock import VirtualClock

KEY = Key("ns", "a")
READ: Object = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}
EVERYTHING = Selection()
HASTE = timedelta(milliseconds=200)
PATIENCE = timedelta(seconds=20)
MINUTE = timedelta(minutes=1)
Script = Callable[[str, asyncio.StreamWriter], None]


@asynccontextmanager
async def server(answer: Script) -> AsyncIterator[int]:
    """Serve one answer per connection; `answer` gets the request's head and may leave the line open."""
    lines: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)
        answer((await reader.readuntil(b"\r\n\r\n")).decode(), writer)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()
    for line in lines:
        line.transport.abort()


@functools.cache
def _authority() -> bytes:
    """Return any: for want of one each client would read the system's two hundred."""
    return new_authority("nobody").pem


def kubeconfig(folder: Path, port: int) -> Path:
    (folder / "token").touch()
    (folder / "ca.pem").write_bytes(_authority())
    path = folder / "kubeconfig"
    cluster = {"server": f"http://127.0.0.1:{port}", "certificate-authority": str(folder / "ca.pem")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"tokenFile": str(folder / "token")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_bytes(msgspec.json.encode(document))
    return path


@asynccontextmanager
async def client(
    folder: Path, port: int, clock: VirtualClock | None = None, *, request_timeout: timedelta = PATIENCE
) -> AsyncIterator[KubeClient]:
    monotonic = (clock or VirtualClock()).monotonic
    sessions = SessionSource(user_agent="me/1", kubeconfig=kubeconfig(folder, port), monotonic=monotonic)
    kube = KubeClient(sessions, request_timeout=request_timeout)
    try:
        yield kube
    finally:
        await kube.close()


def head(status: str, length: int, more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def nothing(_: str, writer: asyncio.StreamWriter) -> None:
    """Leave the line open and say nothing."""
    del writer


def half(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", 1_000) + b'{"metadata":')


def cut(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", 1_000) + b'{"metadata":')
    writer.close()


def reset(_: str, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def answering(body: bytes = b"{}", status: str = "200 OK", seen: list[str] | None = None) -> Script:
    """Return what gives one answer and closes the line; `seen` gets the heads of the requests."""

    def answer(request: str, writer: asyncio.StreamWriter) -> None:
        if seen is not None:
            seen.append(request)
        writer.write(head(status, len(body), "Connection: close\r\n") + body)
        writer.close()

    return answer


def empty(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", 0))


def page_of_a_proxy(_: str, writer: asyncio.StreamWriter) -> None:
    writer.write(head("200 OK", 6) + b"<html>")


@pytest.mark.parametrize("answer", [nothing, half, cut, reset, empty, page_of_a_proxy])
async def test_every_bad_answer_is_no_answer_within_the_time_out(tmp_path: Path, answer: Script) -> None:
    async with server(answer) as port, client(tmp_path, port, request_timeout=HASTE) as kube:
        async with asyncio.timeout(10):
            with pytest.raises(NoAnswer):
                await kube.get(CONFIG_MAPS, KEY)
            with pytest.raises(NoAnswer):
                await kube.list_page(CONFIG_MAPS, EVERYTHING)
            with pytest.raises(NoAnswer):
                await kube.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "ns"}}, manager="m")


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    def redirect(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(head("302 Found", 0, "Location: http://127.0.0.1:1/elsewhere\r\n"))

    async with server(redirect) as port, client(tmp_path, port) as kube:
        with pytest.raises(ApiError) as refusal:
            await kube.get(CONFIG_MAPS, KEY)

    assert refusal.value.status == 302


@pytest.mark.parametrize(
    ("excepted", "target"),
    [
        pytest.param("", "http://127.0.0.1:{server}/api/v1/", id="asked for everything"),
        pytest.param("127.0.0.1", "/api/v1/", id="not asked for what NO_PROXY excepts"),
    ],
)
async def test_the_proxy_of_the_environment_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excepted: str, target: str
) -> None:
    requested: list[str] = []

    def answer(request: str, writer: asyncio.StreamWriter) -> None:
        requested.append(request.split()[1])
        writer.write(head("200 OK", 2) + b"{}")

    async with server(answer) as proxy, server(answer) as direct:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy}")
        monkeypatch.setenv("NO_PROXY", excepted)
        async with client(tmp_path, direct) as kube:
            await kube.raw("GET", "/api/v1/")

    assert requested == [target.format(server=direct)]


async def test_a_quoted_secret_of_the_server_is_left_out(tmp_path: Path) -> None:
    status = b'{"reason":"Invalid","message":"is invalid: \\"hunter2\\"","details":{"causes":[{"field":"data"}]}}'

    async with server(answering(status, "422 Unprocessable Entity")) as port, client(tmp_path, port) as kube:
        with pytest.raises(ApiError) as secret:
            await kube.get(SECRETS, KEY)
        with pytest.raises(ApiError) as plain:
            await kube.get(CONFIG_MAPS, KEY)

    assert "hunter2" not in f"{secret.value!r}{secret.value}{secret.value.causes}"
    assert "data" in secret.value.message
    assert "hunter2" in plain.value.message


def stream(*chunks: bytes, close: bool = True) -> Script:
    def answer(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if close:
            writer.write(b"0\r\n\r\n")
        else:
            writer.transport.abort()

    return answer


async def watched(kube: KubeClient) -> list[tuple[str, bytes]]:
    events = kube.watch(CONFIG_MAPS, EVERYTHING, resource_version="1", timeout=MINUTE)
    return [(event.kind, event.raw) async for event in events]


async def test_a_stream_is_split_at_its_lines_wherever_the_chunks_end(tmp_path: Path) -> None:
    big = b'{"data":"%b"}' % (b"x" * 1_600_000)
    text = b'{"type":"ADDED","object":{"a":1}}\n{"type":"MODIFIED","object":%b}\n' % big
    chunks = [text[:7], text[7:40], text[40:900_000], text[900_000:]]
    async with server(stream(*chunks)) as port, client(tmp_path, port) as kube:
        events = await watched(kube)

    assert events == [("ADDED", b'{"a":1}'), ("MODIFIED", big)]


async def test_a_cut_line_is_unreadable(tmp_path: Path) -> None:
    async with server(stream(b'{"type":"ADDED","obj')) as port, client(tmp_path, port) as kube:
        with pytest.raises(ApiError) as error:
            await watched(kube)

    assert error.value.reason == "Unreadable"


async def test_a_stream_that_breaks_is_no_answer(tmp_path: Path) -> None:
    whole = b'{"type":"ADDED","object":{}}\n'
    async with server(stream(whole, close=False)) as port, client(tmp_path, port) as kube:
        with pytest.raises(NoAnswer):
            await watched(kube)


async def test_a_rotated_token_is_taken_up_after_a_minute_and_sooner_after_a_refusal(tmp_path: Path) -> None:
    accepted = "first"
    seen: list[str] = []

    def behind_a_token(request: str, writer: asyncio.StreamWriter) -> None:
        token = next(line for line in request.splitlines() if line.lower().startswith("authorization:")).split()[-1]
        seen.append(token)
        status = "200 OK" if token == accepted else "401 Unauthorized"
        writer.write(head(status, 2, "Connection: close\r\n") + b"{}")
        writer.close()

    clock = VirtualClock()
    async with server(behind_a_token) as port, client(tmp_path, port, clock) as kube:
        (tmp_path / "token").write_text("first\n")
        await kube.get(CONFIG_MAPS, KEY)
        (tmp_path / "token").write_text("second\n")
        clock.seconds += 61
        accepted = "second"
        await kube.get(CONFIG_MAPS, KEY)
        (tmp_path / "token").write_text("third\n")
        accepted = "third"
        clock.seconds += 6
        await kube.get(CONFIG_MAPS, KEY)
        accepted = "nobody's"
        with pytest.raises(Forbidden):
            await kube.get(CONFIG_MAPS, KEY)

    assert seen == ["first", "second", "second", "third", "third", "third"]


async def test_a_kubeconfig_that_is_half_written_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with server(answering()) as port, client(tmp_path, port, clock) as kube:
        await kube.get(CONFIG_MAPS, KEY)
        (tmp_path / "kubeconfig").write_text("clusters: [{")
        clock.seconds += 61

        assert await kube.get(CONFIG_MAPS, KEY) == {}


@pytest.mark.parametrize("content", [None, "", "[]", "clusters: [{", "current-context: nobody"])
async def test_a_kubeconfig_that_cannot_be_read_counts_as_no_answer(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(NoAnswer, match="Kubernetes configuration"):
        await KubeClient.connect(user_agent="me/1", kubeconfig=path)


async def test_a_closed_fence_sends_no_write_and_lets_reads_pass(tmp_path: Path) -> None:
    requests: list[str] = []

    async def writes(kube: KubeClient, may_write: Callable[[], bool]) -> str:
        fence.bind(may_write)
        try:
            await kube.json_patch(CONFIG_MAPS, KEY, patch_tests(READ), manager="m")
        except NotLeading:
            return "not sent"
        return "sent"

    async with server(answering(seen=requests)) as port, client(tmp_path, port) as kube:
        closed = await asyncio.create_task(writes(kube, lambda: False))
        closes_on_the_way = iter([True, *[False] * 9])
        late = await asyncio.create_task(writes(kube, lambda: next(closes_on_the_way)))
        free = await asyncio.create_task(writes(kube, lambda: True))
        await kube.get(CONFIG_MAPS, KEY)

    assert (closed, late, free) == ("not sent", "not sent", "sent")
    assert [request.partition(" ")[0] for request in requests] == ["PATCH", "GET"]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda kube: kube.apply(CONFIG_MAPS, {"metadata": {"name": "a"}}, manager="m"), id="apply"),
        pytest.param(
            lambda kube: kube.apply(CONFIG_MAPS, {"metadata": {"name": "a", "uid": "u"}}, manager="m"),
            id="an apply without a version",
        ),
        pytest.param(
            lambda kube: kube.apply(CONFIG_MAPS, {"metadata": {"name": "a", "resourceVersion": "7"}}, manager="m"),
            id="an apply without a uid",
        ),
        pytest.param(lambda kube: kube.replace(CONFIG_MAPS, {"metadata": {"name": "a"}}, manager="m"), id="PUT"),
        pytest.param(lambda kube: kube.json_patch(CONFIG_MAPS, KEY, patch_tests(READ)[:1], manager="m"), id="patch"),
        pytest.param(
            lambda kube: kube.json_patch(CONFIG_MAPS, KEY, patch_tests({"metadata": {}}), manager="m"),
            id="a patch that tests nothing",
        ),
        pytest.param(lambda kube: kube.delete(CONFIG_MAPS, KEY, uid="u", resource_version=""), id="deletion"),
    ],
)
async def test_a_controllers_write_that_names_no_version_is_not_sent(
    tmp_path: Path, write: Callable[[KubeClient], Awaitable[object]]
) -> None:
    methods: list[str] = []

    async def behind_a_fence(kube: KubeClient) -> None:
        fence.bind(lambda: True)
        await write(kube)

    async with (
        server(lambda request, _writer: methods.append(request)) as port,
        client(tmp_path, port) as kube,
    ):
        with pytest.raises(ValueError, match="names no uid and resourceVersion"):
            await asyncio.create_task(behind_a_fence(kube))

    assert methods == []


async def test_a_request_that_is_unanswered_when_the_lease_ends_is_an_answer_that_never_came(tmp_path: Path) -> None:
    async def reads(kube: KubeClient) -> None:
        fence.bind(lambda: True, bounds=lambda: asyncio.timeout(0.05))
        await kube.get(CONFIG_MAPS, KEY)

    async with server(lambda _, __: None) as port, client(tmp_path, port) as kube:
        with pytest.raises(NoAnswer, match="unanswered when the Lease ends"):
            await asyncio.create_task(reads(kube))
