"""Crossplane's definitions and Compositions become ours: valid, with the same values; what has no place is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from composer.render.render import render
from composer.render.request import Request
from composer.render.schema import defaulted
from fairlead.cli import run
from fairlead.exits import Exit
from fairlead.imports.crossplane.compositions import ClaimKind, converted
from runtime.objects import Object

_EXAMPLES: Final = Path(__file__).parent / "crossplane"
REMARKS: Final = {
    "aws": [
        "88:13: vpcSecurityGroupIdSelector leads to what has no kind here",
        "113:11: check of type MatchString is left out: RDSInstance says by itself when it is ready",
    ],
    "azure": ["41:13: ResourceGroup of azure.upbound.io/v1beta1 has no kind here"],
    "gcp": ["91:7: function function-go-templating is a program: write what it makes by hand"],
    "onprem": [
        "27:7: Role of postgresql.sql.crossplane.io/v1alpha1 has no kind here",
        "35:85: allowConnections has no place in PostgresDatabase",
    ],
}


@pytest.mark.parametrize("cloud", REMARKS)
def test_a_configuration_becomes_a_kind_of_claim_and_a_valid_composition(
    cloud: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = _EXAMPLES / f"{cloud}.yaml"

    assert run(["migrate", "crossplane", str(source), "-o", str(tmp_path)]) == Exit.DONE
    printed = capsys.readouterr()
    crd, _, composition = map(Path, printed.out.split())

    shown = zip(printed.err.splitlines(), REMARKS[cloud], strict=True)
    assert [line.removeprefix(f"{source}:")[: len(remark)] for line, remark in shown] == REMARKS[cloud]
    assert run(["crd", "check", str(crd)]) == Exit.DONE
    assert run(["validate", str(composition), "--crds", str(tmp_path)]) == Exit.DONE, capsys.readouterr().err


def _format(text: str) -> dict[str, Any]:
    return {"type": "string", "string": {"type": "Format", "fmt": text}}


def _text(kind: str, **options: str) -> dict[str, Any]:
    return {"type": "string", "string": {"type": kind, **options}}


def _convert(kind: str) -> dict[str, Any]:
    return {"type": "convert", "convert": {"toType": kind}}


def _math(**options: Any) -> dict[str, Any]:
    return {"type": "math", "math": options}


_PATTERNS: Final = [
    {"type": "literal", "literal": "a", "result": "of a"},
    {"type": "regexp", "regexp": "^db-.*", "result": "of db"},
]
_ELSE: Final = {"type": "match", "match": {"patterns": _PATTERNS, "fallbackTo": "Value", "fallbackValue": "of none"}}
_INPUT: Final = {"type": "match", "match": {"patterns": _PATTERNS, "fallbackTo": "Input"}}
TRANSFORMS: Final[list[tuple[list[dict[str, Any]], Any, Any]]] = [
    ([], "plain", "plain"),
    ([], None, "of the base"),
    ([{"type": "map", "map": {"small": "db.t3.micro", "it's": "db.m5.large"}}], "it's", "db.m5.large"),
    ([_math(multiply=1024), _format("%dMi")], 2, "2048Mi"),
    ([_math(type="ClampMin", clampMin=20), _convert("string")], 5, "20"),
    ([_math(type="ClampMax", clampMax=20), _convert("string")], 50, "20"),
    ([_format("100%% of %s-%v")], "x", None),
    ([_format("100%% of %s")], "x", "100% of x"),
    ([_text("Convert", convert="ToUpper")], "x", "X"),
    ([_text("Convert", convert="ToSha1")], "x", None),
    ([_text("TrimPrefix", trim="zones/")], "zones/a", "a"),
    ([_text("TrimPrefix", trim="zones/")], "a", "a"),
    ([_text("TrimSuffix", trim="-prod")], "shop-prod", "shop"),
    ([_text("Regexp", regexp="a")], "x", None),
    ([_convert("string")], True, "true"),
    ([_convert("int"), _math(multiply=2), _convert("string")], "21", "42"),
    ([_convert("bool"), _convert("string")], "t", "true"),
    ([_convert("object")], "{}", None),
    ([_ELSE], "a", "of a"),
    ([_ELSE], "db-7", "of db"),
    ([_ELSE], "b", "of none"),
    ([_INPUT], "b", "b"),
    ([{"type": "match", "match": {"patterns": [{"type": "regexp", "regexp": "a|b", "result": "1"}]}}], "a", None),
    ([{"type": "made-up"}], "a", None),
]


@pytest.mark.parametrize(("transforms", "value", "wanted"), TRANSFORMS)
def test_a_patch_gives_what_crossplane_gives_or_is_said(
    transforms: list[dict[str, Any]], value: Any, wanted: str | None
) -> None:
    base = {"apiVersion": "rds.aws.upbound.io/v1beta3", "kind": "Instance",
            "spec": {"forProvider": {"tags": {"v": "of the base"}}}}  # fmt: skip
    patch = {"fromFieldPath": "spec.v", "toFieldPath": "spec.forProvider.tags.v", "transforms": transforms}
    theirs: Object = {"metadata": {"name": "c"}, "spec": {"resources": [{"base": base, "patches": [patch]}]}}
    types = {bool: "boolean", int: "integer"}
    own: Object = {name: {"type": "object"} for name in ("passwordRotation", "passwordSecretRef")}
    spec: Object = {"type": "object", "properties": {**own, "v": {"type": types.get(type(value), "string")}}}
    claim = {"apiVersion": "fairlead.example.org/v1", "kind": "Claim", "metadata": {"name": "n", "namespace": "shop"},
             "spec": {} if value is None else {"v": value}}  # fmt: skip

    conversion = converted(theirs, ClaimKind("fairlead.example.org/v1", "Claim", spec, {}), {"RDSInstance": ()})
    (child,) = render(
        Request(
            composition_name="c",
            composition=conversion.composition["spec"],
            claim=defaulted(claim, {"type": "object", "properties": {"spec": spec}}),
            identity="00000000-0000-0000-0000-000000000000@shop/n",
        )
    ).children

    assert bool(conversion.remarks) is (wanted is None)
    assert child.object["spec"]["forProvider"]["tags"]["v"] == (wanted or "of the base")
