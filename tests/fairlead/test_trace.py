"""`fairlead trace` and the Secret's way to `fairlead psql` on a real API server, statuses written by hand."""

from __future__ import annotations

import asyncio
import base64

import msgspec
import pytest

from devcloud.controlplane.plane import Plane
from fairlead.cli import run
from fairlead.exits import CommandError
from fairlead.kube_options import Server
from fairlead.psql import login_of
from fairlead.trace import trace
from tests.support.api import Api, JsonObject

CLAIMS, CHILDREN = "database.fairlead.dev/v1alpha1", "onprem.fairlead.dev/v1alpha1"
TIME = "2026-11-21T00:00:00Z"
VALUES = {"host": "127.0.0.1", "port": "5432", "database": "d", "username": "u", "password": "made-up-for-this-test"}


def conditions(reason: str, *, ready: str, generation: int = 1) -> list[JsonObject]:
    kinds = {"Ready": ready, "Synced": ready} | ({} if ready == "True" else {"Stalled": "True"})
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"the sentence of {reason}",
            "lastTransitionTime": TIME,
            "observedGeneration": generation,
        }
        for kind, status in kinds.items()
    ]


def _claim(namespace: str, name: str) -> JsonObject:
    spec = {"version": "16", "size": "small"}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": CLAIMS, "kind": "PostgreSQLInstance", "metadata": meta, "spec": spec}


async def make(api: Api, namespace: str, *, reason: str, ready: str) -> None:
    """Make a claim, its child and its Secret as the composer and the provider would leave them."""
    child = {
        "apiVersion": CHILDREN,
        "kind": "PostgresDatabase",
        "metadata": {"name": "orders-database-x", "namespace": namespace},
        "spec": {"forProvider": {"databaseName": "orders", "username": "orders"}},
    }
    secret_meta = {"name": "orders-connection", "namespace": namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": secret_meta, "stringData": VALUES}
    claims = Api.path(CLAIMS, "postgresqlinstances", namespace)
    children = Api.path(CHILDREN, "postgresdatabases", namespace)
    await api.create(claims, _claim(namespace, "orders"))
    await api.create(children, child)
    await api.create(Api.path("v1", "secrets", namespace), secret)
    entry = {"resource": "database", "apiVersion": CHILDREN, "kind": "PostgresDatabase", "name": "orders-database-x"}
    status = {
        "conditions": conditions(reason, ready=ready),
        "inventory": [entry],
        "composition": {"name": "postgres-onprem"},
        "binding": {"name": "orders-connection"},
    }
    await api.merge(f"{claims}/orders/status", {"status": status})
    below = {"conditions": conditions(reason, ready=ready), "externalName": "orders_x"}
    await api.merge(f"{children}/orders-database-x/status", {"status": below})


async def test_a_claim_is_found_by_a_short_name(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")

    tree = await trace("pgi/orders", namespace=namespace, server=Server(plane.kubeconfig))

    assert [(node.kind, node.name, node.reason) for node in (tree, *tree.children)] == [
        ("PostgreSQLInstance", "orders", "Available"),
        ("PostgresDatabase", "orders-database-x", "Available"),
        ("Secret", "orders-connection", "published"),
    ]
    assert tree.is_healthy
    assert tree.children[0].external == "orders_x"


async def test_a_person_without_a_right_to_secrets_gets_the_tree(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")
    accounts = Api.path("v1", "serviceaccounts", namespace)
    await api.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    rights = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rights}/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": namespace},
        "rules": [
            {"apiGroups": ["database.fairlead.dev", "onprem.fairlead.dev"], "resources": ["*"], "verbs": ["get"]}
        ],
    }
    binding = {
        "apiVersion": f"{rights}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": namespace},
        "roleRef": {"apiGroup": rights, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    await api.create(Api.path(f"{rights}/v1", "roles", namespace), role)
    await api.create(Api.path(f"{rights}/v1", "rolebindings", namespace), binding)
    kubeconfig = await plane.service_account_kubeconfig(namespace, "reader", lifetime_s=3600)

    # The namespace comes from the kubeconfig's context.
    tree = await trace("orders", namespace=None, server=Server(kubeconfig))
    with pytest.raises(CommandError, match="you may not read Secret"):
        await login_of("orders", namespace=None, server=Server(kubeconfig))

    assert tree.is_healthy
    assert tree.children[1].reason == "published"


async def test_a_missing_secret_is_not_ready(plane: Plane, api: Api, namespace: str) -> None:
    await api.create(Api.path(CLAIMS, "postgresqlinstances", namespace), _claim(namespace, "young"))

    with pytest.raises(CommandError, match="has no connection Secret yet") as refused:
        await login_of("young", namespace=namespace, server=Server(plane.kubeconfig))
    tree = await trace("young", namespace=namespace, server=Server(plane.kubeconfig))

    assert refused.value.exit_code == 5
    assert (tree.ready, tree.reason) == ("Unknown", "not seen yet")


async def test_a_claim_that_no_controller_looks_at_shows_the_compositions_that_are_refused(
    plane: Plane, api: Api, namespace: str
) -> None:
    await api.create(Api.path(CLAIMS, "postgresqlinstances", namespace), _claim(namespace, "unseen"))
    path = Api.path("fairlead.dev/v1alpha1", "compositions")
    resource = {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap"}}
    spec = {"compositeTypeRef": {"apiVersion": CLAIMS, "kind": "PostgreSQLInstance"}, "resources": [resource]}
    meta = {"name": f"{namespace}-refused"}
    body = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Composition", "metadata": meta, "spec": spec}
    await api.create(path, body)
    status = {"conditions": conditions("KindNotAllowed", ready="False")}
    await api.merge(f"{path}/{namespace}-refused/status", {"status": status})

    tree = await trace("unseen", namespace=namespace, server=Server(plane.kubeconfig))
    await api.delete(f"{path}/{namespace}-refused")

    refused = [node for node in tree.children if node.name == f"{namespace}-refused"]
    assert [(node.kind, node.reason, node.message) for node in refused] == [
        ("Composition", "KindNotAllowed", "the sentence of KindNotAllowed")
    ]


@pytest.mark.parametrize(("reason", "ready", "code"), [("Available", "True", 0), ("DatabaseLost", "False", 6)])
async def test_the_command_answers_with_the_state(  # noqa: PLR0917 - fixtures and a row of the table
    plane: Plane, api: Api, namespace: str, capsys: pytest.CaptureFixture[str], reason: str, ready: str, code: int
) -> None:
    await make(api, namespace, reason=reason, ready=ready)
    where = ["-n", namespace, "--kubeconfig", str(plane.kubeconfig)]

    answer = await asyncio.to_thread(run, ["trace", "orders", *where, "--exit-status", "-o", "json"])

    shown = capsys.readouterr().out
    waited = await asyncio.to_thread(run, ["wait", "orders", *where, "--timeout", "60s"])
    capsys.readouterr()
    await asyncio.to_thread(run, ["status", *where, "-o", "json"])
    fleet = msgspec.json.decode(capsys.readouterr().out)
    assert answer == waited == code
    # What stands here for its child has no label of a claim.
    assert (fleet["claims"], fleet["madeByHand"]) == (1, 1)
    assert [member["reason"] for member in fleet["notWell"] if member["name"] == "orders"] == [reason] * (code > 0)
    assert msgspec.json.decode(shown)["tree"]["reason"] == reason
    assert VALUES["password"] not in shown
    assert base64.b64encode(VALUES["password"].encode()).decode() not in shown
