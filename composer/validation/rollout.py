"""Whether the waves of a Composition end with all of its claims. Pure."""

from __future__ import annotations

from composer.models import Rollout


def faults(rules: Rollout) -> tuple[str, ...]:
    """Return what is wrong with the waves of a Composition: percentages that do not grow, or an end before 100%."""
    percentages = [int(wave[:-1]) for wave in rules.waves if wave.endswith("%")]
    messages: list[str] = []
    if rules.waves and rules.waves[-1] != "100%":
        messages.append("the last wave must be 100%, or some claims would never get the revision")
    if percentages != sorted(set(percentages)):
        messages.append("each wave must be larger than the one before")
    return tuple(messages)
