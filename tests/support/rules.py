"""What an API server answers to an object or an edit that nobody stores: for tests of the rules of CRDs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.support.api import Api, ApiError, JsonObject


class Case(msgspec.Struct, frozen=True):
    """One object or edit, as fields of `forProvider`; an empty `refused` is one that is accepted."""

    says: str
    edit: dict[str, Any]
    refused: str = ""


def edited(fields: Mapping[str, Any], edit: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with others in their place; None leaves one out."""
    return {name: value for name, value in {**fields, **edit}.items() if value is not None}


def of_kind(version: str, kind: str, namespace: str, fields: Mapping[str, Any]) -> JsonObject:
    """Return an object `orders` with these fields of `forProvider`."""
    meta = {"name": "orders", "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": {"forProvider": dict(fields)}}


async def refusal(api: Api, method: str, path: str, body: JsonObject) -> str:
    """Return the sentence by which a request is refused that would not be stored; empty where it is accepted."""
    try:
        await api.request(method, path, body, query={"dryRun": "All", "fieldValidation": "Strict"})
    except ApiError as error:
        return str(error) if error.status in {400, 422} else f"status {error.status}"
    return ""


async def refusals_of_edits(api: Api, path: str, created: JsonObject, cases: tuple[Case, ...]) -> Mapping[str, str]:
    """Return the sentences by which the edits of an object that is there are refused, by what the cases say."""
    answers = {}
    for case in cases:
        fields = edited(created["spec"]["forProvider"], case.edit)
        changed = created | {"spec": created["spec"] | {"forProvider": fields}}
        answers[case.says] = await refusal(api, "PUT", f"{path}/orders", changed)
    return answers


def assert_refused(cases: tuple[Case, ...], answers: Mapping[str, str]) -> None:
    """Assert that each case was refused by the sentence that it names, or accepted."""
    for case in cases:
        assert bool(answers[case.says]) is bool(case.refused), f"{case.says}: {answers[case.says]}"
        assert case.refused in answers[case.says], f"{case.says}: {answers[case.says]}"
