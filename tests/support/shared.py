"""Fixtures of the modules that share one platform, and who is at work on it.

A module has namespaces, ProviderConfigs and Compositions of its own names, and leaves to the next one what it made.
Modules that ask for `running` meet the same two processes; whoever stops, kills or replaces them leaves it to the next
module to have them started again. The conftest of a folder imports the fixtures that its tests ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest_asyncio

from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.processes import Program
from tests.support.reset import tidy
from tests.support.staff import Staff
from tests.support.system import System

USUAL: Final = {"composer": ("--no-elect", "--resync", "5"), "provider": ("--no-elect",)}
"""The flags of the processes that most modules share."""


def name_of(program: Program) -> str:
    """Return the name under which a program of a platform was started."""
    return program.log.stem.partition("-")[2]


def at_work(system: System, name: str = "") -> list[Program]:
    """Return the processes of ours that run, simulators left out; those of a name, or all."""
    ours = (program for program in system.started if program.is_running and name_of(program))
    return [program for program in ours if name in {"", name_of(program)}]


async def employ(system: System) -> None:
    """Have composer and provider at work with the usual flags, and nobody else."""
    kept = {
        name: [program for program in at_work(system, name) if program._arguments[-len(flags) :] == flags][:1]
        for name, flags in USUAL.items()
    }
    await dismiss(system, *(program for programs in kept.values() for program in programs))
    starts = []
    if not kept["composer"]:
        starts.append(system.start_composer(*USUAL["composer"]))
    if not kept["provider"]:
        starts.append(system.start_provider(*USUAL["provider"]))
    await asyncio.gather(*starts)
    # The server was met and prepared: from here on a bad input changes nothing there.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)


async def begin(system: System) -> None:
    """Have them at work for a module; what earlier ones left is taken away where both are started."""
    if not at_work(system):
        await tidy(system)
    await employ(system)


async def staff_of(system: System) -> Staff:
    """Return composer and provider at work with the usual flags, for a module that stops them and starts them again."""
    await begin(system)
    ((composer,), (provider,)) = (at_work(system, name) for name in USUAL)
    return Staff(system, composer, provider, USUAL["composer"], USUAL["provider"])


async def dismiss(system: System, *but: Program) -> None:
    """End all processes of ours at once but these."""
    await asyncio.gather(*(program.kill9() for program in at_work(system) if program not in but))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(shared_system: System) -> System:
    """Return the platform, whoever is at work on it."""
    return shared_system


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(shared_system: System) -> System:
    """Return the platform with composer and provider at work."""
    await begin(shared_system)
    return shared_system


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alone(shared_system: System) -> AsyncIterator[System]:
    """Yield the platform with nobody at work, for a module that starts processes with flags of its own."""
    await dismiss(shared_system)
    await tidy(shared_system)
    yield shared_system
    await dismiss(shared_system)


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(shared_system: System) -> AsyncIterator[str]:
    """Yield a fresh namespace, prepared for claims, which is gone afterwards."""
    async with shared_system.namespace() as name:
        yield name
