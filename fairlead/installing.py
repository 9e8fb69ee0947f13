"""`fairlead install`: the installation's id, made once, the chart's values for it, and whether this cluster will do.

The ConfigMap is made and never changed: owner tags in the clouds carry the id, and another one would make strangers of
all databases. Sources: Helm, "Charts: Tips and tricks" (objects that a release takes over by label and annotations);
Kubernetes reference, SelfSubjectAccessReview.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.annotate import MANAGER
from fairlead.cluster import connected
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL, Server
from fairlead.recovery import INSTALLATION
from runtime import randomness
from runtime.errors import AlreadyExists, NotFound
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, NAMESPACES, Key, Object, Resource, loads, uid_of

OLDEST: Final = (1, 30)
_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_ID = re.compile(r"[a-z0-9]{8,32}")
_POLICIES, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
_NEEDED: Final = (
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("create", "", "namespaces", ""),
    ("create", _POLICIES, "validatingadmissionpolicies", ""),
    ("create", _POLICIES, "validatingadmissionpolicybindings", ""),
    ("create", _RBAC, "clusterroles", ""),
    ("create", _RBAC, "clusterrolebindings", ""),
    ("escalate", _RBAC, "clusterroles", ""),
    ("bind", _RBAC, "clusterroles", ""),
    ("create", _RBAC, "rolebindings", INSTALLATION.namespace),
    ("create", "", "configmaps", INSTALLATION.namespace),
    ("create", "", "serviceaccounts", INSTALLATION.namespace),
    ("create", "apps", "deployments", INSTALLATION.namespace),
)
# So that the release of our pages takes over what is here before it.
_OF_HELM: Final = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": "fairlead",
        "meta.helm.sh/release-namespace": "fairlead-release",
        "helm.sh/resource-policy": "keep",
    },
}


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be installed; `id` is one of former days, empty for a new one. Without `apply` nothing is written."""

    apply: bool = False
    id: str = ""
    clouds: tuple[str, ...] = ()
    claim_namespaces: tuple[str, ...] = ()
    server: Server = USUAL


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation's id, and the uid of the cluster that it was made in."""

    id: str
    cluster: str

    @property
    def data(self) -> dict[str, str]:
        """The content of its ConfigMap."""
        return {"id": self.id, "clusterUid": self.cluster}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The installation, the chart's values for it, and what is to be said beside."""

    installation: Installation
    values: Mapping[str, Any]
    remarks: tuple[str, ...]


async def install(options: Options) -> Outcome:
    """Check the cluster, and make the installation's ConfigMap where there is none.

    Raises CommandError (refused) with all that speaks against it, before anything is written; ApiError.
    """
    if options.id and not _ID.fullmatch(options.id):
        raise CommandError(f"--id {options.id!r}: 8 to 32 small letters and digits", exit_code=Exit.USAGE)
    async with connected(options.server) as kube:
        version, faults = _version(loads(await kube.raw("GET", "/version")))
        cluster = uid_of(await kube.get(NAMESPACES, Key("", "kube-system"), metadata_only=True))
        recorded = await _recorded(kube)
        chosen = decide(recorded, options.id, Installation(randomness.token_hex(8), cluster))
        missing = await _missing_rights(kube)
        faults += [chosen] if isinstance(chosen, str) else []
        faults += [f"you may not {right}" for right in missing]
        if faults or isinstance(chosen, str):
            raise CommandError("nothing was written:\n  " + "\n  ".join(faults), exit_code=Exit.REFUSED)
        remarks = [f"API server {version}; you may do what an installation needs"]
        if recorded is None and options.apply:
            chosen = await _made(kube, chosen)
            remarks.append(f"ConfigMap {INSTALLATION} was made; note its id down outside the cluster: {chosen.id}")
        elif recorded is None:
            remarks.append(f"ConfigMap {INSTALLATION} would be made with an id as this one (--apply)")
        else:
            remarks.append(f"ConfigMap {INSTALLATION} is there and stays as it is")
    return Outcome(chosen, _values(chosen, options), tuple(remarks))


def decide(recorded: Mapping[str, str] | None, wanted: str, fresh: Installation) -> Installation | str:
    """Return the installation of a cluster: the recorded one as it is, else a new one; or why there is none. Pure."""
    if recorded is None:
        return Installation(wanted or fresh.id, fresh.cluster)
    known, cluster = recorded.get("id", ""), recorded.get("clusterUid", "")
    if not known:
        return f"ConfigMap {INSTALLATION} has no key id: restore it from a backup"
    if wanted not in ("", known):
        return f"this cluster's installation is {known}, and never becomes {wanted}: all databases would be strangers"
    if cluster != fresh.cluster:
        return (
            f"cluster {cluster or 'unknown'} is recorded as that of installation {known}, and this is {fresh.cluster}: "
            "`fairlead takeover` says how this one takes its place"
        )
    return Installation(known, cluster)


def _version(answer: Object) -> tuple[str, list[str]]:
    """Return the API server's version, and what speaks against it."""
    numbers = [re.sub(r"\D", "", str(answer.get(part) or "")) for part in ("major", "minor")]
    version = ".".join(numbers)
    if not all(numbers) or tuple(map(int, numbers)) < OLDEST:
        return version, [f"the API server is {version or 'of no known version'}; the oldest that will do is 1.30"]
    return version, []


async def _recorded(kube: Kube) -> dict[str, str] | None:
    try:
        return dict((await kube.get(CONFIG_MAPS, INSTALLATION)).get("data") or {})
    except NotFound:
        return None


async def _missing_rights(kube: Kube) -> list[str]:
    missing = []
    for verb, group, resource, namespace in _NEEDED:
        wanted = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        answer = await kube.review(_REVIEWS, {"resourceAttributes": wanted})
        if not (answer.get("status") or {}).get("allowed"):
            missing.append(f"{verb} {resource}{f' in {namespace}' if namespace else ''}")
    return missing


async def _made(kube: Kube, chosen: Installation) -> Installation:
    """Make the ConfigMap, and its namespace where that is not there; return what is there afterwards."""
    home: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INSTALLATION.namespace, **_OF_HELM}}
    place = {"name": INSTALLATION.name, "namespace": INSTALLATION.namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**place, **_OF_HELM}, "data": chosen.data}
    try:
        await kube.get(NAMESPACES, Key("", INSTALLATION.namespace), metadata_only=True)
    except NotFound:
        await kube.create(NAMESPACES, home, manager=MANAGER)
    try:
        await kube.create(CONFIG_MAPS, body, manager=MANAGER)
    except AlreadyExists as error:
        text = f"ConfigMap {INSTALLATION} was made by somebody else meanwhile: say it again"
        raise CommandError(text, exit_code=Exit.REFUSED) from error
    return chosen


def _values(chosen: Installation, options: Options) -> dict[str, Any]:
    """Return the chart's values: what is not asked for here is the chart's default, or another file's."""
    values: dict[str, Any] = {"installation": chosen.data}
    if options.claim_namespaces:
        values["claimNamespaces"] = [*options.claim_namespaces]
    if options.clouds:
        values["providers"] = {cloud: {"enabled": True} for cloud in options.clouds}
    return values
