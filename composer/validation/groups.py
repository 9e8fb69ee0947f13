"""For which claims a Composition fails: one line for each fault, instead of one for each claim that was tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from composer.render.errors import Problem
from composer.render.render import Rendered
from composer.validation.samples import Sample


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one sampled claim: what no claim may cause, what makes this claim fail alone, and its render."""

    sample: Sample
    wrong: tuple[Problem, ...] = ()
    failed: tuple[Problem, ...] = ()
    rendered: Rendered | None = None


def grouped(trials: Sequence[Trial]) -> tuple[Problem, ...]:
    """Return each fault once, with the claims that it makes fail."""
    return _grouped(trials, trials)


def of_plainest(trials: Sequence[Trial]) -> tuple[Problem, ...]:
    """Return the faults of claims with what is required alone, grouped; none where one of these claims has none."""
    plainest = [trial for trial in trials if trial.sample.is_plain]
    return _grouped(plainest, trials) if all(trial.failed for trial in plainest) else ()


def _grouped(faulty: Iterable[Trial], trials: Sequence[Trial]) -> tuple[Problem, ...]:
    problems = dict.fromkeys(problem for trial in faulty for problem in trial.failed)
    return tuple(
        msgspec.structs.replace(problem, message=f"fails for {_claims(problem, trials)}: {problem.message}")
        for problem in problems
    )


def _claims(problem: Problem, trials: Sequence[Trial]) -> str:
    """Return what the claims that fail have in common, and none of the others has."""
    failing = [trial.sample for trial in trials if problem in trial.failed]
    others = [trial for trial in trials if problem not in trial.failed]
    if not others:
        return "every claim"
    # A claim that fails for another fault says nothing of this one, which it may hide.
    well = [trial.sample for trial in others if not trial.failed] or [trial.sample for trial in others]
    lacking = frozenset.intersection(*(sample.fields for sample in well)).difference(
        *(sample.fields for sample in failing)
    )
    if lacking:
        return f"every claim without {_listed(lacking)}"
    having = frozenset.intersection(*(sample.fields for sample in failing)).difference(
        *(sample.fields for sample in well)
    )
    if having:
        return f"every claim with {_listed(having)}"
    values = frozenset.intersection(*(sample.values for sample in failing)).difference(
        *(sample.values for sample in well)
    )
    if values:
        return f"every claim with {_listed(values)}"
    count = len(failing)
    return f"{count} of {count + len(well)} claims that were tried, one with {failing[0].about}"


def _listed(fields: Iterable[str]) -> str:
    return " and ".join(f"spec.{field}" for field in sorted(fields))
