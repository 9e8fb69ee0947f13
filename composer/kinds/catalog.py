"""The facts of kinds: which may be composed, their scope and schema, and whether they hold data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from apis import names
from composer.kinds import claim_api
from composer.render.operators.fields import Fence, widened
from composer.render.operators.table import KINDS as OPERATOR_KINDS
from runtime.conditions import is_true
from runtime.objects import Object, Resource, annotations_of, labels_of

_BUILT_IN = (
    Resource("", "v1", "ConfigMap", "configmaps"),
    Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Resource("", "v1", "Service", "services"),
    Resource("apps", "v1", "StatefulSet", "statefulsets"),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
)
HOLDS_DATA = frozenset(
    {
        "PersistentVolumeClaim",
        "StatefulSet.apps",
        *(group_kind for group_kind, kind in OPERATOR_KINDS.items() if kind.holds_data),
    }
)
"""The kinds that are no provider's of ours and hold data, whatever their CRD says."""


class KindFacts(msgspec.Struct, frozen=True):
    """One kind that the API server serves. `schema` is its OpenAPI v3 schema, None for built-in kinds.

    `gaps`: what it lacks to be a kind of claim. `allowed`: compositions may create and change it; what exists of
    another kind is still torn down. `reports`: its CRD has a status for its operator to write. `resource` is of the
    version that is stored, which is also the one that is read; `same`: further versions that hold the same fields, so
    that compositions may name them too; `converted`: those whose fields a webhook makes of the stored ones, each with
    its schema. `inside`: an object of it lives inside one that it depends on, and goes with that. `prompt`: its
    provider answers for a new object within a moment. `fields`: what compositions may set beside what the table of
    operators lists.
    """

    resource: Resource
    stateful: bool
    schema: dict[str, Any] | None = None
    gaps: tuple[str, ...] = ("schema",)
    allowed: bool = False
    reports: bool = False
    same: tuple[str, ...] = ()
    converted: dict[str, dict[str, Any] | None] = {}
    inside: bool = False
    prompt: bool = False
    fields: tuple[str, ...] = ()

    @property
    def fence(self) -> Fence:
        """What compositions may set of it."""
        kind = OPERATOR_KINDS.get(self.resource.group_kind)
        return Fence(self.resource, kind.fields if kind else None, self.fields)

    @property
    def abstract(self) -> bool:
        """Whether it has all that a kind of claim needs."""
        return not self.gaps

    @property
    def is_shipped(self) -> bool:
        """Whether it is a kind of claim of our own, which is watched before any Composition names it."""
        return self.abstract and self.resource.group in names.CLAIM_GROUPS

    @property
    def managed(self) -> bool:
        """Whether one of our providers serves it and waits for the teardown instruction."""
        return names.is_managed(self.resource.group) and not self.abstract

    def written_as(self, api_version: str) -> Resource:
        """Return the kind in the version in which an object of it is written."""
        return replace(self.resource, version=api_version.rpartition("/")[2])

    def is_converted(self, api_version: str) -> bool:
        """Return whether a webhook makes this version of the stored one, and may give its fields other names."""
        return api_version.rpartition("/")[2] in self.converted

    def schema_of(self, api_version: str) -> dict[str, Any] | None:
        """Return the schema of a version: the stored one's where it holds the same fields."""
        return self.converted.get(api_version.rpartition("/")[2], self.schema)

    def comparable(self, obj: Object) -> Object:
        """Return what of an object, as it is sent, can be compared with the stored one.

        All of it, unless a webhook converts: then the metadata, and the stored object's generation stands for the rest.
        """
        if not self.is_converted(obj["apiVersion"]):
            return obj
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}

    def version_fault(self, api_version: str, *, of_claims: bool = False) -> str:
        """Return why a composition cannot name the kind by this version, and by which it can; empty when it can.

        `of_claims`: as its kind of claim, whose objects are read in the stored version.
        """
        version, stored = api_version.rpartition("/")[2], self.resource
        is_converted = version in self.converted
        if version in (stored.version, *self.same) or (is_converted and not of_claims):
            return ""
        why = "is converted by a webhook, and claims are read as they are stored" if is_converted else "is not served"
        return f"kind {stored.kind} of {api_version} {why}; write apiVersion: {stored.api_version}"


