"""Rotations on each cloud, with one login and with two that alternate; on-prem there are always two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.support.aws import AWS_CONFIG, Aws, simulated_rds
from tests.support.azure import AZURE_CONFIG, Azure, simulated_azure
from tests.support.gcp import simulated_cloud_sql
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.processes import Program
from tests.support.rotation_gcp import cloud_sql
from tests.support.rotations import FLAGS, Rotations, Size
from tests.support.simulated_cloud import QUICK
from tests.support.system import System

TWO_LOGINS = {"loginCheck": "Required", "logins": "Alternating"}


CASES = ("onprem", "aws-1", "aws-2", "azure-1", "azure-2", "gcp-1", "gcp-2")
"""A cloud, and how many logins alternate there."""


async def rotate(system: System, case: str, size: Size) -> Rotations:
    """Rotate in one of the cases, with a kill -9 of the provider in each rotation; the composer is at work."""
    cloud, _, logins = case.partition("-")
    has_two_logins = logins == "2"
    match cloud:
        case "onprem":
            return await onprem(system, size)
        case "aws":
            async with simulated_rds(system) as aws:
                return await rds(aws, size, has_two_logins=has_two_logins)
        case "azure":
            async with simulated_azure(system) as azure:
                return await flexible_servers(azure, size, has_two_logins=has_two_logins)
        case _:
            async with simulated_cloud_sql(system) as gcp:
                return await cloud_sql(gcp, size, has_two_logins=has_two_logins)


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
