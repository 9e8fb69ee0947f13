"""The elements of one resource, rendered without any template: what is left of it where the whole claim fails. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from composer.render.render import Child, Rendered
from composer.render.request import Request

_WITHOUT: Final = frozenset({"connection", "status", "rollout"})
_OF_ELEMENTS: Final = ("name", "when", "forEach", "namePrefix", "nameLimit")
_TEMPLATE: Final = {"apiVersion": "v1", "kind": "ConfigMap"}
_ENVIRONMENT: Final = re.compile(r"\benv\b")
_VARIABLE: Final = re.compile(r"\bvars\.(\w+)")


def request_of(request: Request, name: str) -> Request:
    """Return the request whose render has the elements of this resource alone; of the others what lives is known."""
    composition = request.composition
    never = _unused(composition)
    resources = [
        {field: resource[field] for field in _OF_ELEMENTS if field in resource}
        | {"template": _TEMPLATE}
        | ({} if resource["name"] == name else {"dependsOn": [never]})
        for resource in composition["resources"]
    ]
    kept = {field: part for field, part in composition.items() if field not in _WITHOUT}
    return msgspec.structs.replace(
        request,
        composition=kept | {"resources": [{"name": never, "template": _TEMPLATE}, *resources]},
        floors=(),
    )


def elements_in(rendered: Rendered, name: str) -> tuple[Child, ...] | None:
    """Return the elements of a resource out of such a render; None where they hang on what is not known yet."""
    if name in {waiting.resource for waiting in rendered.waiting}:
        return None
    return tuple(child for child in rendered.children if child.resource == name)


def reads_environments(composition: Mapping[str, Any], name: str) -> bool:
    """Return whether the elements of a resource may hang on an environment, which may be missing."""
    (resource,) = (resource for resource in composition["resources"] if resource["name"] == name)
    variables = composition.get("variables") or {}
    texts, seen = [str(resource.get(field, "")) for field in ("when", "forEach")], set[str]()
    while texts:
        text = texts.pop()
        if _ENVIRONMENT.search(text):
            return True
        read = {variable for variable in _VARIABLE.findall(text) if variable in variables} - seen
        seen |= read
        texts += (str(variables[variable]) for variable in read)
    return False


def _unused(composition: Mapping[str, Any]) -> str:
    """Return a name that no resource has: what is never there, and what nothing waits for in vain."""
    names = {resource["name"] for resource in composition["resources"]}
    return next(name for name in (f"never-{number}" for number in range(len(names) + 1)) if name not in names)
