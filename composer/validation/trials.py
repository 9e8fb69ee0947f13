"""What a Composition makes of claims that nobody made yet: rendered at load, for each sampled claim. Pure.

Each claim is tried as it is created, before its children report anything, and once more after they did: a status is
made up from its schema, first with the first of all values, then with the last. Such a status has the right types and
no more, so only types count then; environments are those that exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from composer.kinds.catalog import Catalog, KindFacts
from composer.render.cel import broken
from composer.render.child_metadata import group_kind_of
from composer.render.compiler import Compiled
from composer.render.errors import CompositionError, MistypedError, Problem
from composer.render.offerings import narrowed
from composer.render.render import Rendered
from composer.render.request import Request
from composer.render.schema import Schema, mismatches, step, template_mismatches, types_of
from composer.render.schema_limits import absences, excesses
from composer.validation.fields import refusals
from composer.validation.groups import Trial
from composer.validation.samples import Sample, all_ready, named_at_the_limits, reports, request_of, samples
from runtime.objects import Object

# A check has the processor time of three renders: a composition of many resources is tried with fewer claims.
CHILDREN_OF_TRIALS = 512
# What children report is made up alike for all claims: a few show as much as all.
_REPORTED_CLAIMS = 6
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything that the trials of one Composition need. `claim` is the kind of its claims."""

    composition: dict[str, Any]
    compiled: Compiled
    claim: KindFacts
    catalog: Catalog
    environments: Mapping[str, Mapping[str, str]]

    def run(self) -> tuple[Trial, ...]:
        """Try claims as the schema of their kind allows them, until the time that a check has is used up."""
        left, variants = CHILDREN_OF_TRIALS, self._statuses()
        trials: list[Trial] = []
        reported: list[Trial] = []
        drafts = samples(self._claims())
        plainest = next((draft for draft in drafts if draft.is_plain), drafts[0])
        for number, sample in enumerate((*drafts, *named_at_the_limits(plainest))):
            if left <= 0:
                break
            request = self._request(sample)
            trial, made = self._created(request, sample)
            if number < _REPORTED_CLAIMS and not (trial.wrong or trial.failed):
                trial = self._reported(request, sample, variants)
                reported.append(trial)
                made += made * len(variants)
            left -= made
            trials.append(trial)
        if reported and all(trial.failed for trial in reported):
            first = reported[0]
            trials.append(Trial(first.sample, wrong=_problems_of(_about(first.sample), first.failed)))
        return tuple(trials)

    def tried(self, sample: Sample) -> Trial:
        """Try a claim as it is created."""
        return self._created(self._request(sample), sample)[0]

    def _request(self, sample: Sample) -> Request:
        kind = (self.claim.resource.api_version, self.claim.resource.kind)
        return request_of(self.composition, kind, sample, self.environments)

    def _claims(self) -> Schema:
        """Return the schema of the claims that the Composition serves."""
        return narrowed(self._claim_part("spec"), self.compiled.spec.offerings)

    def _created(self, request: Request, sample: Sample) -> tuple[Trial, int]:
        try:
            rendered = all_ready(request)
        except CompositionError as error:
            # That nothing is composed for some claims is reported on these.
            failed = [problem for problem in error.problems if problem.reason != "EmptyResult"]
            return Trial(sample, failed=tuple(failed)), 0
        made, about = len(rendered.children), _about(sample)
        wrong = [*self._child_problems(rendered, template_mismatches), *self._status_problems(rendered)]
        wrong += self._child_problems(rendered, _address_problems)
        failed = list(self._child_problems(rendered, breaches))
        for refused in refusals(request, rendered, self.catalog):
            # What a claim gives is the claim's fault.
            (failed if refused.reason == "InvalidValue" else wrong).append(refused)
        return Trial(sample, _problems_of(about, wrong), tuple(failed), rendered), made

    def _reported(self, request: Request, sample: Sample, variants: Sequence[Mapping[str, Object]]) -> Trial:
        later = "once its resources report, "
        mistyped: list[Problem] = []
        for statuses in variants:
            try:
                rendered = all_ready(request, statuses)
            except MistypedError as error:
                mistyped += error.problems
                continue
            except CompositionError:
                # A value that is made up may well be one that never comes.
                continue
            wrong = [*self._child_problems(rendered, _type_problems), *self._status_problems(rendered)]
            wrong += self._child_problems(rendered, _address_problems)
            if wrong:
                return Trial(sample, _problems_of(_about(sample) + later, wrong))
        return Trial(sample, failed=_problems_of(later, mistyped[:1] if len(mistyped) == len(variants) else ()))

    def _statuses(self) -> tuple[Mapping[str, Object], Mapping[str, Object]]:
        """Return made-up reports of the children, by kind: once of first values, once of last."""
        first: dict[str, Object] = {}
        last: dict[str, Object] = {}
        for name in {group_kind_of(resource.template) for resource in self.compiled.resources}:
            facts = self.catalog.get(name)
            schema = step(facts.schema, "status") if facts and facts.schema else None
            first[name], last[name] = reports(schema or {})
        return first, last

    def _claim_part(self, name: str) -> Schema:
        return step(self.claim.schema or {}, name) or {}

    def _child_problems(
        self, rendered: Rendered, problems: Callable[[Mapping[str, Any], Schema, str], Iterable[Problem]]
    ) -> Iterator[Problem]:
        paths = {resource.name: f"{resource.path}.template" for resource in self.compiled.resources}
        for child in rendered.children:
            facts = self.catalog.get(child.group_kind)
            kind_schema = facts.schema_of(child.object["apiVersion"]) if facts else None
            if kind_schema is None:
                continue
            made = {name: item for name, item in child.object.items() if name != "metadata"}
            for problem in problems(made, _without_metadata(kind_schema), paths[child.resource]):
                yield msgspec.structs.replace(problem, resource=child.resource)

    def _status_problems(self, rendered: Rendered) -> Iterator[Problem]:
        return mismatches(rendered.status, types_of(self._claim_part("status")), "spec.status")


def breaches(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield for what the API server would refuse data of the right types, as far as its CRD says so."""
    yield from absences(value, schema, path)
    yield from excesses(value, schema, path)
    yield from broken(value, schema, path)


def _without_metadata(schema: Schema) -> Schema:
    """Return the schema of all but the metadata, which some kinds require and every child gets."""
    required = [name for name in schema.get("required") or () if name != "metadata"]
    return {**schema, "required": required}


def _address_problems(tree: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield texts that were made of an object of the program: they differ in every process, and end in no rest."""
    match tree:
        case str() if _ADDRESS.search(tree):
            message = "holds the text of an object, which is another one in every render; name a field of it"
            yield Problem("RenderFailed", message, path)
        case Mapping():
            for name, item in tree.items():
                yield from _address_problems(item, schema, f"{path}.{name}")
        case list():
            for index, item in enumerate(tree):
                yield from _address_problems(item, schema, f"{path}[{index}]")
        case _:
            return


def _type_problems(tree: Mapping[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    return template_mismatches(tree, types_of(schema), path)


def _about(sample: Sample) -> str:
    return f"for a claim with {sample.about}: "


def _problems_of(about: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(msgspec.structs.replace(problem, message=about + problem.message) for problem in problems)
