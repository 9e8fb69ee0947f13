"""Who acts, and on what: shared by the tests of the admission policies."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tests.support.api import MERGE, Api, ApiError, JsonObject

COMPOSER = "system:serviceaccount:fairlead-system:fairlead-composer"
ONPREM = "system:serviceaccount:fairlead-onprem:fairlead-provider-onprem"
OTHER_CLOUD = "system:serviceaccount:fairlead-aws:fairlead-provider-aws"
DEVELOPER, PLATFORM = "developer", "platform"
PREFIX = "fairlead.dev/"
CLAIM, CHILD, CONFIG = "claim", "child", "config"
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
IDENTITY = {"identity": f"{UID}@shop/orders"}
INSTRUCTION = {"teardown": f"{UID}/Delete"}
EXTERNAL_REFERENCE = {"external-name": "orders_1", "incarnation": "16384", "account": "7301"}


@dataclass(frozen=True, slots=True)
class As:
    """Requests in another user's name (Kubernetes, "User impersonation")."""

    api: Api
    user: str

    async def request(
        self, method: str, path: str, body: JsonObject | None = None, *, content_type: str = "application/json"
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


def body_of(on: str, namespace: str, annotations: dict[str, str]) -> JsonObject:
    metadata = {"name": "one", "namespace": namespace, "annotations": prefixed(annotations)}
    match on:
        case "claim":
            spec: JsonObject = {"version": "16", "size": "small"}
            return {
                "apiVersion": "database.fairlead.dev/v1alpha1",
                "kind": "PostgreSQLInstance",
                "metadata": metadata,
                "spec": spec,
            }
        case "child":
            spec = {"forProvider": {"databaseName": "orders", "username": "orders"}}
            return {
                "apiVersion": "onprem.fairlead.dev/v1alpha1",
                "kind": "PostgresDatabase",
                "metadata": metadata,
                "spec": spec,
            }
        case _:
            metadata = {"name": namespace, "annotations": prefixed(annotations)}
            spec = {"host": "127.0.0.1", "adminSecretRef": {"name": "a"}, "caSecretRef": {"name": "b"}}
            return {
                "apiVersion": "onprem.fairlead.dev/v1alpha1",
                "kind": "ProviderConfig",
                "metadata": metadata,
                "spec": spec,
            }


def prefixed(names: dict[str, str]) -> dict[str, str]:
    return {PREFIX + name: value for name, value in names.items()}


def paths(on: str, namespace: str) -> tuple[str, str]:
    """Return the collection and the object of a kind of test object."""
    match on:
        case "claim":
            collection = Api.path("database.fairlead.dev/v1alpha1", "postgresqlinstances", namespace)
        case "child":
            collection = Api.path("onprem.fairlead.dev/v1alpha1", "postgresdatabases", namespace)
        case _:
            collection = Api.path("onprem.fairlead.dev/v1alpha1", "providerconfigs")
            return collection, f"{collection}/{namespace}"
    return collection, f"{collection}/one"
