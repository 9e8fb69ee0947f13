"""Fairlead's own pods on a node: the images of `make images`, installed by the Helm chart; run by `make e2e`, as root.

ARCHIVES names a folder with the images as OCI archives, made with REPOSITORY=localhost; without it they are built.
"""

from __future__ import annotations

import base64
import json

import psycopg
import pytest
from psycopg import sql

from devcloud.node.components import ADDRESS
from tests.support.kinds import condition
from tests.support.pods import (
    CLAIM_LIMIT_S,
    IMAGES,
    NAMESPACES,
    READY_LIMIT_S,
    RESTRICTED,
    SHOP,
    Application,
    Cluster,
)
from tests.support.waiting import eventually

# What a pod learns by name: the API server's Service, the pods behind a Service of the chart, nothing of what is none.
_NAMES = """
import socket
print(socket.gethostbyname("kubernetes.default"))
print(*sorted({answer[4][0] for answer in socket.getaddrinfo("fairlead-composer.fairlead-system", 8081)}))
try:
    print(socket.gethostbyname("nobody.default"))
except socket.gaierror:
    print("unknown")
"""


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_pods_are_ready_under_the_restricted_standard_and_one_of_them_leads(
    cluster: Cluster, namespace: str
) -> None:
    described = json.loads(await cluster.plane.kubectl.run("get", "namespace", namespace, "--output=json"))
    pods = await cluster.items("pods", namespace)

    assert RESTRICTED.items() <= described["metadata"]["labels"].items()
    states = [state for pod in pods for state in pod["status"]["containerStatuses"]]
    assert [(state["ready"], state["restartCount"]) for state in states] == [(True, 0), (True, 0)]
    (holder,) = [lease["spec"]["holderIdentity"] for lease in await cluster.items("leases", namespace)]
    assert [pod["metadata"]["name"] in holder for pod in pods].count(True) == 1


async def test_a_claim_is_served_by_pods_and_an_application_in_a_pod_logs_in(cluster: Cluster) -> None:
    await cluster.claim("orders")
    await cluster.wait("pgi/orders", "condition=Ready")

    assert await cluster.logs_in("app") == "True"
    (claim,) = await cluster.items("pgi", SHOP)
    assert claim["status"]["endpoint"] == ADDRESS


async def test_a_pod_finds_services_by_name(cluster: Cluster) -> None:
    pods = await cluster.items("pods", "fairlead-system")

    assert (await cluster.prints(Application(name="names", command=("python", "-c", _NAMES)))).split() == [
        "10.0.0.1",
        *sorted(pod["status"]["podIP"] for pod in pods),
        "unknown",
    ]


async def test_what_is_changed_in_the_database_behind_the_pods_is_put_back(cluster: Cluster) -> None:
    query = ("get", "secret", "orders-connection", f"--namespace={SHOP}", "--output=jsonpath={.data.username}")
    username = base64.b64decode(await cluster.plane.kubectl.run(*query)).decode()
    secret, config = cluster.server.objects
    login = {"user": secret["stringData"]["username"], "password": secret["stringData"]["password"]}
    place = {"host": config["spec"]["host"], "port": config["spec"]["port"], "dbname": config["spec"]["database"]}
    async with await psycopg.AsyncConnection.connect(**place, **login, autocommit=True) as administrator:
        await administrator.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(username)))

        async def may_log_in() -> bool:
            cursor = await administrator.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = %s", [username])
            row = await cursor.fetchone()
            return row is not None and row[0]

        assert not await may_log_in()
        await eventually(may_log_in, f"{username} may log in again", limit_s=CLAIM_LIMIT_S, every_s=1.0)
    assert await cluster.logs_in("after-drift") == "True"


async def test_all_deployments_roll_while_claims_come_and_none_fails(cluster: Cluster) -> None:
    (orders,) = await cluster.items("pgi", SHOP)
    was_ready = condition(orders, "Ready")
    kubectl = cluster.plane.kubectl
    before = {pod["metadata"]["uid"] for name in NAMESPACES for pod in await cluster.items("pods", name)}

    for image, namespace in zip(IMAGES, NAMESPACES, strict=True):
        await kubectl.run("rollout", "restart", f"deployment/{image}", f"--namespace={namespace}")
        await cluster.claim(f"during-{image}")
    for image, namespace in zip(IMAGES, NAMESPACES, strict=True):
        words = ("rollout", "status", f"deployment/{image}", f"--namespace={namespace}", f"--timeout={READY_LIMIT_S}s")
        await kubectl.run(*words, limit_s=READY_LIMIT_S + 30.0)
    for image in IMAGES:
        await cluster.wait(f"pgi/during-{image}", "condition=Ready")

    claims = await cluster.items("pgi", SHOP)
    assert [condition(claim, "Ready")["status"] for claim in claims] == ["True"] * (1 + len(IMAGES))
    assert [claim["metadata"]["name"] for claim in claims if condition(claim, "Stalled").get("status") == "True"] == []
    (orders,) = [claim for claim in claims if claim["metadata"]["name"] == "orders"]
    assert condition(orders, "Ready")["lastTransitionTime"] == was_ready["lastTransitionTime"]

    async def old_ones_are_gone() -> bool:
        now = {pod["metadata"]["uid"] for name in NAMESPACES for pod in await cluster.items("pods", name)}
        return not now & before

    await eventually(old_ones_are_gone, "the former pods are gone", limit_s=120.0, every_s=1.0)
