"""What the admission policies keep from deletion, from forged statuses, from our own processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.apiserver.policies.actors import (
    CHILD,
    CLAIM,
    COMPOSER,
    CONFIG,
    DEVELOPER,
    ONPREM,
    PLATFORM,
    PREFIX,
    WORD,
    As,
    body_of,
    paths,
)
from tests.support.api import Api, ApiError
from tests.support.waiting import eventually


async def test_a_restored_object_may_bring_its_old_word(guarded: str, api: Api) -> None:
    collection, _ = paths(CHILD, guarded)

    with pytest.raises(ApiError, match="the composer's word alone"):
        await As(api, DEVELOPER).request("POST", collection, body_of(CHILD, guarded, WORD))
    restored = await As(api, PLATFORM).request("POST", collection, body_of(CHILD, guarded, WORD))

    assert not restored["metadata"]["annotations"][PREFIX + "teardown"].startswith(restored["metadata"]["uid"])


@pytest.mark.parametrize(
    ("on", "who", "allowed"),
    [
        (CLAIM, DEVELOPER, False),
        (CLAIM, ONPREM, False),
        (CLAIM, COMPOSER, True),
        (CLAIM, PLATFORM, True),
        (CHILD, DEVELOPER, False),
        (CHILD, COMPOSER, False),
        (CHILD, ONPREM, True),
        (CHILD, PLATFORM, True),
    ],
)
async def test_only_its_controller_lets_a_dying_object_go(
    guarded: str, api: Api, on: str, who: str, *, allowed: bool
) -> None:
    collection, path = paths(on, guarded)
    body = body_of(on, guarded, {})
    body["metadata"]["finalizers"] = ["fairlead.dev/teardown"]
    await api.create(collection, body)
    await api.delete(path)

    if allowed:
        await As(api, who).merge(path, {"metadata": {"finalizers": []}})

        assert await api.find(path) is None
    else:
        with pytest.raises(ApiError, match=r"finalizer fairlead\.dev/teardown") as refused:
            await As(api, who).merge(path, {"metadata": {"finalizers": []}})

        assert refused.value.status == 403
        assert await api.find(path) is not None
        await api.merge(path, {"metadata": {"finalizers": []}})


async def test_a_replace_that_forgets_the_finalizer_of_a_living_claim_is_let_through(guarded: str, api: Api) -> None:
    collection, path = paths(CLAIM, guarded)
    body = body_of(CLAIM, guarded, {})
    body["metadata"]["finalizers"] = ["fairlead.dev/teardown"]
    await api.create(collection, body)

    replaced = await As(api, DEVELOPER).merge(path, {"metadata": {"finalizers": []}})

    assert "finalizers" not in replaced["metadata"]


@pytest.mark.parametrize("who", [DEVELOPER, PLATFORM, "fairlead-admin"])
async def test_a_protected_claim_is_deleted_by_nobody_until_it_is_unprotected(guarded: str, api: Api, who: str) -> None:
    collection, path = paths(CLAIM, guarded)
    body = body_of(CLAIM, guarded, {})
    body["spec"]["deletionProtection"] = True
    await api.create(collection, body)
    person = As(api, who) if who != "fairlead-admin" else api

    with pytest.raises(ApiError, match=r"is protected from deletion; set spec\.deletionProtection: false first"):
        await person.request("DELETE", path)
    await person.merge(path, {"spec": {"deletionProtection": False}})
    await person.request("DELETE", path)

    assert await api.find(path) is None


async def test_a_namespace_with_a_protected_claim_says_what_holds_it(guarded: str, api: Api) -> None:
    collection, path = paths(CLAIM, guarded)
    body = body_of(CLAIM, guarded, {})
    body["spec"]["deletionProtection"] = True
    await api.create(collection, body)
    await api.delete(f"/api/v1/namespaces/{guarded}")

    async def told() -> bool:
        found = await api.get(f"/api/v1/namespaces/{guarded}")
        return any("is protected from deletion" in each["message"] for each in found["status"].get("conditions", ()))

    await eventually(told, "the namespace names what holds it")
    await api.merge(path, {"spec": {"deletionProtection": False}})
    await api.until_gone(f"/api/v1/namespaces/{guarded}")


@pytest.mark.parametrize(
    ("on", "who", "allowed"),
    [
        (CLAIM, COMPOSER, True),
        (CLAIM, PLATFORM, True),
        (CLAIM, DEVELOPER, False),
        (CLAIM, ONPREM, False),
        (CHILD, ONPREM, True),
        (CHILD, COMPOSER, False),
        (CHILD, DEVELOPER, False),
        (CONFIG, ONPREM, True),
        (CONFIG, DEVELOPER, False),
    ],
)
async def test_a_status_is_written_by_its_own_controller(
    guarded: str, api: Api, on: str, who: str, *, allowed: bool
) -> None:
    collection, path = paths(on, guarded)
    await api.create(collection, body_of(on, guarded, {}))
    try:
        await As(api, who).merge(f"{path}/status", {"status": {"observedGeneration": 1}})
        refusal = ""
    except ApiError as error:
        refusal = str(error)
    if on == CONFIG:
        await api.delete(path)

    assert ("is written by its own controller only" in refusal) != allowed
    assert bool(refusal) != allowed


@pytest.mark.parametrize(
    ("who", "type_", "within", "allowed"),
    [
        (COMPOSER, "servicebinding.io/postgresql", "", True),
        (COMPOSER, "servicebinding.io/redis", "", True),
        (COMPOSER, "Opaque", "", False),
        (COMPOSER, "fairlead.dev/credentials", "", False),
        (ONPREM, "fairlead.dev/credentials", "", True),
        (ONPREM, "Opaque", "", False),
        (ONPREM, "servicebinding.io/postgresql", "", False),
        (ONPREM, "Opaque", "fairlead-onprem", True),
        (ONPREM, "Opaque", "fairlead-system", False),
        (DEVELOPER, "Opaque", "", True),
    ],
)
async def test_our_processes_touch_no_secret_but_their_own(  # noqa: PLR0917 - a row of the table
    guarded: str,
    api: Api,
    who: str,
    type_: str,
    within: str,
    allowed: bool,  # noqa: FBT001 - as above
) -> None:
    collection = Api.path("v1", "secrets", within or guarded)
    path = f"{collection}/{guarded}"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": guarded}, "type": type_}
    refusals = []
    for method, target, sent in (
        ("POST", collection, body),
        ("PUT", path, body | {"stringData": {"a": "b"}}),
        ("DELETE", path, None),
    ):
        if method != "POST" and await api.find(path) is None:
            await api.create(collection, body)
        try:
            await As(api, who).request(method, target, sent)
        except ApiError as error:
            refusals.append((method, "ValidatingAdmissionPolicy 'fairlead-secrets'" in str(error)))
    if await api.find(path) is not None:
        await api.delete(path)

    assert refusals == ([] if allowed else [("POST", True), ("PUT", True), ("DELETE", True)])


async def test_only_the_platform_makes_a_namespace_ephemeral(guarded: str, api: Api) -> None:
    path = f"/api/v1/namespaces/{guarded}"
    label = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}

    with pytest.raises(ApiError, match="only the platform team may set it"):
        await As(api, DEVELOPER).merge(path, label)
    await As(api, PLATFORM).merge(path, label)
    await As(api, DEVELOPER).merge(path, {"metadata": {"labels": {"team": "shop"}}})
    left = await As(api, DEVELOPER).merge(path, {"metadata": {"labels": {"fairlead.dev/ephemeral": None}}})

    assert "fairlead.dev/ephemeral" not in left["metadata"]["labels"]


@pytest.mark.usefixtures("people")
async def test_every_policy_fails_closed_and_is_bound(api: Api) -> None:
    policies = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    bindings = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")

    assert {each["spec"]["failurePolicy"] for each in policies} == {"Fail"}
    assert {each["spec"]["policyName"] for each in bindings} == {each["metadata"]["name"] for each in policies}
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bindings)


def test_every_name_in_the_policies_is_one_of_the_contract() -> None:
    deploy = Path(__file__).resolve().parents[3] / "deploy"
    names = set()
    for file in deploy.rglob("policy-*.yaml"):
        names |= set(re.findall(r"'fairlead\.dev/([a-z-]+)'", file.read_text()))

    assert names == {
        "account",
        "adopt",
        "brake-released",
        "claim",
        "claim-name",
        "composition",
        "consent",
        "credentials",
        "ephemeral",
        "external-name",
        "identity",
        "in-use",
        "incarnation",
        "key",
        "kinds",
        "paused",
        "paused-reason",
        "resource",
        "teardown",
    }
