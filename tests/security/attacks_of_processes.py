"""Requests of T3 and T4, whoever has the token of a provider or of the composer: refused, but for what must stay.

`onprem` and `aws` are the providers of those clouds; the namespaces `alice` and `mallory` are prepared for `onprem`
alone. In braces stand the names of living objects. What is ACCEPTED here stands in docs/security.md.
"""

from __future__ import annotations

from tests.security.attack import ACCEPTED, Attack, labelled, metadata
from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    CONFIG_MAP,
    CRD,
    DATABASE,
    EVENT,
    NAMESPACE,
    PROVIDER_CONFIG,
    SECRET,
    Kind,
    database,
)

_RDS = Kind("aws.fairlead.dev", "v1alpha1", "RDSInstance", "rdsinstances")
_LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
_UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
_CHILD, _DYING = DATABASE.path("alice", "{neighbour}"), DATABASE.path("mallory", "dying")
_CLAIM = CLAIM.path("alice", "app")
_CONFIG = PROVIDER_CONFIG.path("", "default")
_CREDENTIALS = SECRET.path("alice", "{neighbour}-credentials")
_TOKEN = "kubernetes.io/service-account-token"


def _secret(namespace: str, type_: str, *, account: str = "", name: str = "forged", **labels: str) -> JsonObject:
    secret = SECRET.new(namespace, name, type=type_)
    secret["metadata"]["labels"] = {f"fairlead.dev/{label}": value for label, value in labels.items()}
    if account:
        secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": account}
    return secret


def _forged_event(namespace: str) -> JsonObject:
    regarding = {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind, "namespace": namespace, "name": "app"}
    return EVENT.new(
        namespace,
        "forged",
        eventTime="2026-11-21T00:00:00.000000Z",
        reportingController="fairlead.dev/forged",
        reportingInstance="forged",
        action="Forge",
        reason="Forged",
        type="Normal",
        regarding=regarding,
    )


PROVIDERS = (
    Attack(252, "another cloud's credentials are deleted", "aws", "DELETE", _CREDENTIALS),
    Attack(253, "a token for its own account", "aws", "POST", SECRET.path("fairlead-aws"),
           _secret("fairlead-aws", _TOKEN, account="fairlead-provider-aws", name="fairlead-hash-key")),
    Attack(254, "another cloud's credentials are read", "aws", "GET", _CREDENTIALS),
    Attack(255, "the spec of a managed resource", "onprem", "PATCH", _CHILD, {"spec": {"deletionPolicy": "Delete"}}),
    Attack(256, "credentials in kube-system", "onprem", "POST", SECRET.path("kube-system"),
           _secret("kube-system", "fairlead.dev/credentials", claim=_UID, cloud="onprem")),
    Attack(257, "a managed resource is created", "onprem", "POST", DATABASE.path("alice"), database("alice", "forged")),
    Attack(258, "a token of a tenant's account", "onprem", "POST", SECRET.path("alice"),
           _secret("alice", _TOKEN, account="default", claim=_UID, cloud="onprem")),
    Attack(259, "a connection Secret is created", "onprem", "POST", SECRET.path("alice"),
           _secret("alice", "servicebinding.io/postgresql", claim=_UID, cloud="onprem")),
    Attack(260, "an Opaque Secret is created", "onprem", "POST", SECRET.path("alice"),
           _secret("alice", "Opaque", claim=_UID, cloud="onprem")),
    Attack(261, "a managed resource is deleted", "onprem", "DELETE", _CHILD),
    Attack(262, "a connection Secret is deleted", "onprem", "DELETE", SECRET.path("alice", "app-connection")),
    Attack(263, "a tenant's Opaque Secret is deleted", "onprem", "DELETE", SECRET.path("alice", "notes")),
    Attack(264, "an event is forged", "onprem", "POST", EVENT.path("default"), _forged_event("default"), ACCEPTED),
    Attack(265, "a consent", "onprem", "PATCH", _CHILD, metadata(consent="recreate=16384")),
    Attack(267, "a tenant's Secrets are listed", "onprem", "GET", SECRET.path("alice")),
    Attack(268, "all Secrets are listed", "onprem", "GET", SECRET.path()),
    Attack(269, "the spec of a ProviderConfig", "onprem", "PATCH", _CONFIG,
           {"spec": {"allowAdoption": True, "allowSuperuser": True}}),
    Attack(270, "a claim is patched", "onprem", "PATCH", _CLAIM, {"spec": {"deletionPolicy": "Delete"}}),
    Attack(271, "another cloud's status", "onprem", "PATCH", _RDS.path("alice", "any", "status"), {"status": {}}),
    Attack(272, "a ConfigMap of fairlead-system", "onprem", "GET", CONFIG_MAP.path("fairlead-system", "defaults")),
    Attack(273, "a Secret of kube-system that is not there", "onprem", "GET", SECRET.path("kube-system", "any")),
    Attack(274, "a tenant's Secret is read by its name", "onprem", "GET", SECRET.path("alice", "notes"),
           answer=ACCEPTED),
    Attack(275, "a Secret of kube-system", "onprem", "GET", SECRET.path("kube-system", "platform-key")),
    Attack(276, "another cloud's key", "onprem", "GET", SECRET.path("fairlead-aws", "aws-key")),
    Attack(277, "the destroy rate limit is lifted", "onprem", "PATCH", _CONFIG,
           metadata(brake_released="2026-11-21T00:00:00Z")),
    Attack(278, "the teardown instruction", "onprem", "PATCH", _CHILD, metadata(teardown=f"{_UID}/Delete")),
    Attack(279, "the composer's Lease", "onprem", "PATCH", _LEASE.path("fairlead-system", "fairlead-composer"),
           {"spec": {"holderIdentity": "forged"}}),
    *(
        Attack(number, f"{name} of a managed resource", "onprem", "PATCH", _CHILD, metadata(**{name: "forged"}))
        for number, name in ((370, "paused"), (371, "claim_name"), (372, "key"), (373, "composition"))
    ),
    Attack(280, "the status of a claim", "onprem", "PATCH", f"{_CLAIM}/status", {"status": {"identity": "forged"}}),
)  # fmt: skip

