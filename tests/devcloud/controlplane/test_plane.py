"""The control plane answers as a real one: RBAC, TLS, audit, controllers."""

import ssl

import aiohttp
import pytest

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, ApiError, connect
from tests.support.audit import WRITES, AuditLog, Match


async def test_a_service_account_may_do_only_what_its_role_says(plane: Plane, api: Api, namespace: str) -> None:
    accounts = api.path("v1", "serviceaccounts", namespace)
    await api.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "clerk"}})
    kubeconfig = await plane.service_account_kubeconfig(namespace, "clerk", lifetime_s=3600)

    async with connect(kubeconfig) as clerk:
        with pytest.raises(ApiError) as refused:
            await clerk.get(api.path("v1", "secrets", namespace))

    assert refused.value.status == 403
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


async def test_a_login_without_a_credential_is_refused(plane: Plane) -> None:
    trusted = ssl.create_default_context(cadata=plane.authority_pem.decode())
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{plane.server}/api/v1/namespaces", ssl=trusted) as answer,
    ):
        assert answer.status == 401


async def test_the_audit_log_counts_writes_by_user_and_resource(api: Api, namespace: str, audit: AuditLog) -> None:
    path = api.path("v1", "configmaps", namespace)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}}
    await api.create(path, body)
    await api.merge(f"{path}/one", {"data": {"a": "2"}})
    await api.get(f"{path}/one")
    await api.delete(f"{path}/one")
    ours = Match(user="fairlead-admin", namespace=namespace, resource="configmaps")
    await audit.until_quiet(ours, for_s=0.5)

    assert [request.verb for request in audit.requests(ours)] == ["create", "patch", "get", "delete"]
    assert audit.count(Match(user="fairlead-admin", namespace=namespace, verbs=WRITES)) == 3


async def test_the_garbage_collector_deletes_dependents(api: Api, namespace: str) -> None:
    path = api.path("v1", "configmaps", namespace)
    owner = await api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    dependent = {"name": "dependent", "ownerReferences": [reference]}
    await api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dependent})

    await api.delete(f"{path}/owner")

    await api.until_gone(f"{path}/dependent")
