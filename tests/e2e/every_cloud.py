"""Claims in every cloud by Fairlead's own pods: what they asked the API server for, and what they let be seen.

Run by `make e2e` after `installed.py` on the same cluster: the audit log and the pods' logs hold those too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.security.canaries import content_of, forms_of
from tests.support import lives
from tests.support.audit import AuditLog
from tests.support.aws import simulated_rds
from tests.support.azure import simulated_azure
from tests.support.gcp import simulated_cloud_sql
from tests.support.pods import CLAIM_NAMESPACES, NAMESPACES, Cluster
from tests.support.rights import ACCOUNTS, CLOUDS, TAKEN_BY_NO_LIFE, Usage, usage_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

_KEY = "credentials.json"
_OF_CLOUDS = frozenset({"password", "aws_secret_access_key", _KEY, "AZURE_CLIENT_SECRET"})
"""The keys of what the clouds' administrators log in with."""
_OF_LOGINS = frozenset({"current", "pending"})
"""The keys of passwords of a login, beside `password`; one that is pending is there for seconds."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def usages(cluster: Cluster) -> AsyncIterator[dict[str, Usage]]:
    """Yield what each account's requests come to since the cluster began, after lives of claims in every cloud."""
    async with (
        cluster.system() as system,
        simulated_rds(system, real=False) as aws,
        simulated_azure(system, real=False) as azure,
        simulated_cloud_sql(system, real=False) as gcp,
    ):
        await lives.live_on_prem(system, "rights-onprem")
        await lives.live_on_aws(aws, "rights-aws")
        await lives.live_on_azure(azure, "rights-azure")
        await lives.live_on_cloud_sql(gcp, "rights-gcp")
        log = AuditLog.from_the_start(cluster.plane.audit_log)
        requests = [request for request in log.requests(begun=True) if request.group != lives.FOREIGN.group]
        with_claims = frozenset({*CLAIM_NAMESPACES, *(f"rights-{cloud}" for cloud in CLOUDS)})
        yield {account: usage_in(requests, account, with_claims) for account in ACCOUNTS}


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_of_a_pod_was_refused_for_want_of_a_right(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].refused == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_of_a_pod_was_unlisted(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].unlisted == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_every_right_of_the_file_was_used_by_pods(usages: dict[str, Usage], account: str) -> None:
    assert [right for right in usages[account].unused if right not in TAKEN_BY_NO_LIFE] == []


@pytest.mark.usefixtures("usages")
async def test_no_secret_shows_in_what_the_pods_log_at_debug(cluster: Cluster) -> None:
    kept = [
        content_of(item) for name in (*CLAIM_NAMESPACES, *NAMESPACES) for item in await cluster.items("secrets", name)
    ]
    canaries = {content[key] for content in kept for key in _OF_CLOUDS | _OF_LOGINS if content.get(key)}
    canaries |= {json.loads(content[_KEY])["private_key"] for content in kept if _KEY in content}
    pods = [pod for name in NAMESPACES for pod in await cluster.items("pods", name)]
    assert [pod["metadata"]["name"] for pod in pods if "--log-level=DEBUG" not in _arguments(pod)] == []
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
    logs = [await cluster.plane.kubectl.run("logs", name, f"--namespace={namespace}") for namespace, name in names]
    logs += [await cluster.plane.kubectl.run("get", kinds, "-A", "--output=json") for kinds in ("events", "pgi,pods")]

    assert {key for content in kept for key in content} >= _OF_CLOUDS
    shown = [
        number
        for number, text in enumerate(logs)
        if any(form in text for canary in canaries for form in forms_of(canary))
    ]
    assert shown == []


def _arguments(pod: dict[str, Any]) -> list[str]:
    return [argument for container in pod["spec"]["containers"] for argument in container["args"]]
