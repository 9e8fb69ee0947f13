"""A request for a render, and answers to it that no render gives, as of a worker that was taken over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from apis import names
from apis.identity import Identity, child_name
from composer.render.floors import Floor
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from tests.composer.factories import claim

IDENTITY = "claim-uid@shop/orders"
COMPOSITION: dict[str, Any] = {
    "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
    "variables": {"size": "{{ claim.spec.size }}"},
    "resources": [
        {
            "name": "network",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"labels": {"team": "data"}, "annotations": {"note": "{{ claim.spec.size }}"}},
                "data": {"zone": "a", "size": "{{ vars.size }}", "list": [1, "{{ 2 }}", None]},
            },
        },
        {
            "name": "database",
            "dependsOn": ["network"],
            "floors": ["spec.storage.gib"],
            "template": {
                "apiVersion": "onprem.fairlead.dev/v1alpha1",
                "kind": "PostgresDatabase",
                "spec": {"providerConfigRef": {"name": "default"}, "name": "{{ resources.network.metadata.name }}"},
            },
        },
        {
            "name": "kept",
            "stateful": True,
            "readyWhen": "{{ resources.kept.status.phase == 'Running' }}",
            "template": {"apiVersion": "acid.zalan.do/v1", "kind": "postgresql", "spec": {}},
        },
        {
            "name": "each",
            "forEach": "{{ ['x', 'y'] }}",
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "{{ each.key }}"}},
        },
        {"name": "off", "when": "{{ false }}", "template": {"apiVersion": "v1", "kind": "ConfigMap"}},
        {
            "name": "later",
            "template": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": {"of": "{{ resources.kept.status.address }}"},
            },
        },
    ],
    "connection": {"from": "database", "application": "{{ claim.metadata.name }}"},
    "status": {"endpoint": "{{ resources.kept.status.phase }}", "late": {"x": "{{ resources.kept.status.no }}"}},
}


def _live(resource: str, api_version: str, kind: str, **status: Any) -> Observed:
    name = child_name(Identity("claim-uid", "shop", "orders"), resource)
    return Observed(
        resource, "", {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "status": status}
    )


def request_of_all() -> Request:
    return Request(
        "postgres",
        COMPOSITION,
        claim(),
        IDENTITY,
        observed=(
            _live("network", "v1", "ConfigMap"),
            _live("kept", "acid.zalan.do/v1", "postgresql", phase="Running"),
        ),
        floors=(Floor("database", "", "PostgresDatabase.onprem.fairlead.dev", "spec.storage.gib", 20),),
    )


Plain = dict[str, Any]


def _set(*path: Any, to: Any) -> Callable[[Plain], None]:
    def forge(answer: Plain) -> None:
        below: Any = answer
        for step in path[:-1]:
            below = below[step]
        below[path[-1]] = to

    return forge


def _without(*path: Any) -> Callable[[Plain], None]:
    def forge(answer: Plain) -> None:
        below: Any = answer
        for step in path[:-1]:
            below = below[step]
        del below[path[-1]]

    return forge


def _of(number: int, *path: Any, to: Any) -> Callable[[Plain], None]:
    return _set("children", number, "object", *path, to=to)


def of_metadata(*path: Any, to: Any) -> Callable[[Plain], None]:
    return _of(1, "metadata", *path, to=to)


def _twice(answer: Plain) -> None:
    answer["children"].append(answer["children"][0])


def _many(answer: Plain) -> None:
    answer["children"] *= 30


FORGED: dict[str, Callable[[Plain], None]] = {
    "another namespace": of_metadata("namespace", to="alice"),
    "another name": of_metadata("name", to="app-database-aaaaaaaaaa"),
    "the name of another resource": of_metadata(
        "name", to=child_name(Identity("claim-uid", "shop", "orders"), "network")
    ),
    "a generateName": of_metadata("generateName", to="x-"),
    "another claim's label": of_metadata("labels", names.CLAIM_LABEL, to="other-uid"),
    "no label of ours": _without("children", 1, "object", "metadata", "labels", names.CLAIM_LABEL),
    "a label that the template lacks": of_metadata("labels", "argocd.argoproj.io/instance", to="x"),
    "a label with another text": _of(0, "metadata", "labels", "team", to="other"),
    "a label of Fairlead's": of_metadata("labels", "fairlead.dev/ephemeral", to="true"),
    "a mark": of_metadata("annotations", "fairlead.dev/external-name", to="alices-database"),
    "a mark of a cloud's group": of_metadata("annotations", "onprem.fairlead.dev/external-name", to="x"),
    "another deletion policy": _of(1, "spec", "deletionPolicy", to="Delete"),
    "no deletion policy": _without("children", 1, "object", "spec", "deletionPolicy"),
    "no data as it once was": _without("children", 2, "object", "metadata", "annotations", names.STATEFUL),
    "a teardown word": of_metadata("annotations", names.TEARDOWN, to="uid/Delete"),
    "leave to adopt": of_metadata("annotations", names.ADOPT, to="none"),
    "another claim's name": of_metadata("annotations", names.CLAIM_NAME, to="other"),
    "another resource's name": of_metadata("annotations", names.RESOURCE, to="network"),
    "another Composition's name": of_metadata("annotations", names.COMPOSITION, to="other"),
    "another owner": of_metadata("ownerReferences", 0, "uid", to="other"),
    "a second owner": of_metadata("ownerReferences", to=[]),
    "no owner": _without("children", 1, "object", "metadata", "ownerReferences"),
    "an owner of what has none": _of(2, "metadata", "ownerReferences", to=[]),
    "a finalizer": of_metadata("finalizers", to=["example.dev/never"]),
    "another finalizer": _of(2, "metadata", "finalizers", to=["example.dev/never"]),
    "no finalizer": _without("children", 2, "object", "metadata", "finalizers"),
    "a uid": of_metadata("uid", to="child-uid"),
    "a deletion": of_metadata("deletionTimestamp", to="2026-01-01T00:00:00Z"),
    "metadata that is a text": _of(1, "metadata", to="x"),
    "metadata without labels": _without("children", 1, "object", "metadata", "labels"),
    "another kind": _of(1, "kind", to="Secret"),
    "another version": _of(1, "apiVersion", to="v1"),
    "no kind": _without("children", 1, "object", "kind"),
    "a status": _of(1, "status", to={"connection": {}}),
    "a field that the template lacks": _of(1, "spec", "managementPolicy", to="Observe"),
    "a field with another value": _of(1, "spec", "providerConfigRef", "name", to="admin"),
    "a field without its value": _without("children", 1, "object", "spec", "providerConfigRef"),
    "a text instead of a map": _of(1, "spec", "providerConfigRef", to="admin"),
    "a list that is longer": _of(0, "data", "list", to=[1, 2, None, 3]),
    "another item of a list": _of(0, "data", "list", 0, to=2),
    "true instead of a number": _of(0, "data", "list", 0, to=True),
    "a floor that is no amount": _of(1, "spec", "storage", "gib", to="many"),
    "beside a floor": _of(1, "spec", "storage", "class", to="fast"),
    "a floor of its own": _set("children", 1, "floors", to={"spec.name": 3}),
    "a kept value of its own": _set("children", 1, "kept", to=[{"path": "spec.name", "value": 3, "wanted": 2}]),
    "a resource that there is not": _set("children", 1, "resource", to="other"),
    "a key of what is not repeated": _set("children", 1, "key", to="x"),
    "no key of what is repeated": _set("children", 3, "key", to=""),
    "no data where there are": _set("children", 2, "stateful", to=False),
    "data where there are none": _set("children", 1, "stateful", to=True),
    "an order of its own": _set("children", 1, "depends_on", to=["other"]),
    "no order": _set("children", 1, "depends_on", to=[]),
    "an order that ends nowhere": _set("children", 1, "depends_on", to=["network", "database"]),
    "readiness of what is not there": _set("children", 1, "ready", to=True),
    "one child twice": _twice,
    "more children than are allowed": _many,
    "nothing": _set("children", to=[]),
    "a resource left out": _without("children", 1),
    "a child that waits": _set("waiting", 0, "resource", to="network"),
    "waiting for what is not there": _set("waiting", 0, "waits_for", to="other"),
    "another source of the connection": _set("connection", "from", to="kept"),
    "a host": _set("connection", "host", to="evil.example.com"),
    "a Secret": _set("connection", "secretRef", to={"resource": "kept", "name": "x", "keys": {}}),
    "no source of the connection": _without("connection", "from"),
    "a field of the status": _set("status", "binding", to={"name": "other"}),
}


def forged(request: Request, forge: Callable[[Plain], None]) -> Rendered:
    answer = msgspec.json.decode(msgspec.json.encode(render(request)))
    forge(answer)
    return msgspec.json.decode(msgspec.json.encode(answer), type=Rendered)
