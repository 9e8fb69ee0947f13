"""Install Fairlead's objects on a control plane, as a platform team does with kubectl: applied, so safe to repeat."""

import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud.errors import DevcloudError
from devcloud.kubectl import Kubectl
from devcloud.onprem import OnPremServer

SYSTEM_NAMESPACE = "fairlead-system"
INSTALLATION = "fairlead-installation"
_MANAGER = "fairlead-cli"
_ADMIN_SECRET = "onprem-admin"  # noqa: S105 - a Secret's name


@dataclass(frozen=True, slots=True)
class Assets:
    """The folders of the reviewed data: CRDs, shipped Compositions, installs."""

    crds: Path
    compositions: Path
    deploy: Path


async def install_crds(kubectl: Kubectl, assets: Assets) -> None:
    """Apply the CRDs and wait until the API server serves them."""
    await _apply(kubectl, "--filename", str(assets.crds))
    await kubectl.run("wait", "--for=condition=Established", "--timeout=60s", "--filename", str(assets.crds))


async def install_base(kubectl: Kubectl, assets: Assets) -> None:
    """Apply namespaces, accounts, roles and admission policies (`deploy/kustomize/base`)."""
    await _apply(kubectl, "--kustomize", str(assets.deploy / "kustomize" / "base"))


async def install_compositions(kubectl: Kubectl, assets: Assets) -> None:
    """Apply the shipped Compositions."""
    await _apply(kubectl, "--filename", str(assets.compositions))


async def installation_id(kubectl: Kubectl) -> str:
    """Return this installation's id, chosen once and kept in the ConfigMap `fairlead-installation`.

    Raises:
        DevcloudError: The ConfigMap is there and holds no id.
    """
    query = ("get", "configmap", INSTALLATION, f"--namespace={SYSTEM_NAMESPACE}", "--ignore-not-found", "--output")
    if not await kubectl.run(*query, "name"):
        cluster_uid = await kubectl.run("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
        chosen = (f"--from-literal=id={secrets.token_hex(8)}", f"--from-literal=clusterUid={cluster_uid}")
        await kubectl.run("create", "configmap", INSTALLATION, f"--namespace={SYSTEM_NAMESPACE}", *chosen)
    found = await kubectl.run(*query, "jsonpath={.data.id}")
    if not found:
        raise DevcloudError(f"ConfigMap {SYSTEM_NAMESPACE}/{INSTALLATION} has no key `id`: restore it from a backup")
    return found


async def connect_onprem(kubectl: Kubectl, server: OnPremServer) -> None:
    """Apply onprem's ProviderConfig `default` and its Secret: every namespace may have databases there."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _ADMIN_SECRET, "namespace": "fairlead-onprem"},
        "stringData": {"username": server.username, "password": server.password},
    }
    config = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "default"},
        "spec": {
            "host": server.host,
            "port": server.port,
            "database": server.database,
            "adminSecretRef": {"name": _ADMIN_SECRET},
            "caBundle": server.authority_pem.decode(),
            "allowedNamespaces": {"selector": {}},
        },
    }
    document = {"apiVersion": "v1", "kind": "List", "items": [secret, config]}
    # By standard input: an argument or a file would show the password.
    await _apply(kubectl, "--filename=-", standard_input=msgspec.json.encode(document).decode())


async def _apply(kubectl: Kubectl, *source: str, standard_input: str | None = None) -> None:
    await kubectl.run(
        "apply",
        "--server-side",
        "--force-conflicts",
        f"--field-manager={_MANAGER}",
        *source,
        standard_input=standard_input,
    )
