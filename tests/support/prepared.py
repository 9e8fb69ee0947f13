"""Namespaces prepared for claims, by the RoleBindings that are shipped."""

from __future__ import annotations

from pathlib import Path

from tests.support import yaml_texts
from tests.support.api import Api, JsonObject
from tests.support.kinds import ROLE_BINDING, Kind
from tests.support.waiting import eventually

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


def bindings_of(deploy: Path, cloud: str) -> list[JsonObject]:
    """Return the RoleBindings of a cloud's folder `claim-namespace`, the composer's first."""
    kustomize = deploy / "kustomize"
    files = (
        kustomize / "core" / "claim-namespace" / "composer.yaml",
        kustomize / "clouds" / cloud / "claim-namespace" / "provider.yaml",
    )
    return [yaml_texts.load(path) for path in files]


async def prepare(api: Api, namespace: str, *clouds: str, deploy: Path = _DEPLOY) -> None:
    """Bind them in a namespace, as `kubectl apply -n NAMESPACE -k` does; return once the API server heeds them."""
    bindings = {binding["metadata"]["name"]: binding for cloud in clouds for binding in bindings_of(deploy, cloud)}
    for binding in bindings.values():
        path = ROLE_BINDING.path(namespace, binding["metadata"]["name"])
        await api.apply(path, {**binding, "metadata": {**binding["metadata"], "namespace": namespace}})
    for binding in bindings.values():
        (subject,) = binding["subjects"]
        who = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"

        async def may_use(who: str = who) -> bool:
            attributes = {"verb": "get", "resource": "secrets", "namespace": namespace}
            review = _REVIEW.new("", "", spec={"user": who, "resourceAttributes": attributes})
            del review["metadata"]
            return bool((await api.create(_REVIEW.path(), review))["status"]["allowed"])

        await eventually(may_use, f"{who} may use Secrets in {namespace}")
