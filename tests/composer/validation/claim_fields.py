"""What each field of a claim becomes by each shipped Composition: `python -m tests.composer.validation.claim_fields`.

Each Composition renders a plain claim, and the same claim with one field more. What differs is what the field is for; a
note or a refusal in a sentence about the field counts as well. The table is a page of docs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from apis.identity import Identity
from composer.render.errors import CompositionError
from composer.render.passwords import secret_names
from composer.render.render import Rendered
from composer.render.request import Request
from composer.validation.samples import all_ready
from fairlead.yaml_files import objects_in
from tests.composer.test_operator_compositions import composition_of
from tests.support.operators.played import ALL

_ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = _ROOT / "docs" / "claim-fields.md"
_NETWORK = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Network"
_SUBNET = f"{_NETWORK}/virtualNetworks/n/subnets"
ENVIRONMENTS: Final = {
    "aws": {
        "subnetIds": "subnet-0a1b2c3d,subnet-1a2b3c4d",
        "securityGroupIds": "sg-0a1b2c3d",
        "securityGroupIds-10.20.0.0-16": "sg-1a2b3c4d",
    },
    "azure": {
        "location": "westeurope",
        "resourceGroup": "databases",
        "delegatedSubnetId": f"{_SUBNET}/s",
        "delegatedSubnetId-10.20.0.0-16": f"{_SUBNET}/t",
        "privateDnsZoneId": f"{_NETWORK}/privateDnsZones/z.postgres.database.azure.com",
    },
    "gcp": {
        "region": "europe-west1",
        "privateNetwork": "projects/p/global/networks/n",
        "privateNetwork-10.20.0.0-16": "projects/p/global/networks/m",
    },
    **{operator.name: dict(operator.environment) for operator in ALL if operator.environment},
}
_CLOUDS: Final = ("aws", "gcp", "azure", "onprem")
COMPOSITIONS: Final[Mapping[str, Any]] = {
    **{cloud: objects_in(_ROOT / "compositions", f"postgres-{cloud}.yaml")[0]["spec"] for cloud in _CLOUDS},
    **{operator.name: composition_of(operator.name) for operator in ALL},
}
# The fields that the composer itself carries out, whatever the Composition is.
BY_THE_COMPOSER: Final = {
    "deletionPolicy": "what becomes of the data",
    "deletionProtection": "a deletion is held",
    "compositionRef.name": "which Composition",
    "compositionSelector.matchLabels": "which Composition",
    "compositionRevisionRef.name": "which revision",
    "connectionSecretName": "the Secret's name",
}
_RESTORED = {"restoreFrom": {"claim": "former"}}
_TOKEN = {"passwordRotation": {"token": "2026-11"}}
_BACKUP = {"aws": "snapshot", "gcp": "projects/p/backups/b", "azure": f"{_NETWORK}/flexibleServers/s"}
# By field: what a claim has that asks for it, and what a claim has that does not.
FIELDS: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "version": ({"version": "17"}, {}),
    "size": ({"size": "large"}, {}),
    "cpu": ({"size": None, "cpu": 8, "memoryGiB": 8}, {"size": None, "cpu": 2, "memoryGiB": 8}),
    "memoryGiB": ({"size": None, "cpu": 2, "memoryGiB": 32}, {"size": None, "cpu": 2, "memoryGiB": 4}),
    "storageGiB": ({"storageGiB": 512}, {}),
    "highAvailability": ({"highAvailability": True}, {}),
    "backup.retentionDays": ({"backup": {"retentionDays": 30}}, {}),
    "backup.startTime": ({"backup": {"startTime": "23:30"}}, {}),
    "maintenanceWindow.day": ({"maintenanceWindow": {"day": "Monday", "hour": 4}}, {}),
    "maintenanceWindow.hour": ({"maintenanceWindow": {"day": "Sunday", "hour": 5}}, {}),
    "network.public": ({"network": {"public": True}}, {}),
    "network.allowedCIDRs": ({"network": {"allowedCIDRs": ["10.20.0.0/16"]}}, {}),
    "databaseName": ({"databaseName": "shop"}, {}),
    "username": ({"username": "shop"}, {}),
    "extensions": ({"extensions": ["pg_cron"]}, {}),
    "parameters": ({"parameters": {"work_mem": "8MB"}}, {}),
    "passwordRotation.token": (_TOKEN, {}),
    "passwordRotation.force": ({"passwordRotation": {"token": "2026-11", "force": True}}, _TOKEN),
    "passwordSecretRef.name": ({"passwordSecretRef": {"name": "orders-password"}}, {}),
    "restoreFrom.claim": (_RESTORED, {}),
    "restoreFrom.backup": ({"restoreFrom": {"backup": ""}}, {}),
    "restoreFrom.time": ({"restoreFrom": {"claim": "former", "time": "2026-11-20T12:00:00Z"}}, _RESTORED),
}


def cell(composition: str, field: str) -> str:
    """Return what a field becomes by a Composition, as the page shows it; empty where nothing shows it."""
    asking, plain = FIELDS[field]
    if field.startswith("restoreFrom.") and "restoreFrom" not in str(COMPOSITIONS[composition]):
        # As the composer says it before it renders.
        return "refused: restores no backup"
    if field == "restoreFrom.backup":
        asking = {"restoreFrom": {"backup": _BACKUP.get(composition, "b")}}
    try:
        after = _rendered(composition, asking)
    except CompositionError as error:
        return f"refused: {error.problems[0].message}"
    try:
        before = _rendered(composition, plain)
    except CompositionError:
        before = {}
    changed = [path for path in after | before if after.get(path) != before.get(path)]
    notes = [str(text) for text in after.get("notes") or () if text.startswith(field.split(".", maxsplit=1)[0])]
    return "; ".join([*_served(changed), *(f"note: {text}" for text in notes)])


def _served(changed: list[str]) -> Iterator[str]:
    paths = dict.fromkeys(path for path in changed if path != "notes")
    if paths:
        yield ", ".join(f"`{path}`" for path in [*paths][:2]) + (" and more" if len(paths) > 2 else "")


def _rendered(composition: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of what is made of a claim, by kind and the last names of their paths, and its notes."""
    spec = {"version": "16", "size": "small", "highAvailability": False, "deletionProtection": False, **more}
    identity = Identity("00000000-0000-0000-0000-000000000000", "shop", "orders")
    claim = {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "orders", "namespace": "shop", "uid": identity.uid},
        "spec": {name: value for name, value in spec.items() if value is not None},
    }
    content = COMPOSITIONS[composition]
    rendered = all_ready(
        Request(
            f"postgres-{composition}",
            content,
            claim,
            str(identity),
            environments={name: ENVIRONMENTS[name] for name in content.get("environments") or ()},
            passwords=secret_names(content, identity, claim),
        )
    )
    return {**_leaves(rendered), "notes": rendered.status.get("notes")}


