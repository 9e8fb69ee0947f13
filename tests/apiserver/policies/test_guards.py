"""What the admission policies keep from deletion, from forged statuses, from our own processes."""

from __future__ import annotations

import re

import pytest

from devcloud.controlplane.plane import Plane
from tests.apiserver.policies.actors import (
    CALLED_SO,
    CHILD,
    COMPOSER,
    CONFIG,
    DEVELOPER,
    INSTRUCTION,
    ONPREM,
    PLATFORM,
    PREFIX,
    UID,
    As,
    Rule,
    body_of,
    judge,
    prefixed,
)
from tests.support.api import APPLY, MERGE, Api, ApiError, JsonObject
from tests.support.kinds import CLAIM, COMPOSITION, NAMESPACE, REVISION, SECRET, Kind
from tests.support.waiting import eventually

_RELEASED: JsonObject = {"metadata": {"finalizers": []}}
_SEEN: JsonObject = {"status": {"observedGeneration": 1}}
_TEARDOWN, _IN_USE = ("fairlead.dev/teardown",), ("fairlead.dev/in-use",)
_DYING, _LIVING = "finalizer fairlead.dev/teardown", "leave it where it is (a replace has to bring it along)"
_BY_NO_CLAIM, _OWN = "is removed by the composer, when no claim uses it", "is written by its own controller only"
_NO_SPEC = "a provider changes no spec"
# The garbage collector deletes what names it.
_NOBODY: JsonObject = {
    "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-uid"}]}
}
RULES = (
    Rule("the finalizer of a dying claim", CLAIM, _RELEASED, (COMPOSER, PLATFORM),
         {DEVELOPER: _DYING, ONPREM: _DYING}, finalizers=_TEARDOWN, dying=True),
    Rule("the finalizer of a dying child", CHILD, _RELEASED, (ONPREM, PLATFORM),
         {DEVELOPER: _DYING, COMPOSER: _DYING}, finalizers=_TEARDOWN, dying=True),
    Rule("the finalizer of a living claim", CLAIM, _RELEASED, (COMPOSER, PLATFORM),
         {DEVELOPER: _LIVING, ONPREM: _LIVING}, finalizers=_TEARDOWN),
    Rule("the finalizer of a living child", CHILD, _RELEASED, (COMPOSER, ONPREM, PLATFORM),
         {DEVELOPER: _LIVING}, finalizers=_TEARDOWN),
    Rule("a Composition in use", COMPOSITION, _RELEASED, (COMPOSER, PLATFORM),
         {DEVELOPER: _BY_NO_CLAIM, ONPREM: _BY_NO_CLAIM}, finalizers=_IN_USE, dying=True),
    Rule("a revision in use", REVISION, _RELEASED, (COMPOSER, PLATFORM),
         {DEVELOPER: _BY_NO_CLAIM, ONPREM: _BY_NO_CLAIM}, finalizers=_IN_USE, dying=True),
    Rule("the spec of a claim", CLAIM, {"spec": {"size": "large"}}, (DEVELOPER,),
         {COMPOSER: "the composer changes no claim's spec"}),
    Rule("the spec of a child", CHILD, {"spec": {"deletionPolicy": "Delete"}}, (COMPOSER,), {ONPREM: _NO_SPEC}),
    Rule("the spec of a ProviderConfig", CONFIG, {"spec": {"allowAdoption": True}}, (PLATFORM,),
         {ONPREM: _NO_SPEC, COMPOSER: "the composer changes no ProviderConfig"}),
    Rule("an owner of a claim", CLAIM, _NOBODY, (DEVELOPER, COMPOSER)),
    Rule("an owner of a child", CHILD, _NOBODY, (COMPOSER, ONPREM)),
    Rule("the status of a claim", CLAIM, _SEEN, (COMPOSER, PLATFORM), {DEVELOPER: _OWN, ONPREM: _OWN},
         subresource="status"),
    Rule("the status of a child", CHILD, _SEEN, (ONPREM,), {DEVELOPER: _OWN, COMPOSER: _OWN}, subresource="status"),
    Rule("the status of a ProviderConfig", CONFIG, _SEEN, (ONPREM,), {DEVELOPER: _OWN}, subresource="status"),
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
async def test_what_is_guarded_is_changed_by_whose_it_is(policed: str, api: Api, rule: Rule) -> None:
    await judge(api, policed, rule, f"{policed}-guard-{RULES.index(rule)}")


async def test_a_restored_object_may_bring_its_old_instruction(policed: str, api: Api) -> None:
    collection, body = CHILD.path(policed), body_of(CHILD, policed, INSTRUCTION, name="restored")

    assert "teardown is written by the composer only" in await As(api, DEVELOPER).refusal("POST", collection, body)
    restored = await As(api, PLATFORM).request("POST", collection, body)

    assert not restored["metadata"]["annotations"][PREFIX + "teardown"].startswith(restored["metadata"]["uid"])


@pytest.mark.parametrize("on", [CLAIM, CHILD], ids=lambda on: on.kind)
async def test_an_owners_usual_edits_of_an_object_with_the_finalizer_are_let_through(
    policed: str, api: Api, on: Kind
) -> None:
    path, body = on.path(policed, "edited"), body_of(on, policed, {}, name="edited")
    body["metadata"]["finalizers"] = [*_TEARDOWN, "example.org/theirs"]
    await api.create(on.path(policed), body)
    developer = As(api, DEVELOPER)
    plain = body_of(on, policed, {"reconcile-requested-at": "now"}, name="edited")

    applied = await developer.request("PATCH", f"{path}?fieldManager=kubectl", plain, content_type=APPLY)
    replaced = await developer.request(
        "PUT", path, {**applied, "metadata": {**applied["metadata"], "finalizers": [*_TEARDOWN]}}
    )
    edited = await developer.merge(path, {"metadata": {"labels": {"team": "shop"}}})

    assert applied["metadata"]["finalizers"] == body["metadata"]["finalizers"]
    assert replaced["metadata"]["finalizers"] == [*_TEARDOWN]
    assert edited["metadata"]["labels"]["team"] == "shop"
    await api.merge(path, _RELEASED)


async def test_a_protected_claim_is_deleted_by_nobody_until_it_is_unprotected(policed: str, api: Api) -> None:
    path, body = CLAIM.path(policed, "protected"), body_of(CLAIM, policed, {}, name="protected")
    body["spec"]["deletionProtection"] = True
    await api.create(CLAIM.path(policed), body)

    for who in (DEVELOPER, PLATFORM):
        refusal = await As(api, who).refusal("DELETE", path)
        assert "is protected from deletion; set spec.deletionProtection: false first" in refusal
    with pytest.raises(ApiError, match="is protected from deletion"):
        await api.delete(path)
    await As(api, DEVELOPER).merge(path, {"spec": {"deletionProtection": False}})
    await As(api, DEVELOPER).request("DELETE", path)

    assert await api.find(path) is None


async def test_a_namespace_with_a_protected_claim_says_what_holds_it(people: Plane, api: Api, namespace: str) -> None:
    del people
    body = body_of(CLAIM, namespace, {})
    body["spec"]["deletionProtection"] = True
    await api.create(CLAIM.path(namespace), body)
    await api.delete(NAMESPACE.path("", namespace))

    async def is_reported() -> bool:
        conditions = (await api.get(NAMESPACE.path("", namespace)))["status"].get("conditions", ())
        return any("is protected from deletion" in condition["message"] for condition in conditions)

    await eventually(is_reported, "the namespace names what holds it")
    await api.merge(CLAIM.path(namespace, "one"), {"spec": {"deletionProtection": False}})
    await api.until_gone(NAMESPACE.path("", namespace))


async def test_the_composer_composes_nothing_in_namespaces_of_the_cluster_and_of_ours(policed: str, api: Api) -> None:
    composer = As(api, COMPOSER)
    for namespace in ("kube-system", "fairlead-onprem"):
        path, body = CHILD.path(namespace, policed), body_of(CHILD, namespace, {}, name=policed)
        assert "writes nothing in namespaces kube-" in await composer.refusal("POST", CHILD.path(namespace), body)
        await api.create(CHILD.path(namespace), body)
        assert "writes nothing in namespaces kube-" in await composer.refusal("DELETE", path)
        await api.delete(path)

    await composer.request("POST", CHILD.path(policed), body_of(CHILD, policed, {}, name="composed"))
    await composer.request("DELETE", CHILD.path(policed, "composed"))


_BINDING, _CREDENTIALS = "servicebinding.io/postgresql", "fairlead.dev/credentials"
_PASSWORD = "fairlead.dev/password"
_OURS = {"claim": UID}
_ONPREMS, _OTHERS = {"claim": UID, "cloud": "onprem"}, {"claim": UID, "cloud": "aws"}
_ALL, _NONE = ("POST", "PUT", "DELETE"), ()
_SECRETS = {
    "the composer's connection Secret": (COMPOSER, _BINDING, _OURS, "", _ALL),
    "the composer's, of another type": (COMPOSER, "servicebinding.io/redis", _OURS, "", _ALL),
    "another operator's connection Secret": (COMPOSER, _BINDING, {}, "", _NONE),
    "the composer, Opaque": (COMPOSER, "Opaque", _OURS, "", _NONE),
    "the composer, credentials": (COMPOSER, _CREDENTIALS, _ONPREMS, "", _NONE),
    "a password that the composer made": (COMPOSER, _PASSWORD, _OURS, "", _ALL),
    "a password that is nobody's": (COMPOSER, _PASSWORD, {}, "", _NONE),
    "a provider, a password": (ONPREM, _PASSWORD, _ONPREMS, "", _NONE),
    "a developer, a password": (DEVELOPER, _PASSWORD, _OURS, "", ("DELETE",)),
    "the composer in kube-system": (COMPOSER, _BINDING, _OURS, "kube-system", _NONE),
    "the composer in a provider's namespace": (COMPOSER, _BINDING, _OURS, "fairlead-onprem", _NONE),
    "an account that is called like a provider's": (
        CALLED_SO,
        _CREDENTIALS,
        {"claim": UID, "cloud": "ev-il"},
        "",
        ("DELETE",),
    ),
    "a provider's credentials": (ONPREM, _CREDENTIALS, _ONPREMS, "", _ALL),
    "credentials of before there was the label": (ONPREM, _CREDENTIALS, _OURS, "", ("DELETE",)),
    "another cloud's credentials": (ONPREM, _CREDENTIALS, _OTHERS, "", _NONE),
    "credentials that are nobody's": (ONPREM, _CREDENTIALS, {}, "", _NONE),
    "a provider, Opaque": (ONPREM, "Opaque", _ONPREMS, "", _NONE),
    "a provider, a connection Secret": (ONPREM, _BINDING, _OURS, "", _NONE),
    "a provider in kube-system": (ONPREM, _CREDENTIALS, _ONPREMS, "kube-system", _NONE),
    "a provider in its own namespace": (ONPREM, "Opaque", {}, "fairlead-onprem", _NONE),
    "a provider in the composer's namespace": (ONPREM, "Opaque", {}, "fairlead-system", _NONE),
    "a developer": (DEVELOPER, "Opaque", {}, "", _ALL),
}


@pytest.mark.parametrize("case", _SECRETS)
async def test_our_processes_touch_no_secret_but_their_own(policed: str, api: Api, case: str) -> None:
    who, type_, labels, within, allowed = _SECRETS[case]
    collection = SECRET.path(within or policed)
    body = SECRET.new("", policed, type=type_)
    body["metadata"]["labels"] = prefixed(labels)
    another = body | {"metadata": body["metadata"] | {"name": f"{policed}-new"}}
    await api.create(collection, body)
    try:
        answers = {
            method: await As(api, who).refusal(method, path, sent)
            for method, path, sent in (
                ("POST", collection, another),
                ("PUT", f"{collection}/{policed}", body | {"stringData": {"a": "b"}}),
                ("DELETE", f"{collection}/{policed}", None),
            )
        }
    finally:
        await api.delete(f"{collection}/{policed}")

    assert tuple(method for method, answer in answers.items() if not answer) == allowed
    # The server names the first policy that refuses, in no order that can be relied on.
    refusals = [answer for answer in answers.values() if answer]
    assert [text for text in refusals if not re.search("Policy 'fairlead-(secrets|credentials|composer)'", text)] == []


async def test_a_provider_makes_its_hash_key_and_changes_it_never(policed: str, api: Api) -> None:
    del policed
    onprem, path = As(api, ONPREM), SECRET.path("fairlead-onprem", "fairlead-hash-key")
    body = SECRET.new("", "fairlead-hash-key")
    token = body | {"type": "kubernetes.io/service-account-token"}
    account = {"kubernetes.io/service-account.name": "fairlead-provider-onprem"}
    token["metadata"] = body["metadata"] | {"annotations": account}
    collection = SECRET.path("fairlead-onprem")
    assert "an Opaque fairlead-hash-key in its own" in await onprem.refusal("POST", collection, token)
    is_there = await api.find(path) is not None
    if not is_there:
        await onprem.request("POST", collection, body)

    for method, sent in (("PUT", body | {"stringData": {"key": "b"}}), ("DELETE", None)):
        assert "fairlead-hash-key in its own" in await onprem.refusal(method, path, sent)
    if not is_there:
        await api.delete(path)


@pytest.mark.parametrize(("who", "type_"), [(COMPOSER, _BINDING), (ONPREM, _CREDENTIALS)])
async def test_our_processes_hand_no_secret_over_and_take_none(policed: str, api: Api, who: str, type_: str) -> None:
    name = f"handed-{type_.partition('/')[2]}"
    cloud = {"cloud": "onprem"} if who == ONPREM else {}
    body: JsonObject = SECRET.new(policed, name, type=type_)
    body["metadata"]["labels"] = prefixed({"claim": "another", **cloud})
    await api.create(SECRET.path(policed), body)
    body["metadata"]["labels"] = prefixed({"claim": UID, **cloud})

    assert "a Secret stays the one of the claim" in await As(api, who).refusal("PUT", SECRET.path(policed, name), body)


async def test_whose_a_credentials_secret_is_stays_on_it(policed: str, api: Api) -> None:
    body: JsonObject = SECRET.new(policed, "marked", type=_CREDENTIALS)
    body["metadata"]["labels"] = prefixed(_ONPREMS)
    await api.create(SECRET.path(policed), body)
    path, developer = SECRET.path(policed, "marked"), As(api, DEVELOPER)

    for cloud in ("aws", None):
        refusal = await developer.refusal(
            "PATCH", path, {"metadata": {"labels": prefixed({"cloud": cloud})}}, content_type=MERGE
        )
        assert "is written by the provider alone" in refusal, cloud
    await developer.merge(path, {"metadata": {"labels": {"team": "shop"}}})
    await As(api, PLATFORM).merge(path, {"metadata": {"labels": prefixed({"cloud": "aws"})}})


_EPHEMERAL = {"fairlead.dev/ephemeral": "true"}


async def test_a_namespace_is_made_ephemeral_by_the_platform_alone_and_through_no_subresource_either(
    policed: str, api: Api
) -> None:
    path, developer = NAMESPACE.path("", policed), As(api, DEVELOPER)
    namespace = await api.get(path)
    labels = {"labels": {**namespace["metadata"]["labels"], **_EPHEMERAL}}
    whole = {**namespace, "metadata": {**namespace["metadata"], **labels}}
    for target in (path, f"{path}/status", f"{path}/finalize"):
        assert "only the platform team may set it" in await developer.refusal("PUT", target, whole), target

    await As(api, PLATFORM).merge(path, {"metadata": {"labels": _EPHEMERAL}})
    await developer.merge(path, {"metadata": {"labels": {"team": "shop"}}})
    left = await developer.merge(path, {"metadata": {"labels": dict.fromkeys(_EPHEMERAL)}})

    assert not _EPHEMERAL.keys() & left["metadata"]["labels"].keys()


@pytest.mark.usefixtures("people")
async def test_every_policy_fails_closed_and_is_bound(api: Api) -> None:
    policies = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    bindings = await api.items("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")

    assert {policy["spec"]["failurePolicy"] for policy in policies} == {"Fail"}
    assert {bound["spec"]["policyName"] for bound in bindings} == {policy["metadata"]["name"] for policy in policies}
    assert all(bound["spec"]["validationActions"] == ["Deny"] for bound in bindings)
