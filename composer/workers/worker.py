"""The template server and its workers: the other side of `composer.workers.pool`.

The server is forked before any credential or connection exists. It forks workers, each confined for ever; a worker
serves one request at a time over one pipe: four bytes of length, then JSON, both ways.
"""

from __future__ import annotations

import codecs
import gc
import importlib
import os
import signal
import socket
import struct
from contextlib import suppress
from typing import Any, Literal

import msgspec

from composer.render import environments
from composer.render.errors import CompositionError, Problem
from composer.render.render import Rendered, render
from composer.render.request import Request
from composer.validation.offerings import Offerings, offerings
from composer.validation.validate import CheckRequest, check
from composer.workers.seccomp import SeccompError, confine
from composer.workers.server import KILL, SLOW, SPAWN

CPU_SECONDS = 1.0
# A check renders many claims, once for each content; people write it, and wait for it once.
CHECK_CPU_SECONDS = 3.0
FRAME_LIMIT_BYTES = 64 << 20
_NICER_BY, _NICEST = 10, 19
READY = b"ready"
_PIPE = 3
_PROBLEMS_LIMIT = 100


Operation = Literal["render", "check", "offerings"]


class Order(msgspec.Struct, frozen=True):
    """One request to a worker."""

    operation: Operation
    body: msgspec.Raw


class Answer(msgspec.Struct, frozen=True):
    """What a worker answers: a result, or what was wrong."""

    rendered: Rendered | None = None
    problems: tuple[Problem, ...] | None = None
    offerings: Offerings | None = None


def serve(control: socket.socket, *, is_confined: bool) -> None:
    """Fork workers on demand until the other end of `control` is closed; never returns."""
    _warm_up()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    children: set[int] = set()
    while True:
        order = control.recv(64)
        if not order:
            os._exit(0)
        _reap(children)
        word, _, number = order.partition(b" ")
        if word == KILL and int(number) in children:
            # A pid stays ours until it is reaped.
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        elif word == SLOW and int(number) in children:
            with suppress(ProcessLookupError):
                nice = os.getpriority(os.PRIO_PROCESS, int(number)) + _NICER_BY
                os.setpriority(os.PRIO_PROCESS, int(number), min(nice, _NICEST))
        elif word == SPAWN:
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                control.close()
                theirs.close()
                _work(ours.detach(), is_confined=is_confined)
            children.add(pid)
            ours.close()
            socket.send_fds(control, [str(pid).encode()], [theirs.fileno()])
            theirs.close()


def _reap(children: set[int]) -> None:
    for pid in tuple(children):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        children.discard(pid)


def _work(pipe: int, *, is_confined: bool) -> None:
    """Serve one pipe until it is closed, then exit; everything else that was inherited is closed first."""
    os.environ.clear()
    os.dup2(pipe, _PIPE)
    os.closerange(_PIPE + 1, os.sysconf("SC_OPEN_MAX"))
    os.closerange(0, _PIPE)
    try:
        confine(system_calls=is_confined)
    except SeccompError as error:
        _send(_PIPE, str(error).encode())
        os._exit(1)
    # What was inherited is not looked through when a failed render is collected, so that its pages stay shared.
    gc.freeze()
    _send(_PIPE, READY)
    try:
        while True:
            frame = _receive(_PIPE)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            answer = _answered(frame)
            signal.setitimer(signal.ITIMER_PROF, 0)
            _send(_PIPE, answer)
    except EOFError:
        os._exit(0)
    finally:
        # Whatever else happens here must not run the code of the process that we were forked from.
        os._exit(1)


def _answered(frame: bytes) -> bytes:
    """Serve a request; what nobody foresaw is a fault of this render, and no end of the worker."""
    try:
        answer = _answer(frame)
        encoded = msgspec.json.encode(answer)
        if answer.rendered is not None:
            return encoded
    except (MemoryError, RecursionError, SystemError):
        # The last is what CPython makes of a MemoryError that was lost on its way.
        answer = Answer(problems=(Problem("RenderLimit", "memory or depth of a render is used up"),))
    except Exception as error:  # noqa: BLE001 - whatever odd values lead to, the next request is another's
        problem = Problem("RenderFailed", f"cannot be rendered ({type(error).__name__}): {error}")
        answer = Answer(problems=(problem,))
    # What a failed render had filled may hang on its errors in circles, and the next request needs the memory.
    gc.collect()
    return msgspec.json.encode(answer)


def _answer(frame: bytes) -> Answer:
    order = msgspec.json.decode(frame, type=Order)
    try:
        if order.operation != "render":
            signal.setitimer(signal.ITIMER_PROF, CHECK_CPU_SECONDS)
        if order.operation == "offerings":
            return Answer(offerings=offerings(msgspec.json.decode(order.body, type=CheckRequest)))
        if order.operation == "check":
            problems = check(msgspec.json.decode(order.body, type=CheckRequest))
            return Answer(problems=problems[:_PROBLEMS_LIMIT])
        return Answer(rendered=render(msgspec.json.decode(order.body, type=Request)))
    except CompositionError as error:
        return Answer(problems=error.problems)


def _send(pipe: int, payload: bytes) -> None:
    left = memoryview(struct.pack("!I", len(payload)) + payload)
    while left:
        left = left[os.write(pipe, left) :]


def _receive(pipe: int) -> bytes:
    (length,) = struct.unpack("!I", _exactly(pipe, 4))
    return _exactly(pipe, min(length, FRAME_LIMIT_BYTES))


def _exactly(pipe: int, length: int) -> bytes:
    chunks: list[bytes] = []
    while length:
        chunk = os.read(pipe, min(length, 1 << 20))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)


_WARMING = (
    "{{ claim.metadata.name | dns_label(9) | replace('-', '_') }}-x",
    "{{ {'a': 1.5, 'b': [2]}['b'][0] + 3 if claim.spec.x is defined and not none else 'c' ~ 4 }}",
    "{{ claim.nothing }}",
    "{{ 'a' * 3",
    "{{ 1 / 0 }}",
    "{{ ''.__class__ }}",
    "{{ 'a' | nothing }}",
    "{{ ['b', 'a'] | sort | join(',') | upper }}",
    "{{ '10.0.0.1/8' | cidr }}{{ '1Gi' | gib }}{{ 2 ** 3 % 5 }}",
)

_YAML = ("a: [1, 2.5, true, null, 2020-01-01, x]\nb: |\n  text\n", "a: *b", "a: [")


def _warm_up() -> None:
    """Load what is otherwise loaded at its first use, errors included: a worker cannot open files."""
    importlib.import_module("jinja2.debug")
    for codec in ("ascii", "idna", "latin-1", "unicode-escape", "utf-8"):
        codecs.lookup(codec)
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "namespace": "n"}, "spec": {}}
    for text in _YAML:
        with suppress(CompositionError):
            environments.read({"n": {"n.yaml": text}})
    for text in _WARMING:
        composition = {
            "compositeTypeRef": {"apiVersion": "v1", "kind": "K"},
            "resources": [{"name": "r", "template": {"apiVersion": "v1", "kind": "K", "spec": text}}],
        }
        with suppress(CompositionError):
            render(Request("n", composition, claim, "u@n/n"))
        check(CheckRequest(composition, {}))
