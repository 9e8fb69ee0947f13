"""What is written of a thing that was observed: a name of its own, and the fields that its kind has."""

from __future__ import annotations

import pytest

from fairlead.imports.manifests import managed_resource, observed_fields
from fairlead.imports.observing import obstacle
from fairlead.imports.thing import Thing
from fairlead.rendering import shipped_kinds
from runtime.objects import Object
from tests.composer.factories import condition

DATABASE = shipped_kinds("onprem.fairlead.dev_*.yaml")["PostgresDatabase.onprem.fairlead.dev"]


def test_every_field_that_was_observed_is_typed_and_no_other() -> None:
    observed = {"databaseName": "orders", "connectionLimit": -1, "parameters": {}, "version": "16", "not": "a field"}
    obj = {"status": {"observed": {"forProvider": {**observed, "extensions": ["citext", "plpgsql"]}}}}
    thing = Thing("PostgresDatabase", "orders")

    fields = observed_fields(obj, thing, DATABASE.schema or {})
    written = managed_resource(DATABASE.resource, "default", thing, "shop", fields)

    assert fields == {"databaseName": "orders", "username": "orders", "version": "16", "extensions": ["citext"]}
    assert (written["spec"]["forProvider"], written["spec"]["managementPolicy"]) == (fields, "Manage")
    assert written["metadata"]["annotations"] == {"fairlead.dev/external-name": "orders"}


def _looked_at(*conditions: Object, observed_generation: int = 1) -> Object:
    status = {"observedGeneration": observed_generation, "conditions": list(conditions)}
    return {"metadata": {"generation": 1}, "status": status}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (_looked_at(), ""),
        (_looked_at(condition("Synced", "False", "CloudUnreachable")), ""),
        (_looked_at(condition("Synced", "False", "ResourcePending")), "ResourcePending!"),
        (_looked_at(condition("Stalled", "True", "NotAllowed")), "NotAllowed!"),
        (_looked_at(condition("Stalled", "True", "NotAllowed"), observed_generation=0), ""),
    ],
)
def test_a_look_ends_early_with_the_providers_sentence(obj: Object, text: str) -> None:
    assert obstacle(obj) == text
