"""`fairlead validate`: what an API server and the composer would say, without either."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairlead.cli import run
from tests.fairlead.test_rendering import CLAIM, COMPOSITION

BACKUP = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusters.postgresql.cnpg.io
spec:
  group: postgresql.cnpg.io
  scope: Namespaced
  names: {kind: Cluster, plural: clusters}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [metadata, spec]
        properties:
          metadata: {type: object}
          spec:
            type: object
            properties:
              instances: {type: integer}
"""
MANAGED = """\
apiVersion: onprem.fairlead.dev/v1alpha1
kind: PostgresDatabase
metadata: {name: orders}
spec:
  forProvider: {databaseName: orders, username: orders}
"""
FOREIGN = COMPOSITION.replace("apiVersion: onprem.fairlead.dev/v1alpha1", "apiVersion: postgresql.cnpg.io/v1").replace(
    "kind: PostgresDatabase", "kind: Cluster"
)
SETTLED = COMPOSITION.replace("vars.limit", "env.defaults.limit").replace(
    "  team: shop\n", "  team: shop\n  limit: '20'\n"
)
_SPEC = FOREIGN.partition("        forProvider:")[0] + "        instances: 3\n"


class Case(msgspec.Struct, frozen=True):
    text: str
    exit_code: int
    says: str
    flags: tuple[str, ...] = ()


CASES = {
    "a claim": Case(CLAIM, 0, "PostgreSQLInstance orders is valid"),
    "a composition beside its settings": Case(COMPOSITION, 0, "Composition two-steps is valid"),
    "a misspelt field of a claim": Case(
        CLAIM.replace("size:", "sise:"), 2, "file.yaml:8:3: spec.sise: unknown field 'sise', did you mean 'size'?"
    ),
    "a value out of its range": Case(CLAIM + "  storageGiB: 0\n", 2, "0 is less than"),
    "a text that is too long": Case(CLAIM + f"  databaseName: {'a' * 99}\n", 2, "at most"),
    "a name that is reserved": Case(CLAIM + "  databaseName: postgres\n", 2, "this database name is reserved"),
    "a kind that is not ours": Case("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", 0, "remark: "),
    "a managed resource": Case(MANAGED, 0, "PostgresDatabase orders is valid"),
    "a misspelt field of a managed resource": Case(
        MANAGED.replace("username", "usrname"), 2, "unknown field 'usrname', did you mean 'username'?"
    ),

    "a misspelt field of a child": Case(
        COMPOSITION.replace("connectionLimit", "conectionLimit"), 2, "did you mean 'connectionLimit'?"
    ),
    "a misspelt field of the claim in an expression": Case(
        COMPOSITION.replace("claim.spec.size", "claim.spec.sise"), 2, "file.yaml:12:41: spec.variables.limit: 'sise'"
    ),
    "a setting that every claim needs and nobody wrote": Case(
        SETTLED.replace("  limit: ", "  limti: "), 2, "is undefined, did you mean 'limti'?"
    ),
    "a setting of another type than the child's": Case(
        SETTLED, 2, "wants integer, found a text"
    ),
    "a setting that is read as a number": Case(
        SETTLED.replace("env.defaults.limit", "env.defaults.limit | int"), 0, "is valid"
    ),
    "a cycle": Case(
        COMPOSITION.replace("  - name: settings\n", "  - name: settings\n    dependsOn: [database]\n"), 2, "Cycle"
    ),
    "sizes that the composition forgot": Case(
        COMPOSITION.replace("    dependsOn: [settings]\n", ""), 2, "remark: ", ("--strict",)
    ),
    "a foreign kind that nobody described": Case(_SPEC, 2, "is not installed"),

    "another version of a kind of claim": Case(
        CLAIM.replace("/v1alpha1", "/v1"),
        2,
        "PostgreSQLInstance is served as database.fairlead.dev/v1alpha1, not as database.fairlead.dev/v1",
    ),
    "a kind of claim in another group": Case(
        CLAIM.replace("database.fairlead.dev/v1alpha1", "databases.fairlead.dev/v1alpha1"),
        2,
        "PostgreSQLInstance is served as database.fairlead.dev/v1alpha1, not as databases.fairlead.dev/v1alpha1",
    ),
    "a line that is indented too deep": Case(
        CLAIM.replace("  size: small", "    size: small"),
        2,
        "file.yaml:8:5: not YAML: line 8 is indented deeper than line 7, which has a value already",
    ),
    "a tab": Case(CLAIM.replace("  size", "\tsize"), 2, "file.yaml:8:1: not YAML: a tab; YAML indents by spaces"),
    "one fault is no plural": Case(CLAIM.replace("small", "tiny"), 2, "0 valid, 1 fault\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_file_is_judged(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(case.text)

    code = run(["validate", str(file), *case.flags])
    output = capsys.readouterr()

    assert code == case.exit_code, output.err
    assert case.says in output.out + output.err


def test_a_run_with_nothing_to_check_is_a_mistake() -> None:
    assert run(["validate"]) == 64
