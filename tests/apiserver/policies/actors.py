"""Who acts, on what, and the rules by which the admission policies let them: shared by the tests of the policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.support.api import JSON_PATCH, MERGE, Api, ApiError, JsonObject
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, PROVIDER_CONFIG, REVISION, Kind

COMPOSER = "system:serviceaccount:fairlead-system:fairlead-composer"
ONPREM = "system:serviceaccount:fairlead-onprem:fairlead-provider-onprem"
OTHER_CLOUD = "system:serviceaccount:fairlead-aws:fairlead-provider-aws"
CALLED_SO = "system:serviceaccount:fairlead-ev-il:fairlead-provider-ev-il"
DEVELOPER, PLATFORM = "developer", "platform"
PREFIX = "fairlead.dev/"
CHILD, CONFIG = DATABASE, PROVIDER_CONFIG
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
IDENTITY = {"identity": f"{UID}@shop/orders"}
INSTRUCTION = {"teardown": f"{UID}/Delete"}
EXTERNAL_REFERENCE = {"external-name": "orders_1", "incarnation": "16384", "account": "7301"}
_CONTENT = {"compositeTypeRef": {"apiVersion": "a.b/v1", "kind": "A"}, "resources": [{"name": "a", "template": {}}]}
_SPECS: dict[Kind, JsonObject] = {
    CLAIM: {"version": "16", "size": "small"},
    CHILD: {"forProvider": {"databaseName": "orders", "username": "orders"}},
    CONFIG: {"host": "127.0.0.1", "adminSecretRef": {"name": "a"}, "caSecretRef": {"name": "b"}},
    COMPOSITION: _CONTENT,
    REVISION: {"compositionName": "a", "revision": 1, "hash": "0", "composition": _CONTENT},
}


@dataclass(frozen=True, slots=True)
class As:
    """Requests in another user's name (Kubernetes, "User impersonation")."""

    api: Api
    user: str

    async def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> JsonObject:
        headers = {"Impersonate-User": self.user, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        async with self.api.session.request(method, self.api.server + path, data=data, headers=headers) as answer:
            content: JsonObject = msgspec.json.decode(await answer.read())
            if answer.status >= 400:
                raise ApiError(answer.status, content)
            return content

    async def merge(self, path: str, body: JsonObject) -> JsonObject:
        return await self.request("PATCH", path, body, content_type=MERGE)

    async def refusal(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> str:
        """Return the sentence by which a request is refused that would not be stored; empty where it is accepted."""
        try:
            await self.request(method, f"{path}?dryRun=All", body, content_type=content_type)
        except ApiError as error:
            return str(error)
        return ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A change of an object, and who may make it.

    Attributes:
        says: What is changed, in words.
        on: The kind of object.
        change: The merge patch.
        may: Who is let through.
        refused: Who is not, with a part of the answer.
        before: Annotations that the object has.
        finalizers: Those that it has.
        dying: Whether it is being deleted.
        subresource: Of the object, to which the patch is sent.
    """

    says: str
    on: Kind
    change: JsonObject
    may: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    dying: bool = False
    subresource: str = ""


async def judge(api: Api, namespace: str, rule: Rule, name: str) -> None:
    """Assert that a rule holds, for an object of its own."""
    body = body_of(rule.on, namespace, rule.before, name=name)
    body["metadata"]["finalizers"] = list(rule.finalizers)
    within = namespace if rule.on.namespaced else ""
    path = rule.on.path(within, name)
    await api.create(rule.on.path(within), body)
    try:
        if rule.dying:
            await api.delete(path)
        target = f"{path}/{rule.subresource}" if rule.subresource else path
        tried = {
            who: await As(api, who).refusal("PATCH", target, rule.change, content_type=MERGE)
            for who in (*rule.may, *rule.refused)
        }
        otherwise = [text for who in rule.refused for text in await _otherwise(As(api, who), path, rule)]
    finally:
        await api.merge(path, {"metadata": {"finalizers": []}})
        if not rule.dying:
            await api.delete(path)
    assert {who: tried[who] for who in rule.may} == dict.fromkeys(rule.may, "")
    assert [text for text in otherwise if not text.startswith("403")] == []
    for who, words in rule.refused.items():
        assert tried[who].startswith("403"), (who, tried[who])
        assert words in tried[who], (who, tried[who])


async def _otherwise(actor: As, path: str, rule: Rule) -> list[str]:
    """Return how a change of annotations is answered as a replacement, and as a patch of operations."""
    is_plain = not (rule.dying or rule.subresource)
    annotations = rule.change.get("metadata", {}).get("annotations") if is_plain else None
    if not annotations:
        return []
    stored = await actor.api.get(path)
    known = stored["metadata"].get("annotations") or {}
    stored["metadata"]["annotations"] = {**known, **annotations}
    operations = [
        {"op": "add", "path": f"/metadata/annotations/{name.replace('/', '~1')}", "value": value}
        for name, value in annotations.items()
    ]
    if not known:
        operations.insert(0, {"op": "add", "path": "/metadata/annotations", "value": {}})
    patch = await actor.refusal("PATCH", path, operations, content_type=JSON_PATCH)
    return [await actor.refusal("PUT", path, stored), patch]


def body_of(on: Kind, namespace: str, annotations: dict[str, str], *, name: str = "one") -> JsonObject:
    body: JsonObject = on.new(namespace if on.namespaced else "", name, spec={**_SPECS[on]})
    body["metadata"]["annotations"] = prefixed(annotations)
    return body


def prefixed(names: dict[str, Any]) -> dict[str, Any]:
    return {PREFIX + name: value for name, value in names.items()}


def annotated(**values: str | None) -> JsonObject:
    """Return a merge patch that sets annotations of ours; `_` stands for `-`."""
    return {"metadata": {"annotations": prefixed({name.replace("_", "-"): text for name, text in values.items()})}}


def marked(values: dict[str, str]) -> JsonObject:
    """Return a merge patch that sets annotations of ours by their names."""
    return {"metadata": {"annotations": prefixed(values)}}
