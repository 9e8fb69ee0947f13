"""Rotations on each platform: on-prem, on RDS and on Azure with one login and with two by SQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.support.aws import AWS_CONFIG, Aws
from tests.support.azure import AZURE_CONFIG, Azure
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.processes import Program
from tests.support.rotations import FLAGS, Rotations
from tests.support.simulated_cloud import QUICK
from tests.support.system import System

TWO_LOGINS = {"loginCheck": "Required", "logins": "Alternating"}


@dataclass(frozen=True, slots=True)
class Size:
    """How many claims rotate side by side, how often."""

    claims: int
    rounds: int


async def _run(rotations: Rotations, namespace: str, size: Size, title: str) -> Rotations:
    await rotations.move_in(namespace, [f"app-{number}" for number in range(size.claims)])
    async with rotations.at_work():
        for number in range(size.rounds):
            await rotations.rotate(number)
    print(rotations.summary(title))  # noqa: T201 - the figures are the result
    return rotations


async def _ended(start: Callable[[], Awaitable[Program]], system: System) -> Rotations:
    return Rotations(system, start, await start())


async def onprem(system: System, size: Size) -> Rotations:
    """Rotate on-prem; the composer is at work."""
    rotations = await _ended(lambda: system.start_provider(*FLAGS), system)
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    async with system.namespace() as namespace:
        try:
            return await _run(rotations, namespace, size, "on-prem")
        finally:
            await rotations.provider.terminate()


async def rds(aws: Aws, size: Size, *, has_two_logins: bool) -> Rotations:
    """Rotate on RDS; the composer is at work. With one login a new password counts with the request."""
    await aws.behave(password_after_s=0)
    rotations = await _ended(lambda: aws.start_provider(*QUICK, *FLAGS), aws.system)
    await aws.system.until(AWS_CONFIG, "", "default", is_ready)
    if has_two_logins:
        await aws.system.edit(AWS_CONFIG, "", "default", {"spec": TWO_LOGINS})
    async with aws.namespace() as namespace:
        try:
            return await _run(rotations, namespace, size, "RDS, two logins" if has_two_logins else "RDS, one login")
        finally:
            await rotations.provider.terminate()


async def flexible_servers(azure: Azure, size: Size, *, has_two_logins: bool) -> Rotations:
    """Rotate on Azure; the composer is at work. With one login, which is the administrator's, ARM takes its time."""
    rotations = await _ended(lambda: azure.start_provider(*QUICK, *FLAGS), azure.system)
    await azure.system.until(AZURE_CONFIG, "", "default", is_ready)
    if has_two_logins:
        await azure.system.edit(AZURE_CONFIG, "", "default", {"spec": TWO_LOGINS})
    async with azure.namespace() as namespace:
        try:
            title = "Azure, two logins" if has_two_logins else "Azure, one login"
            return await _run(rotations, namespace, size, title)
        finally:
            await rotations.provider.terminate()
