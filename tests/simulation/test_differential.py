"""The API server in memory is judged by the real kube-apiserver: both get the same requests and do the same."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from devcloud.controlplane.plane import Plane
from runtime.kube_client import KubeClient
from runtime.objects import NAMESPACES, dumps
from tests.simulation.differential.__main__ import drawn, shown
from tests.simulation.differential.cases import CASES, Case
from tests.simulation.differential.clauses import CLAUSES, Clause, Cluster, Probe
from tests.simulation.differential.memory import Memory
from tests.simulation.differential.normal import Normal, differences
from tests.simulation.differential.patterns import matching
from tests.simulation.differential.runner import Pair, pairs, run_all, shortest
from tests.simulation.differential.worlds import world
from tests.support.api import connect
from tests.support.waiting import eventually

_SEQUENCES, _SECONDS, _PAIRS = 300, 40.0, 24
_LEAST: Final = 20
"""So many sequences run within the time on a machine that does much else."""
_by_words = pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)


_on_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def made(plane: Plane) -> AsyncIterator[list[Pair]]:
    """Yield namespaces of the shared control plane, each beside a server in memory."""
    async with connect(plane.kubeconfig) as api, pairs(api, world(), _PAIRS) as ready:
        yield ready


@_on_one_loop
async def test_random_sequences_are_answered_stored_and_watched_alike(made: list[Pair]) -> None:
    sequences = drawn(_SEQUENCES, 1, collects=False)
    results = await run_all(made, sequences, asyncio.get_running_loop().time() + _SECONDS)
    differing = [number for number, difference in results if difference is not None]
    explained = ""
    if differing:
        short, difference = await shortest(made[0], sequences[differing[0]])
        explained = "\n".join([shown(short), *difference.lines])

    assert (differing, explained) == ([], "")
    assert len(results) >= _LEAST


@_on_one_loop
@_by_words
async def test_a_case_is_answered_stored_and_watched_alike(made: list[Pair], case: Case) -> None:
    assert await made[0].run(case.sequence) is None


@_by_words
def test_a_case_is_answered_in_memory_as_it_was_by_the_real_server(case: Case) -> None:
    memory, normal = Memory("ns", world().crds, world().resources), Normal()
    for request in case.requests[:-1]:
        before = memory.send(request)
        normal.answer(before)
        memory.settle()
        assert before[0] in (200, 201)
    answer = memory.send(case.requests[-1])
    text = dumps(normal.answer(answer)).decode()

    assert (answer[0], case.text in text, text) == (case.code, True, text)


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__)
async def test_the_server_in_memory_does_over_time(clause: Clause) -> None:
    memory = Memory("ns", world().crds, world().resources)

    async def until(probe: Probe) -> None:
        memory.settle()
        assert await probe()

    await clause(Cluster(memory.server, "ns", until))


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__)
async def test_the_real_server_does_over_time(plane: Plane, clause: Clause) -> None:
    async def until(probe: Probe) -> None:
        await eventually(probe, clause.__name__)

    name = f"differential-{secrets.token_hex(4)}"
    client = await KubeClient.connect(user_agent="test", kubeconfig=plane.kubeconfig)
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="m")
    await clause(Cluster(client, name, until))
    await client.close()


def test_sequences_are_a_function_of_the_seed() -> None:
    first, second = drawn(20, 5, collects=True), drawn(20, 5, collects=True)

    assert first == second
    assert first != drawn(20, 6, collects=True)
    assert {request.verb for sequence in first for request in sequence.requests} >= {
        "create",
        "apply",
        "merge",
        "delete",
    }


@pytest.mark.parametrize("pattern", ["^[a-z_][a-z0-9_]*$", "^([01][0-9]|2[0-3]):[0-5][0-9]$", "^[^/]+/[^/]+$"])
def test_a_drawn_text_matches_its_pattern(pattern: str) -> None:
    texts = [matching(pattern, random.Random(seed)) for seed in range(50)]  # noqa: S311 - no secret

    assert [text for text in texts if not re.search(pattern, text)] == []


def test_a_difference_is_a_line_with_its_place() -> None:
    assert differences({"a": [1, {"b": True}]}, {"a": [1, {"b": 1}], "c": 2}) == [
        ".a[1].b: memory True, real 1",
        ".c: only real has 2",
    ]
