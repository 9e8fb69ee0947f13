"""Where an object is found: no name leads to another request than the one that is meant."""

from __future__ import annotations

import pytest

from runtime.errors import InvalidName
from runtime.objects import CRDS, NAMESPACES, SECRETS, Key, Resource

ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)


def test_paths_are_those_of_the_api() -> None:
    assert SECRETS.path(Key("shop", "orders.db-connection")) == "/api/v1/namespaces/shop/secrets/orders.db-connection"
    assert SECRETS.path() == "/api/v1/secrets"
    assert SECRETS.path(namespace="shop") == "/api/v1/namespaces/shop/secrets"
    assert NAMESPACES.path(Key("", "shop"), subresource="status") == "/api/v1/namespaces/shop/status"
    assert ROLES.path(Key("", "system:node")) == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
    assert CRDS.path(Key("", "a.b.c")).endswith("/customresourcedefinitions/a.b.c")


_NO_NAMES = (
    *("", ".", "..", "../alice/app-connection", "a/b", "x?y#z", "x?y", "x#z", "%2e%2e", "a%2fb", "a b", "a\n", "a\\b"),
    *("é", "a\x00b", "a;b", "x" * 254),
)


@pytest.mark.parametrize("name", _NO_NAMES)
def test_a_text_that_is_no_name_is_refused_before_any_request(name: str) -> None:
    with pytest.raises(InvalidName, match="is no name of a Secret"):
        SECRETS.path(Key("shop", name))
    if name:
        with pytest.raises(InvalidName, match="is no name of a Namespace"):
            SECRETS.path(namespace=name)
