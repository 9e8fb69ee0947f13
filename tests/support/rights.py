"""What processes asked of the API server against what they may: requests of an audit log, rights of `deploy/rights`.

A right is one verb on one resource. The cluster-wide ones hold in every namespace and are listed under each; the others
hold in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.audit import Request

CLOUDS: Final = ("onprem", "aws", "azure", "gcp")
ACCOUNTS: Final = {
    "fairlead-composer": "fairlead-system",
    **{f"fairlead-provider-{cloud}": f"fairlead-{cloud}" for cloud in CLOUDS},
}
"""The ServiceAccount of each process, and its namespace."""
# A status over which somebody edited the spec meanwhile is read and sent once more
# (tests/apiserver/runtime/test_kube_client.py). The admission plugin OwnerReferencesPermissionEnforcement asks for the
# last one when a child with an owner is created: no request has that verb.
TAKEN_BY_NO_LIFE: Final = frozenset(
    {
        "get compositions.fairlead.dev",
        *(f"get providerconfigs.{cloud}.fairlead.dev" for cloud in CLOUDS),
        "update postgresqlinstances.database.fairlead.dev/finalizers",
    }
)
"""The rights that the lives of `tests.support.lives` do not have to take."""
OWN: Final = "its own"
WITH_CLAIMS: Final = "with claims"
OF_ANOTHER: Final = "of another process"
ANY_OTHER: Final = "any other"
_FILES = Path(__file__).resolve().parents[2] / "deploy" / "rights"
_HEADING = re.compile(r"# Namespace: ([^,]+), such as \S+")
# A resource, no URL, the names it is limited to, the verbs: as `kubectl auth can-i --list` prints it.
_ROW = re.compile(r"(?P<resource>[^ \[]\S*) \[\] \[(?P<names>[^\]]*)\] \[(?P<verbs>[^\]]*)\]")
# Granted to everybody by the cluster itself (ClusterRole system:basic-user).
_EVERYBODYS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on a resource (`leases.coordination.k8s.io`, `claims.example.com/status`); of one name, or any."""

    resource: str
    verb: str
    name: str = ""


Rights = Mapping[str, frozenset[Right]]
"""The rights by place, those that hold everywhere under each."""


def rights_in(text: str) -> Rights:
    """Return the rights of an account's file, but for what the cluster grants to everybody.

    Raises ValueError for a row that is none of `kubectl auth can-i --list`.
    """
    rights: dict[str, frozenset[Right]] = {}
    place = ""
    for line in filter(None, text.splitlines()):
        heading = _HEADING.fullmatch(line)
        if heading:
            place = heading[1]
            rights[place] = frozenset()
        elif not line.startswith("["):
            rights[place] |= _rights_of(line)
    return rights


def _rights_of(line: str) -> frozenset[Right]:
    row = _ROW.fullmatch(line)
    if row is None:
        raise ValueError(f"no row of rights: {line!r}")
    resource = row["resource"]
    if resource.partition("/")[0].partition(".")[2] in _EVERYBODYS:
        return frozenset()
    names = row["names"].split() or [""]
    return frozenset(Right(resource, verb, name) for verb in row["verbs"].split() for name in names)


@dataclass(frozen=True, slots=True)
class Usage:
    """What an account's requests come to.

    Attributes:
        refused: Requests that the authorizer refused, as `verb URI`.
        unlisted: Requests that no right of the file covers, as `verb resource (place)`.
        unused: Rights that no request took, as `verb resource (place)`; a cluster-wide one has no place.
    """

    refused: list[str]
    unlisted: list[str]
    unused: list[str]


def usage_of(rights: Rights, requests: Iterable[Request], *, own: str, with_claims: frozenset[str]) -> Usage:
    """Compare the requests of one account with its rights; `own` is its namespace, `with_claims` those of claims."""
    everywhere = rights[ANY_OTHER]
    refused, unlisted, used = set[str](), set[str](), set[tuple[str, Right]]()
    for request in requests:
        if not request.resource or request.group in _EVERYBODYS:
            continue
        place = _place_of(request.namespace, own, with_claims)
        if request.decision == "forbid":
            refused.add(f"{request.verb} {request.uri}")
            continue
        taken = _asked_for(request) & rights[place]
        if not taken:
            unlisted.add(f"{request.verb} {_resource_of(request)} ({place})")
        used |= {("" if right in everywhere else place, right) for right in taken}
    granted = {("", right) for right in everywhere}
    granted |= {(place, right) for place, here in rights.items() for right in here - everywhere}
    return Usage(sorted(refused), sorted(unlisted), [_named(place, right) for place, right in sorted(granted - used)])


def usage_in(requests: Iterable[Request], account: str, with_claims: frozenset[str]) -> Usage:
    """Compare what an account asked for, among all requests, with the rights of its file."""
    own = ACCOUNTS[account]
    rights = rights_in((_FILES / f"{account}.txt").read_text(encoding="utf-8"))
    user = f"system:serviceaccount:{own}:{account}"
    own_requests = [request for request in requests if request.user == user]
    return usage_of(rights, own_requests, own=own, with_claims=with_claims)


def _place_of(namespace: str, own: str, with_claims: frozenset[str]) -> str:
    if namespace == own:
        return OWN
    if namespace in with_claims:
        return WITH_CLAIMS
    return OF_ANOTHER if namespace.startswith("fairlead-") else ANY_OTHER


def _asked_for(request: Request) -> frozenset[Right]:
    """Return the rights each of which covers a request: that of its name, and that of any."""
    resource = _resource_of(request)
    return frozenset({Right(resource, request.verb, name) for name in ("", request.name)})


def _resource_of(request: Request) -> str:
    whole = f"{request.resource}.{request.group}" if request.group else request.resource
    return f"{whole}/{request.subresource}" if request.subresource else whole


def _named(place: str, right: Right) -> str:
    of_name = f" {right.name}" if right.name else ""
    return f"{right.verb} {right.resource}{of_name}" + (f" ({place})" if place else "")
