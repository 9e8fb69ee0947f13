"""What an API server answers to an object or an edit that nobody stores: for tests of the rules of CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tests.support.api import Api, ApiError, JsonObject
from tests.support.kinds import Kind


class Case(msgspec.Struct, frozen=True):
    """One object or edit, as fields of `forProvider`; an empty `refused` is one that is accepted."""

    says: str
    edit: dict[str, Any]
    refused: str = ""


def edited(fields: Mapping[str, Any], edit: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with others in their place; None leaves one out."""
    return {name: value for name, value in {**fields, **edit}.items() if value is not None}


def of_kind(kind: Kind, namespace: str, fields: Mapping[str, Any]) -> JsonObject:
    """Return an object `orders` with these fields of `forProvider`."""
    return kind.new(namespace, "orders", spec={"forProvider": dict(fields)})


async def refusal(api: Api, method: str, path: str, body: JsonObject) -> str:
    """Return the sentence by which a request is refused that would not be stored; empty where it is accepted."""
    try:
        await api.request(method, path, body, query={"dryRun": "All", "fieldValidation": "Strict"})
    except ApiError as error:
        return str(error) if error.status in {400, 422} else f"status {error.status}"
    return ""


async def assert_creations(
    api: Api, kind: Kind, namespace: str, fields: Mapping[str, Any], cases: Iterable[Case]
) -> None:
    """Assert of each case that an object with these fields of `forProvider`, edited, is accepted or refused."""
    for case in cases:
        body = of_kind(kind, namespace, edited(fields, case.edit))
        _assert_refused(case, await refusal(api, "POST", kind.path(namespace), body))


async def assert_configs(api: Api, kind: Kind, spec: Mapping[str, Any], cases: Iterable[Case]) -> None:
    """Assert of each case that a ProviderConfig with this spec, edited, is accepted or refused."""
    for case in cases:
        body = kind.new("", "rules", spec=edited(spec, case.edit))
        _assert_refused(case, await refusal(api, "POST", kind.path(), body))


async def stored(api: Api, kind: Kind, namespace: str, fields: Mapping[str, Any], **has: Any) -> JsonObject:
    """Create an object `orders`; `has` is what its status says of the cloud. Return it."""
    created = await api.create(kind.path(namespace), of_kind(kind, namespace, fields))
    if not has:
        return created
    status = {"observedGeneration": 1, "atProvider": has}
    return await api.request("PUT", kind.path(namespace, "orders", "status"), created | {"status": status})


async def assert_edits(api: Api, kind: Kind, created: JsonObject, cases: Iterable[Case]) -> None:
    """Assert of each case that the edit of an object that is there is accepted or refused."""
    path = kind.path(created["metadata"]["namespace"], "orders")
    for case in cases:
        fields = edited(created["spec"]["forProvider"], case.edit)
        changed = created | {"spec": created["spec"] | {"forProvider": fields}}
        _assert_refused(case, await refusal(api, "PUT", path, changed))


def _assert_refused(case: Case, answer: str) -> None:
    assert bool(answer) is bool(case.refused), f"{case.says}: {answer}"
    assert case.refused in answer, f"{case.says}: {answer}"
