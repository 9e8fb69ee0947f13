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
    INSTRUCTION,
    ONPREM,
    PLATFORM,
    PREFIX,
    UID,
    As,
    body_of,
    paths,
    prefixed,
)
from tests.support.api import Api, ApiError, JsonObject
from tests.support.waiting import eventually


async def test_a_restored_object_may_bring_its_old_instruction(policed: str, api: Api) -> None:
    collection, _ = paths(CHILD, policed)

    with pytest.raises(ApiError, match="teardown is written by the composer only"):
        await As(api, DEVELOPER).request("POST", collection, body_of(CHILD, policed, INSTRUCTION))
    restored = await As(api, PLATFORM).request("POST", collection, body_of(CHILD, policed, INSTRUCTION))

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
async def test_a_dying_object_is_released_by_its_controller_alone(
    policed: str, api: Api, on: str, who: str, *, allowed: bool
) -> None:
    collection, path = paths(on, policed)
    body = body_of(on, policed, {})
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


@pytest.mark.parametrize("plural", ["compositions", "compositionrevisions"])
@pytest.mark.parametrize(("who", "allowed"), [(DEVELOPER, False), (ONPREM, False), (COMPOSER, True), (PLATFORM, True)])
async def test_an_object_of_the_platform_in_use_is_released_by_the_composer_alone(
    policed: str, api: Api, plural: str, who: str, *, allowed: bool
) -> None:
    collection = Api.path("fairlead.dev/v1alpha1", plural)
    path = f"{collection}/{policed}"
    content = {"compositeTypeRef": {"apiVersion": "a.b/v1", "kind": "A"}, "resources": [{"name": "a", "template": {}}]}
    copy = {"compositionName": policed, "revision": 1, "hash": "0", "composition": content}
    body = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Composition" if plural == "compositions" else "CompositionRevision",
        "metadata": {"name": policed, "finalizers": ["fairlead.dev/in-use"]},
        "spec": content if plural == "compositions" else copy,
    }
    await api.create(collection, body)
    await api.delete(path)

    refusal = ""
    try:
        await As(api, who).merge(path, {"metadata": {"finalizers": []}})
    except ApiError as error:
        refusal = str(error)
        await api.merge(path, {"metadata": {"finalizers": []}})

    assert ("is removed by the composer, when no claim uses it" in refusal) != allowed
    assert bool(refusal) != allowed
    await api.until_gone(path)


@pytest.mark.parametrize(
    ("on", "who", "allowed"),
    [
        (CLAIM, DEVELOPER, False),
        (CLAIM, ONPREM, False),
        (CLAIM, COMPOSER, True),
        (CLAIM, PLATFORM, True),
        (CHILD, DEVELOPER, False),
        (CHILD, COMPOSER, True),
        (CHILD, ONPREM, True),
        (CHILD, PLATFORM, True),
    ],
)
async def test_the_finalizer_of_a_living_object_is_dropped_by_nobody_who_could_leave_its_database_over(
    policed: str, api: Api, on: str, who: str, *, allowed: bool
) -> None:
    collection, path = paths(on, policed)
    body = body_of(on, policed, {})
    body["metadata"]["finalizers"] = ["fairlead.dev/teardown"]
    await api.create(collection, body)

    if allowed:
        left = await As(api, who).merge(path, {"metadata": {"finalizers": []}})
        assert "finalizers" not in left["metadata"]
        return
    with pytest.raises(ApiError, match=r"leave it where it is \(a replace has to bring it along\)") as refused:
        await As(api, who).merge(path, {"metadata": {"finalizers": []}})
    assert refused.value.status == 403
    await api.merge(path, {"metadata": {"finalizers": []}})


@pytest.mark.parametrize("on", [CLAIM, CHILD])
async def test_an_owners_usual_edits_of_an_object_with_the_finalizer_are_let_through(
    policed: str, api: Api, on: str
) -> None:
    collection, path = paths(on, policed)
    body = body_of(on, policed, {})
    body["metadata"]["finalizers"] = ["fairlead.dev/teardown", "example.org/theirs"]
    await api.create(collection, body)
    developer = As(api, DEVELOPER)
    plain = body_of(on, policed, {"reconcile-requested-at": "now"})

    applied = await developer.request(
        "PATCH", f"{path}?fieldManager=kubectl", plain, content_type="application/apply-patch+yaml"
    )
    replaced = await developer.request(
        "PUT", path, {**applied, "metadata": {**applied["metadata"], "finalizers": ["fairlead.dev/teardown"]}}
    )
    edited = await developer.merge(path, {"metadata": {"labels": {"team": "shop"}}})

    assert applied["metadata"]["finalizers"] == body["metadata"]["finalizers"]
    assert replaced["metadata"]["finalizers"] == ["fairlead.dev/teardown"]
    assert edited["metadata"]["labels"]["team"] == "shop"
    await api.merge(path, {"metadata": {"finalizers": []}})


