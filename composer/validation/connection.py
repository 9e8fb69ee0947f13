"""What a Composition says of the connection, checked before it is used. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from composer.connection.secret import LEADING_KEYS, POSTGRESQL_KEYS, STRUCTURED
from composer.render.compiler import Compiled
from composer.render.errors import Problem, near
from composer.render.template import Leaf

_PATH: Final = "spec.connection"
_SECRET_PARTS: Final = ("resource", "name", "keys")
_CA_PARTS: Final = ("kind", "name", "key")


def connection_faults(compiled: Compiled) -> Iterator[Problem]:
    """Yield what is wrong with `spec.connection`."""
    connection = compiled.connection
    if not connection:
        return
    if "password" in connection:
        yield Problem("TemplateForbidden", "a password never enters a template", f"{_PATH}.password")
    if "from" in connection and "secretRef" in connection:
        yield _fault("from and secretRef are given: one of them", "")
    elif "secretRef" in connection:
        yield from _secret_problems(connection["secretRef"], compiled)
    else:
        yield from _source_problems(connection.get("from"), compiled, "from")
        yield from _replaced_key_problems(connection)
    if "caRef" in connection:
        yield from _ca_problems(connection["caRef"])


def _source_problems(source: Any, compiled: Compiled, at: str) -> Iterator[Problem]:
    resources = {resource.name: resource for resource in compiled.resources}
    if source is None:
        yield _fault(f"connection.{at} must name a resource", "")
    elif isinstance(source, Leaf) or source not in resources:
        message = f"connection.{at} must name a resource, {str(source)[:63]!r} is none{near(str(source), resources)}"
        yield _fault(message, at)
    elif resources[source].source.for_each:
        yield _fault(f"resource {source!r} is composed by forEach", at)


def _replaced_key_problems(connection: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse to lead applications, with the password of one server, to another one or past its certificate."""
    for name in LEADING_KEYS:
        if name in connection:
            message = f"{name} is what the resource of `from` publishes and cannot be replaced"
            way = f"give another address a key of its own, for example pooler-{name}"
            yield Problem("TemplateForbidden", f"{message}; {way}", f"{_PATH}.{name}")


def _secret_problems(named: Any, compiled: Compiled) -> Iterator[Problem]:
    if not isinstance(named, Mapping) or not set(named) <= set(_SECRET_PARTS):
        yield _fault(f"must be a map of {', '.join(_SECRET_PARTS)}", "secretRef")
        return
    yield from _source_problems(named.get("resource"), compiled, "secretRef.resource")
    if not isinstance(named.get("name"), str | Leaf):
        yield _fault("must be the Secret's name, or an expression of it", "secretRef.name")
    keys = named.get("keys")
    if not isinstance(keys, Mapping) or not keys or not all(isinstance(theirs, str) for theirs in keys.values()):
        yield _fault("must map keys of the connection to keys of that Secret, as plain texts", "secretRef.keys")
        return
    type_ = compiled.connection.get("type", "postgresql")
    provided = {*keys, *(set(compiled.connection) - STRUCTURED)}
    missing = [name for name in POSTGRESQL_KEYS if name not in provided] if type_ == "postgresql" else []
    if missing:
        yield _fault(f"nothing gives {', '.join(missing)}: name them under keys, or set single keys", "secretRef")


def _ca_problems(named: Any) -> Iterator[Problem]:
    if not isinstance(named, Mapping) or not {"name", "key"} <= set(named) <= set(_CA_PARTS):
        yield _fault("must be a map of name and key, and kind where it is a ConfigMap", "caRef")
    elif named.get("kind", "Secret") not in ("Secret", "ConfigMap"):
        yield _fault("must be Secret or ConfigMap", "caRef.kind")


def _fault(message: str, at: str) -> Problem:
    return Problem("TemplateInvalid", message, f"{_PATH}.{at}".rstrip("."))
