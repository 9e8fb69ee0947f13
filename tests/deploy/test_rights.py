"""What requests of an audit log come to against a file of rights."""

from __future__ import annotations

import pytest

from tests.support.audit import Request
from tests.support.rights import ANY_OTHER, OF_ANOTHER, OWN, WITH_CLAIMS, Right, Usage, rights_in, usage_of

_EVERYWHERE = """\
[/version] [] [get]
namespaces [] [] [get list]
selfsubjectreviews.authentication.k8s.io [] [] [create]
shelves.example.com/status [] [] [patch]
"""
_FILE = f"""\
# Namespace: its own, such as ours
{_EVERYWHERE}leases.coordination.k8s.io [] [] [create]
leases.coordination.k8s.io [] [leader] [get]

# Namespace: with claims, such as shop
{_EVERYWHERE}secrets [] [] [get]

# Namespace: of another process, such as fairlead-system
{_EVERYWHERE}
# Namespace: any other, such as kube-system
{_EVERYWHERE}"""
_ALL = [
    "get namespaces",
    "list namespaces",
    "patch shelves.example.com/status",
    "create leases.coordination.k8s.io (its own)",
    "get leases.coordination.k8s.io leader (its own)",
    "get secrets (with claims)",
]


def _request(verb: str, resource: str, namespace: str = "", name: str = "", decision: str = "allow") -> Request:
    kind, _, subresource = resource.partition("/")
    plural, _, group = kind.partition(".")
    return Request(
        user="",
        user_agent="",
        verb=verb,
        group=group,
        resource=plural,
        subresource=subresource,
        namespace=namespace,
        name=name,
        code=200 if decision == "allow" else 403,
        uri=f"/{plural}",
        credential="",
        received_at="",
        decision=decision,
    )


def _usage(*requests: Request) -> Usage:
    return usage_of(rights_in(_FILE), requests, own="ours", with_claims=frozenset({"shop"}))


def test_a_file_is_read_by_place_without_what_everybody_may() -> None:
    rights = rights_in(_FILE)

    everywhere = frozenset(
        {Right("namespaces", "get"), Right("namespaces", "list"), Right("shelves.example.com/status", "patch")}
    )
    assert rights == {
        OWN: everywhere
        | {Right("leases.coordination.k8s.io", "create"), Right("leases.coordination.k8s.io", "get", "leader")},
        WITH_CLAIMS: everywhere | {Right("secrets", "get")},
        OF_ANOTHER: everywhere,
        ANY_OTHER: everywhere,
    }


def test_a_row_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="pods get"):
        rights_in("# Namespace: its own, such as ours\npods get\n")


_LEASE = "leases.coordination.k8s.io"
_USED = {
    "everywhere, in one place": (("get", "namespaces", "shop", "shop"), "get namespaces"),
    "everywhere, in the cluster": (("list", "namespaces"), "list namespaces"),
    "a subresource": (("patch", "shelves.example.com/status", "kube-system", "a"), "patch shelves.example.com/status"),
    "by name": (("get", _LEASE, "ours", "leader"), f"get {_LEASE} leader (its own)"),
    "in one place": (("get", "secrets", "shop", "any"), "get secrets (with claims)"),
}
_UNLISTED = {
    "another verb": (("delete", "namespaces", "shop"), "delete namespaces (with claims)"),
    "no status": (("patch", "shelves.example.com", "shop"), "patch shelves.example.com (with claims)"),
    "another name": (("get", _LEASE, "ours", "other"), f"get {_LEASE} (its own)"),
    "another place": (("get", "secrets", "ours", "a"), "get secrets (its own)"),
    "a neighbour": (("get", "secrets", "fairlead-aws"), "get secrets (of another process)"),
    "the whole cluster": (("get", "secrets"), "get secrets (any other)"),
}


@pytest.mark.parametrize(("words", "used"), _USED.values(), ids=_USED)
def test_a_request_uses_its_right_alone(words: tuple[str, ...], used: str) -> None:
    usage = _usage(_request(*words))

    assert (usage.refused, usage.unlisted) == ([], [])
    assert sorted(usage.unused) == sorted(set(_ALL) - {used})


@pytest.mark.parametrize(("words", "named"), _UNLISTED.values(), ids=_UNLISTED)
def test_a_request_that_no_right_covers_is_named_and_uses_none(words: tuple[str, ...], named: str) -> None:
    usage = _usage(_request(*words))

    assert usage.unlisted == [named]
    assert sorted(usage.unused) == sorted(_ALL)


def test_a_request_that_the_authorizer_refused_is_named_and_uses_none() -> None:
    usage = _usage(_request("get", "namespaces", decision="forbid"))

    assert (usage.refused, usage.unlisted) == (["get /namespaces"], [])
    assert sorted(usage.unused) == sorted(_ALL)


def test_what_everybody_may_is_no_request_of_ours() -> None:
    review = _request("create", "selfsubjectaccessreviews.authorization.k8s.io")

    assert _usage(review).unlisted == []
