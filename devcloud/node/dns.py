"""The objects of a cluster's DNS server, by which pods find Services by name (pure).

As Kubernetes' own manifest of CoreDNS (`cluster/addons/dns/coredns`), but for names that are not the cluster's: those
have no answer, as pods have no way out of this machine.
"""

from typing import Any

from devcloud.node.components import DNS, DNS_IMAGE, DOMAIN

NAMESPACE = "kube-system"
"""The namespace of the DNS server."""
DEPLOYMENT = "coredns"
"""Its Deployment."""
# Above those that only root may listen at.
_PORT, _READY_PORT = 1053, 8181
_LABELS = {"k8s-app": "kube-dns"}
_RBAC = "rbac.authorization.k8s.io"
_CONFIGURATION = f"""\
.:{_PORT} {{
    errors
    ready :{_READY_PORT}
    kubernetes {DOMAIN} {{
        ttl 5
    }}
    cache 5
}}
"""


def objects() -> list[dict[str, Any]]:
    """Return the objects: an account and what it may list, the configuration, one pod, the Service at `DNS`."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(DEPLOYMENT)},
        _role(),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"kind": "ServiceAccount", "name": DEPLOYMENT, "namespace": NAMESPACE}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _named(DEPLOYMENT),
            "data": {"Corefile": _CONFIGURATION},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _named(DEPLOYMENT),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod()},
            },
        },
        _service(),
    ]


def _named(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "labels": _LABELS}


def _role() -> dict[str, Any]:
    verbs = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": verbs},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
    ]
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": rules,
    }


def _pod() -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": DNS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": _PORT, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": _PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": _READY_PORT}, "periodSeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "configuration", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    return {
        "serviceAccountName": DEPLOYMENT,
        "containers": [container],
        # Else it asked itself.
        "dnsPolicy": "Default",
        "volumes": [{"name": "configuration", "configMap": {"name": DEPLOYMENT}}],
    }


def _service() -> dict[str, Any]:
    ports = [
        {"name": "dns", "port": 53, "targetPort": "dns", "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "targetPort": "dns-tcp", "protocol": "TCP"},
    ]
    spec = {"clusterIP": DNS, "selector": _LABELS, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _named("kube-dns"), "spec": spec}
