"""What is reported of a claim that cannot be composed: all at once, so that one correction is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apis import names
from composer.claim.compose import Prepared, Preparer
from composer.claim.report import Findings
from composer.composition.revision import Candidate, Revision
from composer.kinds.catalog import Catalog
from composer.render.errors import CompositionError, Problem
from composer.render.render import Rendered
from composer.render.request import Request
from tests.composer.factories import CATALOG, CLAIMS, child, claim, desired, rendered, snapshot

SPEC: dict[str, Any] = {
    "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
    "deletionPolicies": ["Orphan"],
    "environments": ["network", "sizes"],
    "resources": [{"name": "database", "template": {"apiVersion": "v1", "kind": "ConfigMap"}}],
}
FAULTS = (
    Problem("RenderFailed", "no class for 'huge'", "spec.resources[0].template", resource="database"),
    Problem("RenderFailed", "no zone", "spec.resources[1].template", resource="zone"),
)


class _World:
    """A Composition with the environments that are given, whose render has the given faults."""

    def __init__(self, *environments: str, faults: tuple[Problem, ...] = (), kinds: Catalog = CATALOG) -> None:
        self._kinds = kinds
        self._environments = environments
        self._faults = faults

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        del api_version, kind
        return (Candidate("postgres", {}, None),)

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        return (Revision("postgres-1", 1, composition, SPEC),)

    def environment(self, name: str) -> dict[str, str] | None:
        return {} if name in self._environments else None

    async def render(self, request: Request) -> Rendered:
        del request
        if self._faults:
            raise CompositionError(*self._faults)
        return rendered(child(desired()))

    async def prepare(self, **spec: Any) -> Prepared | Findings:
        owner = claim(annotations={names.COMPOSITION: "postgres"}, **spec)
        return await Preparer(self, self).prepare(replace(snapshot(of=owner), catalog=self._kinds))


def _reported(prepared: Prepared | Findings) -> list[tuple[str, str]]:
    assert isinstance(prepared, Findings)
    assert prepared.rendered is None
    return [(cause.reason, cause.message.partition(":")[0]) for cause in prepared.causes]


async def test_faults_of_a_claim_are_all_reported_at_once() -> None:
    world = _World("network", "sizes", faults=FAULTS)

    reported = _reported(await world.prepare(deletionPolicy="Delete", restoreFrom={"claim": "former"}))

    assert [reason for reason, _ in reported] == ["UnsupportedPolicy", "InvalidValue", "RenderFailed", "RenderFailed"]


async def test_a_missing_environment_is_reported_beside_a_refusal() -> None:
    reported = _reported(await _World("network").prepare(deletionPolicy="Delete"))

    assert [reason for reason, _ in reported] == ["UnsupportedPolicy", "EnvironmentNotFound"]


async def test_a_refused_claim_is_not_composed_although_it_can_be_rendered() -> None:
    reported = _reported(await _World("network", "sizes").prepare(restoreFrom={"claim": "former"}))

    assert reported == [("InvalidValue", "spec.restoreFrom")]
