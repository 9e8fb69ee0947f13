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


async def make(api: Api, namespace: str, *, reason: str, ready: str) -> None:
    """Make a claim, its child and its Secret as the composer and the provider would leave them."""
    meta = {"namespace": namespace}
    claim = {
        "apiVersion": CLAIMS,
        "kind": "PostgreSQLInstance",
        "metadata": meta | {"name": "orders"},
        "spec": {"version": "16", "size": "small"},
    }
    child = {
        "apiVersion": CHILDREN,
        "kind": "PostgresDatabase",
        "metadata": meta | {"name": "orders-database-x"},
        "spec": {"forProvider": {"databaseName": "orders", "username": "orders"}},
    }
    claims, children = (
        Api.path(CLAIMS, "postgresqlinstances", namespace),
        Api.path(CHILDREN, "postgresdatabases", namespace),
    )
    await api.create(claims, claim)
    await api.create(children, child)
    await api.create(
        Api.path("v1", "secrets", namespace),
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta | {"name": "orders-connection"}, "stringData": VALUES},
    )
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


@pytest.mark.parametrize(
    "reference", ["orders", "pgi/orders", "PostgreSQLInstance/orders", "postgresqlinstances/orders"]
)
async def test_a_claim_is_found_by_any_of_its_names(plane: Plane, api: Api, namespace: str, reference: str) -> None:
    await make(api, namespace, reason="Available", ready="True")

    tree = await trace(reference, namespace=namespace, server=Server(plane.kubeconfig))

    assert [(node.kind, node.name, node.reason) for node in (tree, *tree.children)] == [
        ("PostgreSQLInstance", "orders", "Available"),
        ("PostgresDatabase", "orders-database-x", "Available"),
        ("Secret", "orders-connection", "published"),
    ]
    assert tree.is_healthy
    assert tree.children[0].external == "orders_x"


async def test_a_lost_database_is_the_first_cause(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="DatabaseLost", ready="False")

    tree = await trace("orders", namespace=namespace, server=Server(plane.kubeconfig))

    assert (tree.stalled, tree.is_cause, tree.children[0].is_cause) == (True, False, True)
    assert tree.children[0].message == "the sentence of DatabaseLost"


async def test_a_managed_resource_is_traced_too(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")

    tree = await trace("postgresdatabase/orders-database-x", namespace=namespace, server=Server(plane.kubeconfig))

    assert (tree.kind, tree.children) == ("PostgresDatabase", ())


async def test_an_object_that_is_gone_is_reported(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")
    await api.delete(Api.path(CHILDREN, "postgresdatabases", namespace, "orders-database-x"))
    await api.delete(Api.path("v1", "secrets", namespace, "orders-connection"))

    tree = await trace("orders", namespace=namespace, server=Server(plane.kubeconfig))

    assert [(node.kind, node.reason, node.is_cause) for node in tree.children] == [
        ("PostgresDatabase", "missing", True),
        ("Secret", "missing", False),
    ]


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


async def test_a_login_is_read_from_the_bound_secret(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")

    login = await login_of("orders", namespace=namespace, server=Server(plane.kubeconfig))

    assert (login.host, login.username, login.password) == (VALUES["host"], VALUES["username"], VALUES["password"])


async def test_a_claim_that_is_not_there_is_named(plane: Plane, namespace: str) -> None:
    with pytest.raises(CommandError, match=f"there is no PostgreSQLInstance orders in namespace {namespace}"):
        await trace("orders", namespace=namespace, server=Server(plane.kubeconfig))


async def test_a_name_that_is_near_or_elsewhere_is_offered(plane: Plane, api: Api, namespace: str) -> None:
    await make(api, namespace, reason="Available", ready="True")

    with pytest.raises(CommandError, match=r"in namespace default, but in .+: say -n "):
        await trace("orders", namespace="default", server=Server(plane.kubeconfig))
    with pytest.raises(CommandError, match="did you mean 'orders'"):
        await login_of("ordres", namespace=namespace, server=Server(plane.kubeconfig))
    with pytest.raises(CommandError, match="has no context 'elsewhere'"):
        await trace("orders", namespace=namespace, server=Server(plane.kubeconfig, "elsewhere"))


async def test_an_unknown_kind_lists_what_there_is(plane: Plane, namespace: str) -> None:
    with pytest.raises(CommandError, match=r'no kind "pgj" .* mean \'pgi\'.* postgresdatabases, postgresqlinstances'):
        await trace("pgj/orders", namespace=namespace, server=Server(plane.kubeconfig))


async def test_a_missing_secret_is_not_ready(plane: Plane, api: Api, namespace: str) -> None:
    claim = {
        "apiVersion": CLAIMS,
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "young", "namespace": namespace},
        "spec": {"version": "16", "size": "small"},
    }
    await api.create(Api.path(CLAIMS, "postgresqlinstances", namespace), claim)

    with pytest.raises(CommandError, match="has no connection Secret yet") as refused:
        await login_of("young", namespace=namespace, server=Server(plane.kubeconfig))
    tree = await trace("young", namespace=namespace, server=Server(plane.kubeconfig))

    assert refused.value.exit_code == 5
    assert (tree.ready, tree.reason) == ("Unknown", "not seen yet")


@pytest.mark.parametrize(("reason", "ready", "code"), [("Available", "True", 0), ("DatabaseLost", "False", 6)])
async def test_the_command_answers_with_the_state(  # noqa: PLR0917 - fixtures and a row of the table
    plane: Plane, api: Api, namespace: str, capsys: pytest.CaptureFixture[str], reason: str, ready: str, code: int
) -> None:
    await make(api, namespace, reason=reason, ready=ready)
    arguments = [
        "trace",
        "orders",
        "-n",
        namespace,
        "--kubeconfig",
        str(plane.kubeconfig),
        "--exit-status",
        "-o",
        "json",
    ]

    answer = await asyncio.to_thread(run, arguments)

    shown = capsys.readouterr().out
    assert answer == code
    assert msgspec.json.decode(shown)["tree"]["reason"] == reason
    assert VALUES["password"] not in shown
    assert base64.b64encode(VALUES["password"].encode()).decode() not in shown
