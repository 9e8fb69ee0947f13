"""The custom roles that are shipped hold what the provider's calls need, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from devcloud.gcp.iam.permissions import PERMISSIONS
from providers.gcp.methods import METHODS

ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "gcp"


def _held(name: str) -> list[str]:
    role = json.loads((ROLES / f"{name}.json").read_text(encoding="utf-8"))
    return list(role["includedPermissions"])


def test_shipped_roles_hold_the_permissions_of_the_calls_that_are_made() -> None:
    usual, deleting = _held("fairlead-provider-gcp"), _held("fairlead-provider-gcp-delete")

    assert sorted({*usual, *deleting}) == sorted({PERMISSIONS[method] for method in METHODS})
    assert deleting == [permission for permission in sorted({*usual, *deleting}) if permission.endswith(".delete")]
    assert not set(usual) & set(deleting)
