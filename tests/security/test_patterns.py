"""Texts that lead further than their field are refused by the pattern of the field, before anybody reads them."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from fairlead.yaml_files import objects_in
from tests.architecture.tree import CRDS

_CLAIMS: Final = "database.fairlead.dev_postgresqlinstances.yaml"
_INSTANCES: Final = "gcp.fairlead.dev_cloudsqlinstances.yaml"
_BACKUP: Final = "forProvider.restoreFrom.backup"
_HOSTS: Final = (
    "http://169.254.169.254",
    "/var/run/postgresql",
    "@fairlead",
    "user:pass@127.0.0.1",
    "127.0.0.1,evil.example",
    "127.0.0.1\n",
    "127.0.0.1 sslmode=disable",
)
_NAMES: Final = ("../alice/app-connection", "x?y#z", "a/b", "%2e%2e", "Upper", "a..b", "-a", "a\n")
REFUSED: Final = (
    *((_CLAIMS, "extensions", text) for text in ("pg_trgm;x", 'pg_trgm"', "PG_TRGM", "pg_trgm\\n", "pg_trgm\n")),
    *((_CLAIMS, name, "orders\n") for name in ("databaseName", "username")),
    (_INSTANCES, _BACKUP, "PROJECTS/SHOP/BACKUPS/A"),
    (_INSTANCES, _BACKUP, "projects/shop/backups/a?x=b"),
    (_INSTANCES, _BACKUP, "projects/shop/backups/a/"),
    (_INSTANCES, _BACKUP, "projects/shop/backups/%61"),
    (_INSTANCES, _BACKUP, "a"),
    (_INSTANCES, _BACKUP, "projects/shop/backups/a,projects/shop/backups/b"),
    ("gcp.fairlead.dev_providerconfigs.yaml", "endpoint", "https://user@example.org"),
    *(("onprem.fairlead.dev_providerconfigs.yaml", "host", text) for text in _HOSTS),
    *(("onprem.fairlead.dev_postgresdatabases.yaml", "passwordSecretRef.name", text) for text in _NAMES),
)


@pytest.mark.parametrize(("crd", "field", "text"), REFUSED, ids=[f"{field} {text!r}" for _, field, text in REFUSED])
def test_a_text_is_refused_by_the_pattern_of_its_field(crd: str, field: str, text: str) -> None:
    (definition,) = objects_in(CRDS, crd)
    schema: Any = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for step in field.split("."):
        schema = schema["properties"][step]
    pattern = schema.get("items", schema)["pattern"]

    # RE2's `$` is the end of the text, Python's one before a line's end, too.
    assert pattern.startswith("^")
    assert not re.search(re.sub(r"\$$", r"\\Z", pattern), text)
