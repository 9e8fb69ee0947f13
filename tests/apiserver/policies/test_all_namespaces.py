"""The choice `all-namespaces`, applied to a real API server: what it gives, what it does not, and that it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.policies.actors import COMPOSER, ONPREM, OTHER_CLOUD
from tests.support.api import Api
from tests.support.grants import as_installed
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

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


async def _until_secrets(api: Api, *, are_given: bool) -> None:
    """Wait until the authorizer has seen the bindings come or go."""
    for who in (COMPOSER, ONPREM):

        async def is_heeded(who: str = who) -> bool:
            return await _is_allowed(api, who, "secrets", "default", "get") == are_given

        await eventually(is_heeded, f"{who} {'has' if are_given else 'lost'} the rights of all-namespaces")


async def _rights(api: Api) -> dict[tuple[str, str, str], frozenset[str]]:
    return {
        (who, resource, namespace): frozenset(
            [verb for verb in _VERBS if await _is_allowed(api, who, resource, namespace, verb)]
        )
        for who, resource in _GIVEN
        for namespace in _UNPREPARED
    }


async def test_the_composer_and_one_provider_may_use_secrets_by_name_everywhere_until_it_is_taken_back(
    alone: System,
) -> None:
    api, run = alone.api, alone.kubectl.run
    async with as_installed(alone):
        await run("apply", "--server-side", "--kustomize", str(_FOLDER))
        try:
            await _until_secrets(api, are_given=True)
            granted = await _rights(api)
        finally:
            await run("delete", "--kustomize", str(_FOLDER))
        await _until_secrets(api, are_given=False)
        left = await _rights(api)

    assert granted == {
        (who, resource, namespace): verbs for (who, resource), verbs in _GIVEN.items() for namespace in _UNPREPARED
    }
    assert set(left.values()) == {frozenset()}