@pytest.mark.parametrize(
    ("on", "who", "refusal"),
    [
        (CLAIM, DEVELOPER, ""),
        (CLAIM, COMPOSER, "the composer changes no claim's spec"),
        (CHILD, COMPOSER, ""),
        (CHILD, ONPREM, "a provider changes no spec"),
        (CONFIG, PLATFORM, ""),
        (CONFIG, ONPREM, "a provider changes no spec"),
        (CONFIG, COMPOSER, "the composer changes no ProviderConfig"),
    ],
)
async def test_a_spec_is_changed_by_whose_it_is(policed: str, api: Api, on: str, who: str, refusal: str) -> None:
    collection, path = paths(on, policed)
    await api.create(collection, body_of(on, policed, {}))
    change = {
        CLAIM: {"size": "large"},
        CHILD: {"deletionPolicy": "Delete"},
        CONFIG: {"allowAdoption": True},
    }[on]
    try:
        await As(api, who).merge(path, {"spec": change})
        message = ""
    except ApiError as error:
        message = str(error)
    if on == CONFIG:
        await api.delete(path)

    assert refusal in message
    assert bool(message) == bool(refusal)


@pytest.mark.parametrize("who", [DEVELOPER, PLATFORM, "fairlead-admin"])
async def test_a_protected_claim_is_deleted_by_nobody_until_it_is_unprotected(policed: str, api: Api, who: str) -> None:
    collection, path = paths(CLAIM, policed)
    body = body_of(CLAIM, policed, {})
    body["spec"]["deletionProtection"] = True
    await api.create(collection, body)
    person = As(api, who) if who != "fairlead-admin" else api

    with pytest.raises(ApiError, match=r"is protected from deletion; set spec\.deletionProtection: false first"):
        await person.request("DELETE", path)
    await person.merge(path, {"spec": {"deletionProtection": False}})
    await person.request("DELETE", path)

    assert await api.find(path) is None


async def test_a_namespace_with_a_protected_claim_says_what_holds_it(policed: str, api: Api) -> None:
    collection, path = paths(CLAIM, policed)
    body = body_of(CLAIM, policed, {})
    body["spec"]["deletionProtection"] = True
    await api.create(collection, body)
    await api.delete(f"/api/v1/namespaces/{policed}")

    async def is_reported() -> bool:
        namespace = await api.get(f"/api/v1/namespaces/{policed}")
        return any(
            "is protected from deletion" in condition["message"]
            for condition in namespace["status"].get("conditions", ())
        )

    await eventually(is_reported, "the namespace names what holds it")
    await api.merge(path, {"spec": {"deletionProtection": False}})
    await api.until_gone(f"/api/v1/namespaces/{policed}")


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
    policed: str, api: Api, on: str, who: str, *, allowed: bool
) -> None:
    collection, path = paths(on, policed)
    await api.create(collection, body_of(on, policed, {}))
    try:
        await As(api, who).merge(f"{path}/status", {"status": {"observedGeneration": 1}})
        refusal = ""
    except ApiError as error:
        refusal = str(error)
    if on == CONFIG:
        await api.delete(path)

    assert ("is written by its own controller only" in refusal) != allowed
    assert bool(refusal) != allowed


_BINDING, _CREDENTIALS = "servicebinding.io/postgresql", "fairlead.dev/credentials"
_PASSWORD = "fairlead.dev/password"
_OURS = {"claim": UID}
_ONPREMS, _OTHERS = {"claim": UID, "cloud": "onprem"}, {"claim": UID, "cloud": "aws"}
_ALL, _NONE = ("POST", "PUT", "DELETE"), ()