def _leaves(rendered: Rendered) -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for child in rendered.children:
        parts = {name: part for name, part in child.object.items() if name in ("spec", "data", "stringData")}
        for path, value in _walk(parts):
            leaves.setdefault(f"{child.object['kind']}.{path}", []).append(value)
    return leaves


def _walk(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping) and tree:
        for name, item in tree.items():
            yield from _walk(item, (*path, str(name)))
    else:
        yield ".".join(name for name in path if name not in ("spec", "forProvider")), tree


def page() -> str:
    """Return the page."""
    columns = [*COMPOSITIONS]
    rows = [[f"`{field}`", *(cell(column, field) for column in columns)] for field in FIELDS]
    rows += [[f"`{field}`", *[f"composer: {text}"] * len(columns)] for field, text in BY_THE_COMPOSER.items()]
    table = [["field", *(f"postgres-{column}" for column in columns)], ["---"] * (len(columns) + 1), *rows]
    lines = "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in table)
    return f"{_HEAD}\n{lines}\n"


_HEAD: Final = """\
# Fields of a claim, by Composition

What each field of a PostgreSQLInstance becomes by the Compositions that are shipped: the fields of composed
resources that it sets, a note in `status.notes` where a field changes nothing and nobody must act, or a refusal
before anything is made. Nothing is dropped in silence. A provider may refuse in its turn what its account or server
does not offer (on premises: high availability, backups, storage, networks). `fairlead offers` shows what the
Compositions of a cluster serve, with values and ranges.
Generated: `python -m tests.composer.validation.claim_fields`.
"""

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
