"""The choice `all-namespaces`, applied to a real API server: what it gives, what it does not, and that it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

from devcloud.controlplane.plane import Plane
from tests.apiserver.policies.actors import COMPOSER, ONPREM, OTHER_CLOUD
from tests.support.api import Api, connect
from tests.support.waiting import eventually

_FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "kustomize" / "all-namespaces"
_UNPREPARED = ("default", "kube-system")
_SECRETS = frozenset({"get", "create", "update", "delete"})
_VERBS = (*sorted(_SECRETS), "list", "watch", "patch", "deletecollection")
# Who may do what to which resource in a namespace that nobody prepared.
_GIVEN = {
    (COMPOSER, "secrets"): _SECRETS,
    (COMPOSER, "configmaps"): frozenset({"get"}),
    (ONPREM, "secrets"): _SECRETS,
    (ONPREM, "configmaps"): frozenset[str](),
    (OTHER_CLOUD, "secrets"): frozenset[str](),
    (OTHER_CLOUD, "configmaps"): frozenset[str](),
}


async def _is_allowed(api: Api, who: str, resource: str, namespace: str, verb: str) -> bool:
    named = {"get", "update", "delete", "patch", "watch"}
    attributes = {"resource": resource, "namespace": namespace, "verb": verb, "name": "a" if verb in named else ""}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "groups": ["system:serviceaccounts"], "resourceAttributes": attributes},
    }
    answer = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


async def _until_secrets(plane: Plane, *, are_given: bool) -> None:
    """Wait until the authorizer has seen the bindings come or go."""
    async with connect(plane.kubeconfig) as api:
        for who in (COMPOSER, ONPREM):

            async def is_heeded(who: str = who) -> bool:
                return await _is_allowed(api, who, "secrets", "default", "get") == are_given

            await eventually(is_heeded, f"{who} {'has' if are_given else 'lost'} the rights of all-namespaces")


async def _rights(plane: Plane) -> dict[tuple[str, str, str], frozenset[str]]:
    async with connect(plane.kubeconfig) as api:
        return {
            (who, resource, namespace): frozenset(
                [verb for verb in _VERBS if await _is_allowed(api, who, resource, namespace, verb)]
            )
            for who, resource in _GIVEN
            for namespace in _UNPREPARED
        }


def test_the_composer_and_one_provider_may_use_secrets_by_name_everywhere_until_it_is_taken_back(base: Plane) -> None:
    apply = ("apply", "--server-side", "--kustomize", str(_FOLDER))
    asyncio.run(base.kubectl.run(*apply))
    try:
        asyncio.run(_until_secrets(base, are_given=True))
        given = asyncio.run(_rights(base))
    finally:
        asyncio.run(base.kubectl.run("delete", "--kustomize", str(_FOLDER)))
    asyncio.run(_until_secrets(base, are_given=False))
    left = asyncio.run(_rights(base))

    assert given == {
        (who, resource, namespace): verbs for (who, resource), verbs in _GIVEN.items() for namespace in _UNPREPARED
    }
    assert set(left.values()) == {frozenset()}
