"""What a tenant with the cluster's `edit` in one namespace cannot do by asking the API server."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.security.builders import at_once, expect
from tests.support.api import ApiError, JsonObject
from tests.support.home import claim, move_in
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, PROVIDER_CONFIG, SECRET, condition, is_ready
from tests.support.system import System
from tests.support.tenants import Person

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_tenant_reads_nothing_of_others(alice: Person, mallory: Person) -> None:
    await alice.claim("read")
    for path in (
        CLAIM.path("alice"),
        CLAIM.path("alice", "read"),
        DATABASE.path("alice"),
        SECRET.path("alice"),
        SECRET.path("alice", "read-connection"),
        SECRET.path("fairlead-onprem"),
        SECRET.path("fairlead-onprem", "onprem-admin"),
        COMPOSITION.path(),
        PROVIDER_CONFIG.path(),
    ):
        assert await mallory.is_refused("GET", path), path


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forger(running: System, mallory: Person) -> JsonObject:
    await mallory.claim("forger")
    return await running.until(CLAIM, "mallory", "forger", is_ready)


@pytest.mark.parametrize("key", ["adopt", "consent", "composition", "identity", "kinds"])
async def test_a_tenant_forges_no_mark_of_a_claim(
    running: System, mallory: Person, forger: JsonObject, key: str
) -> None:
    mark, name = f"fairlead.dev/{key}", forger["metadata"]["name"]

    with pytest.raises(ApiError) as refused:
        await mallory.annotate(name, **{key: "of-another"})

    assert refused.value.status in {403, 422}
    after = await running.api.get(CLAIM.path("mallory", name))
    assert after["metadata"]["annotations"].get(mark) == forger["metadata"]["annotations"].get(mark)


_OTHERS = ("connection", "credentials", "Opaque", "kubernetes.io/service-account-token")


async def _secret_of_another(system: System, mallory: Person, kind: str) -> str:
    """Return the name of a Secret that is there already: another claim's, or one of that type."""
    if "/" in kind or kind == "Opaque":
        name = f"theirs-{kind.rpartition('/')[2].lower()}"
        body = SECRET.new(mallory.namespace, name, type=kind, data={"text": "a2VwdA=="})
        body["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "tenant"}
        await mallory.create(SECRET, body)
        return name
    home = await move_in(system, claim(mallory.namespace, f"owner-{kind}"))
    return f"{home.name}-connection" if kind == "connection" else f"{(await home.child())['metadata']['name']}-{kind}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def thefts(running: System, mallory: Person) -> dict[str, BaseException | None]:
    """Return which Secrets of others were touched; claims name all of them beside each other."""
    return await at_once({kind: _is_left_alone(running, mallory, kind) for kind in _OTHERS})


async def _is_left_alone(running: System, mallory: Person, kind: str) -> None:
    taken = await _secret_of_another(running, mallory, kind)
    before = await running.api.get(SECRET.path("mallory", taken))
    thief = f"thief-{taken[:20]}"

    await mallory.claim(thief, connectionSecretName=taken)

    def refused(obj: JsonObject) -> bool:
        return condition(obj, "Synced").get("reason") == "SecretNotOwned"

    await running.until(CLAIM, "mallory", thief, refused)
    await mallory.api.delete(CLAIM.path("mallory", thief))
    await running.api.until_gone(CLAIM.path("mallory", thief))
    after = await running.api.get(SECRET.path("mallory", taken))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    # Kubernetes itself fills in a token.
    added = {"token", "ca.crt", "namespace"} if kind.endswith("token") else set()
    kept = {key: value for key, value in after["data"].items() if key not in added - before["data"].keys()}
    assert kept == before["data"]


@pytest.mark.parametrize("kind", _OTHERS, ids=lambda kind: kind.rpartition("/")[2])
async def test_a_claim_neither_publishes_into_nor_deletes_a_secret_of_another(
    thefts: dict[str, BaseException | None], kind: str
) -> None:
    expect(thefts[kind])
