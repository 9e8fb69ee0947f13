"""Which kind a person's word means, which namespace, and what is said where there is none."""

from __future__ import annotations

import pytest

from fairlead.cluster import existing
from fairlead.discovery import Discovery
from fairlead.exits import CommandError
from runtime.errors import Forbidden
from runtime.objects import NAMESPACES, Key, Resource
from tests.composer.factories import CLAIMS, DATABASES
from tests.support.memory_kube import MemoryKube

COMPOSITIONS = Resource("fairlead.dev", "v1alpha1", "Composition", "compositions", namespaced=False)
QUEUES = Resource("messaging.example.org", "v1", "Queue", "queues")
OTHER_QUEUES = Resource("amqp.example.com", "v1", "Queue", "queues")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")


def _cluster(*served: Resource, named: bool = True) -> MemoryKube:
    cluster = MemoryKube(served={CLAIMS, DATABASES, COMPOSITIONS, DEPLOYMENTS, *served})
    if named:
        spec = {"compositeTypeRef": {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}}
        cluster.put(COMPOSITIONS, "queues", namespace="", spec=spec)
    return cluster


@pytest.mark.parametrize(
    "word", ["queue", "Queue", "queues", "queues.messaging.example.org", "Queue.messaging.example.org"]
)
@pytest.mark.parametrize("refused", ["", "list compositions"])
async def test_a_kind_of_claim_of_ones_own_is_known(word: str, refused: str) -> None:
    cluster = _cluster(QUEUES)
    cluster.forbidden.add(refused)

    assert await Discovery(cluster).resource_named(word) == QUEUES


async def test_two_kinds_of_one_name_need_the_group() -> None:
    cluster = _cluster(QUEUES, OTHER_QUEUES)
    cluster.forbidden.add("list compositions")

    with pytest.raises(CommandError, match=r"queues\.amqp\.example\.com and queues\.messaging\.example\.org"):
        await Discovery(cluster).resource_named("queue")


@pytest.mark.parametrize("word", ["pgi", "deployment", "quue"])
async def test_an_unknown_word_lists_what_there_is_and_the_nearest(word: str) -> None:
    with pytest.raises(CommandError) as refused:
        await Discovery(_cluster(QUEUES)).resource_named(word)

    text = str(refused.value)
    assert f'serves no kind "{word}"' in text
    assert "postgresqlinstances" in text
    assert "queues.messaging.example.org" in text
    assert ("did you mean 'queue'?" in text) == (word == "quue")


async def test_kinds_of_ours_go_before_those_of_others() -> None:
    ours = Resource("other.fairlead.dev", "v1", "Queue", "queues")

    assert await Discovery(_cluster(QUEUES, ours)).resource_named("queue") == ours


@pytest.mark.parametrize(
    ("namespace", "refused", "message"),
    [
        ("shopp", "", "namespace shopp does not exist, did you mean 'shop'?"),
        ("shopp", "list namespaces", "namespace shopp does not exist"),
        (
            "shopp",
            "get namespaces",
            "there is no PostgreSQLInstance orders in namespace shopp, but in shop: say -n shop",
        ),
        ("web", "", "there is no PostgreSQLInstance orders in namespace web, but in shop: say -n shop"),
    ],
)
async def test_a_namespace_that_does_not_exist_is_the_mistake(namespace: str, refused: str, message: str) -> None:
    cluster = _cluster()
    cluster.put(CLAIMS, "orders", namespace="shop")
    for name in ("shop", "web"):
        cluster.put(NAMESPACES, name, namespace="")
    cluster.forbidden |= {refused}

    with pytest.raises(CommandError) as refusal:
        await existing(cluster, CLAIMS, Key(namespace, "orders"))

    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ordres", "in namespace shop, did you mean 'orders'? `kubectl get postgresqlinstances -A` lists them all"),
        ("x", "in namespace shop; `kubectl get postgresqlinstances -A` lists them all"),
    ],
)
async def test_a_name_that_does_not_exist_has_the_nearest(name: str, message: str) -> None:
    cluster = _cluster()
    cluster.put(CLAIMS, "orders", namespace="shop")
    cluster.put(NAMESPACES, "shop", namespace="")

    with pytest.raises(CommandError) as refusal:
        await existing(cluster, CLAIMS, Key("shop", name))

    assert str(refusal.value) == f"there is no PostgreSQLInstance {name} {message}"


async def test_an_object_that_is_there_is_returned() -> None:
    cluster = _cluster()
    made = cluster.put(CLAIMS, "orders", namespace="shop")

    assert await existing(cluster, CLAIMS, Key("shop", "orders")) == made


async def test_an_object_that_may_not_be_read_is_reported_so() -> None:
    cluster = _cluster()
    cluster.forbidden.add("get postgresqlinstances")

    with pytest.raises(Forbidden):
        await existing(cluster, CLAIMS, Key("shop", "orders"))
