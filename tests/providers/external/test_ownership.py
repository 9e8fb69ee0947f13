"""Identity and owner of a managed resource, by rule from its labels and annotations."""

from __future__ import annotations

from providers.external.ownership import Identity, identity_of, owner_of
from runtime.objects import Object
from tests.providers.managed.test_record import P, obj


def child(**changed: str) -> Object:
    annotations = {P + "claim-name": "shop", P + "resource": "database", P + "key": "eu"} | changed
    return obj(annotations, labels={P + "claim": "claim-uid"})


def test_identity_of_a_child_is_its_claims_and_of_others_their_own() -> None:
    assert identity_of(child()) == Identity("claim-uid", "shop", "database", "eu", has_claim=True)
    assert identity_of(obj()) == Identity("uid-1", "db", "db", "", has_claim=False)
    # sha256("claim-uid\0database\0eu") in base32, lower case, ten characters.
    assert identity_of(child()).hash == "zrk474fypt"


def test_owner_differs_by_key_resource_namespace_and_claim() -> None:
    owner = owner_of(child(), "home")
    assert owner.owns(owner_of(child(), "home"))
    others = [
        owner_of(child(**{P + "key": "us"}), "home"),
        owner_of(child(**{P + "resource": "cache"}), "home"),
        owner_of(child(**{P + "claim-name": "stall"}), "home"),
        owner_of(child(), "elsewhere"),
    ]
    elsewhere = child()
    elsewhere["metadata"]["namespace"] = "other"
    others.append(owner_of(elsewhere, "home"))
    assert not any(owner.owns(other) for other in others)
    assert not owner.owns(None)


def test_owner_of_the_same_claim_under_another_identity_precedes() -> None:
    other = child()
    other["metadata"]["labels"] = {P + "claim": "claim-uid-2"}

    assert owner_of(other, "home").precedes(owner_of(child(), "home"))
    assert not owner_of(child(), "home").precedes(owner_of(child(), "home"))
    assert not owner_of(other, "elsewhere").precedes(owner_of(child(), "home"))


def test_identity_without_its_claim_is_doubtful() -> None:
    unnamed = child()
    unnamed["metadata"]["annotations"] = {}
    unlabelled = child()
    unlabelled["metadata"]["labels"] = {}
    bare = obj()
    bare["metadata"]["ownerReferences"] = [{"kind": "PostgreSQLInstance", "name": "shop", "controller": True}]

    assert [identity_of(resource).doubtful for resource in (unnamed, unlabelled, bare, child(), obj())] == [
        True,
        True,
        True,
        False,
        False,
    ]
