"""Names that an operator would refuse are found when the Composition is loaded; the tables here are the oracle."""

from __future__ import annotations

from typing import Any

import pytest

from composer.render.compiler import compile_composition
from composer.validation.object_names import faults

_REF = {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "PostgreSQLInstance"}
_CNPG = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster"}
_ZALANDO = {"apiVersion": "acid.zalan.do/v1", "kind": "postgresql"}
_OTHER = {"apiVersion": "v1", "kind": "ConfigMap"}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a short name of a Cluster": ({"name": "postgres", "template": _CNPG}, ""),
    "a long name of a Cluster": (
        {"name": "database1", "template": _CNPG},
        "Cluster takes names of 50 characters at most, and those of resource 'database1' have up to 51: set 50",
    ),
    "a long name of a Cluster, cut": ({"name": "database1", "template": _CNPG, "nameLimit": 50}, ""),
    "a limit that is above the operator's": (
        {"name": "database12", "template": _CNPG, "nameLimit": 52},
        "Cluster takes names of 50 characters at most, and those of resource 'database12' have up to 52: set 50",
    ),
    "an earlier name that is too long": (
        {"name": "pg", "movedFrom": ["postgrescluster"], "template": _CNPG},
        "Cluster takes names of 50 characters at most, and those of resource 'postgrescluster' have up to 57: set 50",
    ),
    "a team's prefix": ({"name": "postgres", "template": _ZALANDO, "namePrefix": "acid-"}, ""),
    "a long prefix": (
        {"name": "postgres", "template": _ZALANDO, "namePrefix": "data-platform-"},
        "postgresql takes names of 58 characters at most, and those of resource 'postgres' have up to 63: set 58",
    ),
    "no room for the claim's name": (
        {"name": "postgres", "template": _OTHER, "namePrefix": "data-platform-", "nameLimit": 34},
        "leaves no room for the claim's name beside 'data-platform-postgres' and ten characters of a hash",
    ),
    "a kind without a limit of its own": ({"name": "x" * 60, "template": _OTHER}, ""),
}


@pytest.mark.parametrize(("resource", "message"), CASES.values(), ids=CASES)
def test_names_that_are_too_long_are_refused_at_load(resource: dict[str, Any], message: str) -> None:
    compiled = compile_composition({"compositeTypeRef": _REF, "resources": [resource]})

    problems = [(problem.message, problem.path) for problem in faults(compiled)]

    assert problems == ([(message, "spec.resources[0].nameLimit")] if message else [])
