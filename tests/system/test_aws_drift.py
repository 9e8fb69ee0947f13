"""Every mutable field of an RDSInstance has a row in the table of what becomes of changes behind our back."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

from tests.system.aws_drift_matrix import NOT_IN_RDS, ROWS, SHARES

_CRD = Path(__file__).resolve().parents[2] / "crds" / "aws.fairlead.dev_rdsinstances.yaml"
_GROWS_ONLY = {"allocatedStorage", "engineVersion"}


def test_every_mutable_field_has_its_row() -> None:
    crd = YAML(typ="safe").load(_CRD)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = " ".join(rule["rule"] for rule in spec["x-kubernetes-validations"])
    fixed = set(re.findall(r"oldSelf\.forProvider\.(\w+)", rules)) - _GROWS_ONLY | {"engine"}

    mutable = set(spec["properties"]["forProvider"]["properties"]) - fixed - NOT_IN_RDS
    assert sorted(row.path for row in ROWS) == sorted(mutable)
    assert [row for share in SHARES for row in share if row not in ROWS] == []
    assert sum(len(share) for share in SHARES) == len(ROWS)