@pytest.mark.parametrize(
    ("who", "type_", "labels", "within", "allowed"),
    [
        pytest.param(COMPOSER, _BINDING, _OURS, "", _ALL, id="the composer's connection Secret"),
        pytest.param(COMPOSER, "servicebinding.io/redis", _OURS, "", _ALL, id="the composer's, of another type"),
        pytest.param(COMPOSER, _BINDING, {}, "", _NONE, id="another operator's connection Secret"),
        pytest.param(COMPOSER, "Opaque", _OURS, "", _NONE, id="the composer, Opaque"),
        pytest.param(COMPOSER, _CREDENTIALS, _ONPREMS, "", _NONE, id="the composer, credentials"),
        pytest.param(COMPOSER, _PASSWORD, _OURS, "", _ALL, id="a password that the composer made"),
        pytest.param(COMPOSER, _PASSWORD, {}, "", _NONE, id="a password that is nobody's"),
        pytest.param(ONPREM, _PASSWORD, _ONPREMS, "", _NONE, id="a provider, a password"),
        pytest.param(DEVELOPER, _PASSWORD, _OURS, "", ("DELETE",), id="a developer, a password"),
        pytest.param(COMPOSER, _BINDING, _OURS, "kube-system", _NONE, id="the composer in kube-system"),
        pytest.param(COMPOSER, _BINDING, _OURS, "fairlead-onprem", _NONE, id="the composer in a provider's namespace"),
        pytest.param(ONPREM, _CREDENTIALS, _ONPREMS, "", _ALL, id="a provider's credentials"),
        pytest.param(ONPREM, _CREDENTIALS, _OURS, "", ("DELETE",), id="credentials of before there was the label"),
        pytest.param(ONPREM, _CREDENTIALS, _OTHERS, "", _NONE, id="another cloud's credentials"),
        pytest.param(ONPREM, _CREDENTIALS, {}, "", _NONE, id="credentials that are nobody's"),
        pytest.param(ONPREM, "Opaque", _ONPREMS, "", _NONE, id="a provider, Opaque"),
        pytest.param(ONPREM, _BINDING, _OURS, "", _NONE, id="a provider, a connection Secret"),
        pytest.param(ONPREM, _CREDENTIALS, _ONPREMS, "kube-system", _NONE, id="a provider in kube-system"),
        pytest.param(ONPREM, "Opaque", {}, "fairlead-onprem", _NONE, id="a provider in its own namespace"),
        pytest.param(ONPREM, "Opaque", {}, "fairlead-system", _NONE, id="a provider in the composer's namespace"),
        pytest.param(DEVELOPER, "Opaque", {}, "", _ALL, id="a developer"),
    ],
)
async def test_our_processes_touch_no_secret_but_their_own(  # noqa: PLR0917 - a row of the table
    policed: str, api: Api, who: str, type_: str, labels: dict[str, str], within: str, allowed: tuple[str, ...]
) -> None:
    collection = Api.path("v1", "secrets", within or policed)
    path = f"{collection}/{policed}"
    metadata = {"name": policed, "labels": prefixed(labels)}
    body: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_}
    let_through = []
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
            # The server names the first policy that refuses, in no order that can be relied on.
            denied = re.search(r"ValidatingAdmissionPolicy 'fairlead-(secrets|credentials)'", str(error))
            assert denied, error  # noqa: PT017 - each of three
        else:
            let_through.append(method)
    if await api.find(path) is not None:
        await api.delete(path)

    assert tuple(let_through) == allowed


async def test_a_provider_makes_its_hash_key_and_changes_it_never(policed: str, api: Api) -> None:
    del policed
    collection = Api.path("v1", "secrets", "fairlead-onprem")
    body: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fairlead-hash-key"}}
    token = body | {"type": "kubernetes.io/service-account-token"}
    account = {"kubernetes.io/service-account.name": "fairlead-provider-onprem"}
    with pytest.raises(ApiError, match="an Opaque fairlead-hash-key in its own"):
        await As(api, ONPREM).request(
            "POST", collection, token | {"metadata": body["metadata"] | {"annotations": account}}
        )
    await As(api, ONPREM).request("POST", collection, body)

    for method, sent in (("PUT", body | {"stringData": {"key": "b"}}), ("DELETE", None)):
        with pytest.raises(ApiError, match="fairlead-hash-key in its own"):
            await As(api, ONPREM).request(method, f"{collection}/fairlead-hash-key", sent)
    await api.delete(f"{collection}/fairlead-hash-key")


@pytest.mark.parametrize(("who", "type_"), [(COMPOSER, _BINDING), (ONPREM, _CREDENTIALS)])
async def test_our_processes_hand_no_secret_over_and_take_none(policed: str, api: Api, who: str, type_: str) -> None:
    path = Api.path("v1", "secrets", policed, "one")
    cloud = {"cloud": "onprem"} if who == ONPREM else {}
    body: JsonObject = {"apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": {"name": "one"}}
    body["metadata"]["labels"] = prefixed({"claim": "another", **cloud})
    await api.create(Api.path("v1", "secrets", policed), body)
    body["metadata"]["labels"] = prefixed({"claim": UID, **cloud})

    with pytest.raises(ApiError, match="a Secret stays the one of the claim"):
        await As(api, who).request("PUT", path, body)


@pytest.mark.usefixtures("people")
async def test_every_policy_fails_closed_and_is_bound(api: Api) -> None:
    policies = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    bindings = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")

    assert {policy["spec"]["failurePolicy"] for policy in policies} == {"Fail"}
    assert {bound["spec"]["policyName"] for bound in bindings} == {policy["metadata"]["name"] for policy in policies}
    assert all(bound["spec"]["validationActions"] == ["Deny"] for bound in bindings)


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
        "cloud",
        "composition",
        "connection-secret",
        "consent",
        "credentials",
        "depends-on",
        "ephemeral",
        "external-name",
        "identity",
        "in-use",
        "incarnation",
        "key",
        "kinds",
        "password",
        "paused",
        "paused-reason",
        "resource",
        "stateful",
        "teardown",
    }
