"""Whether the names of objects are as their operators take them, for every claim that may come. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apis.identity import LONGEST_CHILD_NAME
from composer.render.compiler import Compiled, CompiledResource
from composer.render.errors import Problem
from composer.render.operators.table import kind_of


def faults(compiled: Compiled) -> Iterator[Problem]:
    """Yield a problem for each resource whose objects could get a name that is too long, or no room for the claim's."""
    for resource in compiled.resources:
        if isinstance(resource.template, Mapping):
            yield from _faults_of(resource)


def _faults_of(resource: CompiledResource) -> Iterator[Problem]:
    rule, kind = resource.source.name_rule, kind_of(resource.template)
    allowed = kind.longest_name if kind else LONGEST_CHILD_NAME
    # A resource that was renamed keeps the names that are made of its earlier ones.
    made_of = max((resource.name, *resource.source.moved_from), key=rule.longest)
    if rule.room(made_of) < 1:
        message = f"leaves no room for the claim's name beside {rule.prefix + made_of!r} and ten characters of a hash"
        yield Problem("TemplateInvalid", message, f"{resource.path}.nameLimit", resource=resource.name)
    elif rule.longest(made_of) > allowed:
        subject = f"{resource.template['kind']} takes names of {allowed} characters at most"
        message = f"{subject}, and those of resource {made_of!r} have up to {rule.longest(made_of)}: set {allowed}"
        yield Problem("TemplateInvalid", message, f"{resource.path}.nameLimit", resource=resource.name)
