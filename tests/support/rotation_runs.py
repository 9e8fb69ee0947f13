"""Rotations on each cloud, with one login and with two that alternate; on-prem there are always two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from tests.support.aws import AWS_CONFIG, simulated_rds
from tests.support.azure import AZURE_CONFIG, simulated_azure
from tests.support.gcp import FLAGS as GCP_FLAGS
from tests.support.gcp import GCP_CONFIG, simulated_cloud_sql
from tests.support.kinds import PROVIDER_CONFIG, Kind, is_ready
from tests.support.processes import Program
from tests.support.rotation_gcp import move_users_in
from tests.support.rotations import FLAGS, Rotations, Size
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System

TWO_LOGINS = {"loginCheck": "Required", "logins": "Alternating"}


CASES = ("onprem", "aws-1", "aws-2", "azure-1", "azure-2", "gcp-1", "gcp-2")
"""A cloud, and how many logins alternate there."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where claims rotate.

    Attributes:
        title: Of the figures.
        config: The kind of the provider's ProviderConfig.
        start: Starts the provider.
        namespace: For the claims.
        move_in: Makes the applications of a namespace, by their names.
    """

    title: str
    config: Kind
    start: Callable[[], Awaitable[Program]]
    namespace: AbstractAsyncContextManager[str]
    move_in: Callable[[Rotations, str, list[str]], Awaitable[None]] = Rotations.move_in


async def rotate(system: System, case: str, size: Size) -> Rotations:
    """Rotate in one of the cases, with a kill -9 of the provider in each rotation; the composer is at work."""
    name, _, logins = case.partition("-")
    has_two_logins = logins == "2"
    match name:
        case "onprem":
            start = _starting(system.start_provider, *FLAGS)
            return await _run(system, Place("on-prem", PROVIDER_CONFIG, start, system.namespace()), size)
        case "aws":
            async with simulated_rds(system) as aws:
                # With one login a new password counts with the request.
                await aws.behave(password_after_s=0)
                return await _by_config(aws, AWS_CONFIG, size, has_two_logins=has_two_logins)
        case "azure":
            async with simulated_azure(system) as azure:
                # With one login, which is the administrator's, ARM takes its time.
                return await _by_config(azure, AZURE_CONFIG, size, has_two_logins=has_two_logins)
        case _:
            async with simulated_cloud_sql(system) as gcp:
                start = _starting(gcp.start_provider, *GCP_FLAGS, *FLAGS)
                move_in = move_users_in(gcp) if has_two_logins else Rotations.move_in
                return await _run(system, Place(case, GCP_CONFIG, start, gcp.namespace(), move_in), size)


def _starting(start: Callable[..., Awaitable[Program]], *flags: str) -> Callable[[], Awaitable[Program]]:
    return lambda: start(*flags)


async def _by_config(cloud: SimulatedCloud, config: Kind, size: Size, *, has_two_logins: bool) -> Rotations:
    """Rotate where the ProviderConfig says how many logins a claim has; later modules find it as it was."""
    before = (await cloud.system.api.get(config.path("", "default")))["spec"]
    if has_two_logins:
        await cloud.system.edit(config, "", "default", {"spec": TWO_LOGINS})
    title = f"{cloud.cloud}, {'two logins' if has_two_logins else 'one login'}"
    place = Place(title, config, _starting(cloud.start_provider, *QUICK, *FLAGS), cloud.namespace())
    try:
        return await _run(cloud.system, place, size)
    finally:
        usual = {name: before.get(name) for name in TWO_LOGINS}
        await cloud.system.api.merge(config.path("", "default"), {"spec": usual})


async def _run(system: System, place: Place, size: Size) -> Rotations:
    rotations = Rotations(system, place.start, await place.start())
    await system.until(place.config, "", "default", is_ready)
    async with place.namespace as namespace:
        try:
            await place.move_in(rotations, namespace, [f"app-{number}" for number in range(size.claims)])
            async with rotations.at_work(size.login_every_s):
                for number in range(size.rounds):
                    await rotations.rotate(number)
            print(rotations.summary(place.title))  # noqa: T201 - the figures are the result
            return rotations
        finally:
            await rotations.provider.terminate()
