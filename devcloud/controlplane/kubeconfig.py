"""Kubeconfig files: one cluster, one user, credentials inside, mode 0600 (JSON, which is YAML)."""

import base64
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from devcloud.paths import write_private


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server, how to trust it, and the namespace that commands go to by default."""

    server: str
    authority_pem: bytes
    namespace: str


@dataclass(frozen=True, slots=True)
class CertificateUser:
    """A user known by a client certificate."""

    name: str
    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenUser:
    """A user known by a bearer token."""

    name: str
    token: str = field(repr=False)


def write(path: Path, cluster: Cluster, user: CertificateUser | TokenUser) -> Path:
    """Write a kubeconfig (`client.authentication.k8s.io` is not used: no plug-in is needed) and return its path."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "fairlead",
                "cluster": {
                    "server": cluster.server,
                    "certificate-authority-data": _base64(cluster.authority_pem),
                },
            }
        ],
        "users": [{"name": user.name, "user": _credentials(user)}],
        "contexts": [
            {
                "name": "fairlead",
                "context": {"cluster": "fairlead", "user": user.name, "namespace": cluster.namespace},
            }
        ],
        "current-context": "fairlead",
    }
    write_private(path, msgspec.json.format(msgspec.json.encode(document), indent=2))
    return path


def _credentials(user: CertificateUser | TokenUser) -> dict[str, str]:
    match user:
        case CertificateUser():
            return {
                "client-certificate-data": _base64(user.certificate_pem),
                "client-key-data": _base64(user.key_pem),
            }
        case TokenUser():
            return {"token": user.token}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