Catalog = dict[str, KindFacts]
"""Facts by `Kind.group`."""


_LISTED = OPERATOR_KINDS.keys() | {resource.group_kind for resource in _BUILT_IN}


def is_silent(facts: KindFacts | None, live: Object) -> bool:
    """Return whether an object's operator writes a status, and has not written one yet."""
    return facts is not None and facts.reports and not live.get("status")


def is_listed(group: str, group_kind: str) -> bool:
    """Return whether a kind of that name may be composed unless its CRD says otherwise, whatever its scope."""
    return names.is_managed(group) or group_kind in _LISTED


def may_come(group: str, group_kind: str) -> bool:
    """Return whether a kind that is not installed may be allowed once it is: a CRD says so by its label."""
    return is_listed(group, group_kind) or ("." in group and not group.endswith(".k8s.io"))


def catalog(crds: Iterable[Object]) -> Catalog:
    """Return the facts of all kinds: those that CRDs define, and the built-in ones that may be composed."""
    return catalog_of(facts for crd in crds if (facts := facts_of(crd)) is not None)


def catalog_of(facts: Iterable[KindFacts]) -> Catalog:
    """Return the facts of CRDs' kinds together with those of the built-in ones."""
    facts_by_kind = {
        resource.group_kind: KindFacts(resource, resource.group_kind in HOLDS_DATA, allowed=True)
        for resource in _BUILT_IN
    }
    facts_by_kind.update((kind.resource.group_kind, kind) for kind in facts)
    return facts_by_kind


def _holds_data(resource: Resource, labels: Mapping[str, str], *, is_claim: bool) -> bool:
    """Return whether losing an object loses data: what a provider serves does unless its CRD says that it does not."""
    label = labels.get(names.STATEFUL_LABEL)
    if names.is_managed(resource.group) and not is_claim:
        return label != "false"
    return label == "true" or resource.group_kind in HOLDS_DATA


def facts_of(crd: Object) -> KindFacts | None:
    """Return the facts of a CRD's kind; None when it serves no version, or none yet."""
    spec, status = crd["spec"], crd.get("status")
    if status and not is_true(crd, "Established"):
        return None
    served = [version for version in spec["versions"] if version.get("served")]
    if not served:
        return None
    version = next((version for version in served if version.get("storage")), served[0])
    spelled = spec["names"]
    resource = Resource(
        spec["group"], version["name"], spelled["kind"], spelled["plural"], namespaced=spec["scope"] == "Namespaced"
    )
    others = [other for other in served if other is not version]
    is_converted = (spec.get("conversion") or {}).get("strategy", "None") != "None"
    labels = labels_of(crd)
    gaps = claim_api.gaps(spec["scope"], version)
    listed = labels.get(names.COMPOSABLE_LABEL) or str(is_listed(resource.group, resource.group_kind)).lower()
    return KindFacts(
        resource,
        stateful=_holds_data(resource, labels, is_claim=not gaps),
        schema=_schema_in(version),
        gaps=gaps,
        allowed=listed == "true" and resource.namespaced and bool(gaps),
        reports="status" in (version.get("subresources") or {}),
        same=() if is_converted else tuple(other["name"] for other in others),
        converted={other["name"]: _schema_in(other) for other in others} if is_converted else {},
        inside=names.is_managed(resource.group) and labels.get(names.INSIDE_LABEL) == "true",
        prompt=labels.get(names.PROMPT_LABEL) == "true",
        fields=widened(annotations_of(crd).get(names.COMPOSABLE_FIELDS, "")),
    )


def _schema_in(version: Mapping[str, Any]) -> dict[str, Any] | None:
    return (version.get("schema") or {}).get("openAPIV3Schema")
