"""What the admission policies keep from the labels of a namespace."""

from __future__ import annotations

import pytest

from tests.apiserver.policies.actors import DEVELOPER, PLATFORM, As
from tests.support.api import Api, ApiError


@pytest.mark.parametrize("subresource", ["status", "finalize"])
async def test_a_namespace_is_made_ephemeral_through_no_subresource_either(
    policed: str, api: Api, subresource: str
) -> None:
    path = f"/api/v1/namespaces/{policed}"
    label = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}
    namespace = await api.get(path)
    whole = {
        **namespace,
        "metadata": {
            **namespace["metadata"],
            "labels": {**namespace["metadata"]["labels"], **label["metadata"]["labels"]},
        },
    }

    with pytest.raises(ApiError, match="only the platform team may set it"):
        await As(api, DEVELOPER).request("PUT", f"{path}/{subresource}", whole)


async def test_a_namespace_is_made_ephemeral_by_the_platform_alone(policed: str, api: Api) -> None:
    path = f"/api/v1/namespaces/{policed}"
    label = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}

    with pytest.raises(ApiError, match="only the platform team may set it"):
        await As(api, DEVELOPER).merge(path, label)
    await As(api, PLATFORM).merge(path, label)
    await As(api, DEVELOPER).merge(path, {"metadata": {"labels": {"team": "shop"}}})
    left = await As(api, DEVELOPER).merge(path, {"metadata": {"labels": {"fairlead.dev/ephemeral": None}}})

    assert "fairlead.dev/ephemeral" not in left["metadata"]["labels"]
