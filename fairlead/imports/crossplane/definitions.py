"""Crossplane's definitions of composite resources (XRDs) as kinds of claim of ours, with the rights they need. Pure.

Source: docs.crossplane.io, "Composite Resource Definitions" (v1: `claimNames`; v2: `scope: Namespaced`); docs/kinds.md
for what a kind of claim must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.imports.crossplane.compositions import ClaimKind
from runtime.objects import Object

# A group of its own: the CRD of the same name is Crossplane's as long as its definition is there.
_PREFIX: Final = "fairlead."
# What the composer reads of a claim's spec.
_OF_EVERY_CLAIM: Final = (
    "compositionRef", "compositionSelector", "compositionRevisionRef", "deletionPolicy", "deletionProtection",
    "connectionSecretName", "passwordRotation", "passwordSecretRef",
)  # fmt: skip
_POLICIES: Final = (
    ("fairlead-claims", "", ("CREATE", "UPDATE")),
    ("fairlead-deletion-protection", "", ("DELETE",)),
    ("fairlead-status", "/status", ("UPDATE",)),
)


def composite_of(definition: Object) -> tuple[str, str]:
    """Return group and kind of the composite resource that a definition makes."""
    spec = definition["spec"]
    return str(spec["group"]), str(spec["names"]["kind"])


def claim_kind_of(definition: Object, ours: Object) -> tuple[Object, ClaimKind]:
    """Return the CRD of the claims, and what Compositions need to know of it; `ours` is the CRD that is shipped."""
    spec = definition["spec"]
    names = dict(spec.get("claimNames") or spec["names"])
    group = f"{_PREFIX}{spec['group']}"
    shipped = ours["spec"]["versions"][0]
    versions = [_version(version, shipped) for version in spec["versions"]]
    is_stored = [bool(version.get("referenceable")) for version in spec["versions"]]
    stored = is_stored.index(True) if any(is_stored) else 0
    for index, version in enumerate(versions):
        version["storage"] = index == stored
    properties = versions[stored]["schema"]["openAPIV3Schema"]["properties"]
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                name: names[name] for name in ("kind", "plural", "singular", "listKind", "shortNames") if name in names
            },
            "versions": versions,
        },
    }
    kind = ClaimKind(f"{group}/{versions[stored]['name']}", names["kind"], properties["spec"], properties["status"])
    return crd, kind


def _version(version: Mapping[str, Any], shipped: Mapping[str, Any]) -> Object:
    theirs = ((version.get("schema") or {}).get("openAPIV3Schema") or {}).get("properties") or {}
    spec, status = dict(theirs.get("spec") or {"type": "object"}), theirs.get("status") or {}
    whole = shipped["schema"]["openAPIV3Schema"]["properties"]
    own = {name: whole["spec"]["properties"][name] for name in _OF_EVERY_CLAIM}
    spec["properties"] = {**(spec.get("properties") or {}), **own}
    fields = {**(status.get("properties") or {}), **whole["status"]["properties"]}
    return {
        "name": str(version["name"]),
        "served": bool(version.get("served", True)),
        "storage": False,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": "string", "jsonPath": f'.status.conditions[?(@.type=="{name}")].status'}
            for name in ("Ready", "Synced")
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": spec, "status": {**whole["status"], "properties": fields}},
            }
        },
    }


def rights_of(crd: Object) -> list[Object]:
    """Return what lets the composer serve a kind of claim, and puts it under the admission policies."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    verbs = {
        plural: ["get", "list", "watch", "patch"],
        f"{plural}/status": ["patch"],
        f"{plural}/finalizers": ["update"],
    }
    rules = [{"apiGroups": [group], "resources": [name], "verbs": allowed} for name, allowed in verbs.items()]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"composer-{plural}.{group}", "labels": {"fairlead.dev/aggregate-to-composer": "true"}},
        "rules": rules,
    }
    return [role, *(_binding(policy, group, f"{plural}{below}", operations) for policy, below, operations in _POLICIES)]


def _binding(policy: str, group: str, resources: str, operations: tuple[str, ...]) -> Object:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [resources], "operations": list(operations)}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{policy}-{resources.partition('/')[0]}.{group}"},
        "spec": {"policyName": policy, "validationActions": ["Deny"], "matchResources": {"resourceRules": [rule]}},
    }