_ROLE = CLUSTER_ROLE.new("", "forged", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}])
_ROLE["metadata"]["labels"] = {"fairlead.dev/aggregate-to-composer": "true"}
_CRD = CRD.path("", "postgresqlinstances.database.fairlead.dev")

COMPOSER = (
    Attack(299, "a CRD is called composable", "composer", "PATCH", _CRD,
           labelled("composable", "true")),
    Attack(300, "the spec of a claim", "composer", "PATCH", _CLAIM, {"spec": {"deletionPolicy": "Delete"}}),
    Attack(301, "a consent on a claim", "composer", "PATCH", _CLAIM, metadata(consent="recreate=16384")),
    Attack(302, "another operator's Secret is deleted", "composer", "DELETE", SECRET.path("alice", "of-an-operator")),
    Attack(303, "the consent to an adoption", "composer", "PATCH", _CHILD, metadata(adopt="16384")),
    Attack(304, "a ClusterRole that is added to its own", "composer", "POST", CLUSTER_ROLE.path(), _ROLE),
    Attack(305, "a namespace is called ephemeral", "composer", "PATCH", NAMESPACE.path("", "alice"),
           labelled("ephemeral", "true")),
    Attack(306, "all Secrets are listed", "composer", "GET", SECRET.path()),
    Attack(307, "a token in kube-system", "composer", "POST", SECRET.path("kube-system"),
           _secret("kube-system", _TOKEN, account="default", claim=_UID)),
    Attack(308, "an Opaque Secret", "composer", "POST", SECRET.path("alice"), _secret("alice", "Opaque", claim=_UID)),
    Attack(309, "the administrator's Secret is replaced", "composer", "PUT",
           SECRET.path("fairlead-onprem", "onprem-admin"), SECRET.new("fairlead-onprem", "onprem-admin")),
    Attack(310, "ProviderConfigs are read", "composer", "GET", PROVIDER_CONFIG.path()),
    Attack(311, "a Secret of kube-system", "composer", "GET", SECRET.path("kube-system", "platform-key")),
    Attack(312, "a ConfigMap of any namespace", "composer", "GET", CONFIG_MAP.path("default", "kube-root-ca.crt")),
    Attack(313, "the key of password hashes", "composer", "GET", SECRET.path("fairlead-onprem", "fairlead-hash-key")),
    Attack(314, "a cloud's key", "composer", "GET", SECRET.path("fairlead-aws", "aws-key")),
    Attack(315, "the administrator's login", "composer", "GET", SECRET.path("fairlead-onprem", "onprem-admin")),
    Attack(316, "the finalizer of a resource that is being deleted", "composer", "PATCH", _DYING,
           {"metadata": {"finalizers": []}}),
    Attack(317, "the status of a managed resource", "composer", "PATCH", f"{_CHILD}/status",
           {"status": {"externalName": "forged"}}),
    Attack(374, "the destroy rate limit is lifted", "composer", "PATCH", _CONFIG,
           metadata(brake_released="2026-11-21T00:00:00Z")),
    Attack(375, "a managed resource in kube-system", "composer", "POST", DATABASE.path("kube-system"),
           database("kube-system", "forged")),
    Attack(376, "a managed resource in a provider's namespace", "composer", "POST", DATABASE.path("fairlead-onprem"),
           database("fairlead-onprem", "forged")),
    Attack(335, "that finalizer, by a JSON patch", "composer", "JSON_PATCH", _DYING,
           [{"op": "remove", "path": "/metadata/finalizers"}]),
)  # fmt: skip

# What nobody of ours may do in any namespace: verb, group, resource, subresource.
POWERS = (
    ("bind", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("create", "certificates.k8s.io", "certificatesigningrequests", ""),
    ("create", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("create", "", "serviceaccounts", "token"),
    ("deletecollection", "", "secrets", ""),
    ("escalate", "rbac.authorization.k8s.io", "roles", ""),
    ("get", "", "nodes", "proxy"),
    ("impersonate", "", "serviceaccounts", ""),
    ("impersonate", "", "users", ""),
    ("list", "", "configmaps", ""),
    ("list", "events.k8s.io", "events", ""),
    ("list", "", "secrets", ""),
    ("patch", "", "secrets", ""),
    ("update", "coordination.k8s.io", "leases", ""),
    ("watch", "", "secrets", ""),
    ("write", "fairlead.dev", "protectedmetadata", ""),
)
FIRST_POWER = {"onprem": 281, "composer": 318}
"""The number of the first of POWERS, by whose token it is."""
