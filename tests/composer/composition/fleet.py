"""Claims as a rollout of tests sees them, and how they follow it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from composer.composition.rollout import Course, is_included
from composer.composition.rollout_claims import RolloutClaim
from composer.models import Rollout, RolloutStatus

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OLD, NEW = "c-old", "c-new"


def rules(*waves: str, **fields: Any) -> Rollout:
    return msgspec.convert({"waves": list(waves), "soakSeconds": 60, **fields}, Rollout)


def course(rules: Rollout, *, resumed: bool = False) -> Course:
    return Course(NEW, 2, rules, resumed)


def claims(count: int, **fields: Any) -> list[RolloutClaim]:
    return [RolloutClaim(f"shop/{number}", f"{number:016x}", OLD, **fields) for number in range(count)]


def moved(claims: list[RolloutClaim], state: RolloutStatus, **fields: Any) -> list[RolloutClaim]:
    """Let every claim follow as a claim does."""
    return [
        replace(claim, revision=NEW, since=NOW, was_ready=claim.is_well, **fields)
        if claim.revision != NEW and is_included(state, claim.rank, well=claim.is_well, since=claim.unchanged_since)
        else claim
        for claim in claims
    ]


def on_new(claims: list[RolloutClaim]) -> list[str]:
    return [claim.name for claim in claims if claim.revision == NEW]
