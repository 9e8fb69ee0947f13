"""Who may write which of our names, refused or let through by the real API server's admission."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.plane import Plane
from tests.apiserver.policies.conftest import As
from tests.support.api import Api, ApiError, JsonObject
from tests.support.waiting import eventually

COMPOSER = "system:serviceaccount:fairlead-system:fairlead-composer"
ONPREM = "system:serviceaccount:fairlead-onprem:fairlead-provider-onprem"
OTHER_CLOUD = "system:serviceaccount:fairlead-aws:fairlead-provider-aws"
DEVELOPER, PLATFORM = "developer", "platform"
PREFIX = "fairlead.dev/"


@dataclass(frozen=True)
class Case:
    """`who` sets `annotations` (and `labels`) on an object that has `before`; `refused` is a part of the answer."""

    id: str
    who: str
    on: str
    annotations: dict[str, str | None] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    refused: str = ""


CLAIM, CHILD, CONFIG = "claim", "child", "config"
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
IDENTITY = {"identity": f"{UID}@shop/orders"}
WORD = {"teardown": f"{UID}/Delete"}
MARKS = {"external-name": "orders_1", "incarnation": "16384", "account": "7301"}

CASES = (
    Case("a developer forges no identity", DEVELOPER, CLAIM, {**IDENTITY}, refused="written by the composer only"),
    Case("the composer writes the identity", COMPOSER, CLAIM, {**IDENTITY}),
    Case("a backup tool restores the identity", PLATFORM, CLAIM, {**IDENTITY}),
    Case("a provider writes nothing on claims", ONPREM, CLAIM, {**IDENTITY}, refused="written by the composer only"),
    Case(
        "a developer switches no composition by annotation",
        DEVELOPER,
        CLAIM,
        {"composition": "other"},
        refused="composition",
    ),
    Case("a developer hides no kinds", DEVELOPER, CLAIM, {"kinds": ""}, before={"kinds": "A.b"}, refused="kinds"),
    Case("a removal is let through, since it is put back", DEVELOPER, CLAIM, {"identity": None}, before=IDENTITY),
    Case("an unchanged value is let through", DEVELOPER, CLAIM, {**IDENTITY, "paused": "true"}, before=IDENTITY),
    Case("a developer pauses", DEVELOPER, CLAIM, {"paused": "true", "paused-reason": "moving house"}),
    Case("a developer asks for a reconcile", DEVELOPER, CLAIM, {"reconcile-requested-at": "now"}),
    Case("a developer does not consent to a loss", DEVELOPER, CLAIM, {"consent": f"db={UID}"}, refused="consent"),
    Case("the composer does not consent either", COMPOSER, CLAIM, {"consent": f"db={UID}"}, refused="consent"),
    Case("the platform consents", PLATFORM, CLAIM, {"consent": f"db={UID}"}),
    Case("a developer starts beside the predecessor", DEVELOPER, CLAIM, {"adopt": "none"}),
    Case("a developer adopts no stranger", DEVELOPER, CLAIM, {"adopt": "16384"}, refused="adopt"),
    Case("a developer speaks no teardown word", DEVELOPER, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("the platform speaks none either", PLATFORM, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("a provider speaks none either", ONPREM, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("the composer speaks it", COMPOSER, CHILD, {**WORD}),
    Case("the composer changes it", COMPOSER, CHILD, {**WORD}, before={"teardown": f"{UID}/Detach"}),
    Case("a provider marks its resource", ONPREM, CHILD, {**MARKS}),
    Case("the composer gives a reborn child its marks", COMPOSER, CHILD, {**MARKS}),
    Case("the platform adopts by name", PLATFORM, CHILD, {**MARKS}),
    Case("a developer forges no mark", DEVELOPER, CHILD, {**MARKS}, refused="written by the provider"),
    Case("another cloud's provider marks nothing here", OTHER_CLOUD, CHILD, {**MARKS}, refused=""),
    Case("a developer moves no mark", DEVELOPER, CHILD, {"incarnation": "2"}, before=MARKS, refused="incarnation"),
    Case(
        "a developer consents to no loss on a child", DEVELOPER, CHILD, {"consent": "recreate=16384"}, refused="consent"
    ),
    Case("the platform consents on a child", PLATFORM, CHILD, {"consent": "recreate=16384"}),
    Case("a provider consents to nothing", ONPREM, CHILD, {"consent": "recreate=16384"}, refused="consent"),
    Case("the composer copies `adopt: none`", COMPOSER, CHILD, {"adopt": "none"}),
    Case("the composer adopts nothing", COMPOSER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("a developer adopts nothing", DEVELOPER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("the platform adopts", PLATFORM, CHILD, {"adopt": "16384"}),
    Case("a developer passes no object off as a child", DEVELOPER, CHILD, {"claim-name": "x"}, refused="claim-name"),
    Case(
        "the composer names the claim",
        COMPOSER,
        CHILD,
        {"claim-name": "x", "resource": "db", "key": "", "composition": "c"},
    ),
    Case(
        "a developer changes no claim label",
        DEVELOPER,
        CHILD,
        labels={"claim": UID},
        refused="label fairlead.dev/claim",
    ),
    Case("the composer labels its child", COMPOSER, CHILD, labels={"claim": UID}),
    Case("a provider labels a resource without a claim", ONPREM, CHILD, labels={"claim": UID}),
    Case("the platform releases a brake", PLATFORM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}),
    Case(
        "a developer releases none",
        DEVELOPER,
        CONFIG,
        {"brake-released": "2026-11-21T00:00:00Z"},
        refused="brake-released",
    ),
    Case(
        "a provider releases none", ONPREM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}, refused="brake-released"
    ),
)


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


@pytest.fixture
async def guarded(people: Plane, api: Api, namespace: str) -> str:  # noqa: ARG001 - a fixture cannot use usefixtures
    """A namespace on a plane whose policies are in force; the API server takes a moment to compile them."""

    async def refuses() -> bool:
        tries = (
            (CLAIM, {"identity": "x"}),
            (CHILD, {"external-name": "x"}),
        )
        for on, forged in tries:
            try:
                await As(api, DEVELOPER).request(
                    "POST", f"{paths(on, namespace)[0]}?dryRun=All", body_of(on, namespace, forged)
                )
            except ApiError as error:
                if error.status == 403 and "ValidatingAdmissionPolicy" in str(error):
                    continue
            return False
        return True

    await eventually(refuses, "the admission policies are in force")
    return namespace


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_name_is_written_by_its_writer_alone(guarded: str, api: Api, case: Case) -> None:
    collection, path = paths(case.on, guarded)
    await api.create(collection, body_of(case.on, guarded, case.before))
    change = {
        "annotations": {PREFIX + name: value for name, value in case.annotations.items()},
        "labels": prefixed(case.labels),
    }

    try:
        await As(api, case.who).merge(path, {"metadata": change})
        refusal = ""
    except ApiError as error:
        refusal = str(error)
    if case.on == CONFIG:
        await api.delete(path)

    if case.who == OTHER_CLOUD:
        assert "cannot patch" in refusal  # RBAC comes first: that account has no right here at all
    elif case.refused:
        assert "ValidatingAdmissionPolicy" in refusal
        assert case.refused in refusal
    else:
        assert refusal == ""


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
        "resource",
        "teardown",
    }
