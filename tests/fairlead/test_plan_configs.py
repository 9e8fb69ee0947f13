"""What `fairlead plan` says of an edited ProviderConfig: what the API server refuses, what becomes of resources."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.plan_clouds import Clouds
from fairlead.plan_configs import FIXED, EditedConfig, effects_on, refused_edit
from providers.gcp import INSTANCES
from runtime.objects import Object
from tests.architecture import tree

_SPEC: Object = {"project": "shop", "credentials": {"source": "MetadataServer"}, "allowedNamespaces": {"selector": {}}}
_HOME: Object = {"metadata": {"name": "team", "labels": {}}}
_FIELDS: Object = {"region": "eu", "databaseVersion": "POSTGRES_16", "tier": "db-custom-2-4096", "dataDiskSizeGb": 20}
_INSTANCE: Object = {
    "apiVersion": INSTANCES.resource.api_version,
    "kind": INSTANCES.resource.kind,
    "metadata": {"name": "orders", "namespace": "team", "uid": "u", "generation": 1, "annotations": {}, "labels": {}},
    "spec": {"forProvider": _FIELDS},
    "status": {},
}


def _config(in_use: bool = True, **changed: Any) -> Object:  # noqa: FBT001, FBT002 - a case
    spec = {name: value for name, value in {**_SPEC, **changed}.items() if value is not None}
    return {"metadata": {"name": "default"}, "spec": spec, "status": {"inUse": in_use}}


def test_what_is_fixed_is_what_the_crd_says() -> None:
    rules: dict[str, set[str]] = {}
    for _, crd in tree.documents(tree.CRDS):
        if crd["spec"]["names"]["kind"] == "ProviderConfig":
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            (rule,) = (text["rule"] for text in schema["x-kubernetes-validations"] if "inUse" in text["rule"])
            known = schema["properties"]["spec"]["properties"]
            rules[crd["spec"]["group"].partition(".")[0]] = {name for name in known if f"oldSelf.spec.{name}" in rule}

    assert rules == {cloud: set(fields) for cloud, fields in FIXED.items()}


@pytest.mark.parametrize(
    ("cloud", "before", "after", "says"),
    [
        ("gcp", _config(), _config(project="other"), "project: fixed"),
        ("gcp", _config(in_use=False), _config(project="other"), ""),
        ("gcp", _config(), _config(limits={"storageGiB": 10}), ""),
        ("gcp", None, _config(), ""),
        ("aws", _config(region="a"), _config(region="b"), "region: fixed"),
        ("aws", _config(), _config(accountID="1"), ""),
        ("aws", _config(accountID="1"), _config(accountID="2"), "accountID: fixed"),
        ("aws", _config(accountID="1"), _config(), "accountID: fixed"),
    ],
)
def test_an_edit_of_what_is_in_use_is_refused_as_the_api_server_does(
    cloud: str, before: Object | None, after: Object, says: str
) -> None:
    refusal = refused_edit(cloud, before, after)

    assert says in refusal
    assert bool(says) == bool(refusal)


_NOT_KNOWN = "its provider has not said yet"
EFFECTS = {
    "nothing is another": (_config(), _config(), []),
    "its namespace is shut out": (
        _config(), _config(allowedNamespaces={"names": ["x"]}), [("refused", "may use; nothing is looked at")],
    ),
    "it is let in again": (_config(allowedNamespaces={}), _config(), [("not known", _NOT_KNOWN)]),
    "another endpoint": (
        _config(), _config(endpoint="https://sql.example.org"), [("not known", "by the new endpoint shows")],
    ),
    "a new ProviderConfig": (None, _config(), [("not known", _NOT_KNOWN)]),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "effects"), EFFECTS.values(), ids=EFFECTS.keys())
def test_what_becomes_of_a_resource(before: Object | None, after: Object, effects: list[tuple[str, str]]) -> None:
    clouds = Clouds(datetime(2026, 11, 28, tzinfo=UTC), home=_HOME)

    changes = effects_on(INSTANCES.resource, _INSTANCE, EditedConfig(before, after), clouds)

    assert [change.effect for change in changes] == [effect for effect, _ in effects]
    assert all(says in change.why for change, (_, says) in zip(changes, effects, strict=True))
