"""The crash run of each cloud beside a platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.support.aws import simulated_rds
from tests.support.azure import simulated_azure
from tests.support.crash import crash_rig
from tests.support.crash_azure import AzureRun, crash_azure_rig
from tests.support.crash_gcp import SqlRun, crash_gcp_rig
from tests.support.crash_onprem import OnPremRun
from tests.support.crash_rds import RdsRun, crash_rds_rig
from tests.support.crash_run import STEPS, CrashRun
from tests.support.gate import Moment
from tests.support.gcp import simulated_cloud_sql
from tests.support.system import System

CLOUDS = ("onprem", "aws", "azure", "gcp")
_AT_ONCE = 40


@asynccontextmanager
async def crash_run(
    system: System,
    cloud: str,
    turns: Sequence[tuple[Moment, ...]],
    *,
    steps: tuple[str, ...] = STEPS,
    crashed: tuple[str, ...] = STEPS,
) -> AsyncIterator[CrashRun]:
    """Yield a run that learned the effects of its steps undisturbed; `turns` are the moments around each effect.

    The names of its claims are the same in every run: between two of them the platform is reset.
    """
    async with _unlearned(system, cloud) as run:
        run.steps, run.crashed = steps, crashed
        yield await run.learn(turns)


@asynccontextmanager
async def _unlearned(system: System, cloud: str) -> AsyncIterator[CrashRun]:
    match cloud:
        case "onprem":
            async with crash_rig(system) as rig:
                yield OnPremRun(rig)
        case "aws":
            async with simulated_rds(system) as aws, crash_rds_rig(aws) as rig:
                yield RdsRun(rig, cloud=aws, at_once=_AT_ONCE)
        case "azure":
            async with simulated_azure(system) as azure, crash_azure_rig(azure) as rig:
                yield AzureRun(rig, cloud=azure, at_once=_AT_ONCE)
        case "gcp":
            async with simulated_cloud_sql(system) as gcp, crash_gcp_rig(gcp) as rig:
                yield SqlRun(rig, cloud=gcp, at_once=_AT_ONCE)
        case _:
            raise ValueError(cloud)
