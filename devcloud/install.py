"""Install Fairlead's objects on a control plane, as a platform team does with kubectl: applied, so safe to repeat."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from devcloud.controlplane.kubectl import Kubectl
from devcloud.errors import DevcloudError

SYSTEM_NAMESPACE = "fairlead-system"
INSTALLATION = "fairlead-installation"
_MANAGER = "fairlead-cli"
_COMPOSER_BINDING = "fairlead-composer-claim-namespace"
_GROUP_VERSIONS = "custom-columns=:.spec.group,:.spec.versions[?(@.storage==true)].name"
_FIRST_CONDITIONS = "custom-columns=:.status.conditions[0].type"
_SERVED_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Assets:
    """The folders of the reviewed data: CRDs, shipped Compositions, installs."""

    crds: Path
    compositions: Path
    deploy: Path


async def install_crds(kubectl: Kubectl, assets: Assets) -> None:
    """Apply the CRDs and wait until the API server serves them. Raises DevcloudError when it does not within 60 s."""
    await _apply(kubectl, "--filename", str(assets.crds))
    await until_served(kubectl, assets.crds)


async def until_served(kubectl: Kubectl, *crds: Path) -> None:
    """Wait until the kinds of applied files or folders of CRDs are served. Raises DevcloudError after 60 s.

    "Established" comes first: the aggregator learns of a new group a little later, and answers 404 until then.
    """
    files = tuple(f"--filename={path}" for path in crds)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SERVED_SECONDS
    while not await _has_conditions(kubectl, files):
        if loop.time() > deadline:
            raise DevcloudError(f"the API server says nothing of the CRDs in {', '.join(map(str, crds))}")
        await asyncio.sleep(_PAUSE_SECONDS)
    await kubectl.run("wait", "--for=condition=Established", "--timeout=60s", *files)
    listed = await kubectl.run("get", f"--output={_GROUP_VERSIONS}", "--no-headers", *files)
    for group_version in sorted({"/".join(line.split()) for line in listed.splitlines() if line.strip()}):
        while not await kubectl.answers(f"/apis/{group_version}"):
            if loop.time() > deadline:
                raise DevcloudError(f"{group_version} is not served although its CRDs are established")
            await asyncio.sleep(_PAUSE_SECONDS)


async def _has_conditions(kubectl: Kubectl, files: Sequence[str]) -> bool:
    """Return whether all CRDs of files have conditions, without which `kubectl wait` fails at once."""
    listed = await kubectl.run("get", f"--output={_FIRST_CONDITIONS}", "--no-headers", *files)
    return "<none>" not in listed


async def install_base(kubectl: Kubectl, assets: Assets) -> None:
    """Apply namespaces, accounts, roles and admission policies (`deploy/kustomize/base`)."""
    await _apply(kubectl, "--kustomize", str(assets.deploy / "kustomize" / "base"))


async def install_cloud(kubectl: Kubectl, assets: Assets, cloud: str) -> None:
    """Apply a cloud's namespace, account, roles and policies, unless the base holds them."""
    base = assets.deploy / "kustomize" / "base" / "kustomization.yaml"
    if f"- ../clouds/{cloud}\n" not in base.read_text():
        await _apply(kubectl, "--kustomize", str(assets.deploy / "kustomize" / "clouds" / cloud))


async def install_compositions(kubectl: Kubectl, assets: Assets, *, without: Iterable[str] = ()) -> None:
    """Apply the shipped Compositions but those for clouds that are not there (`<any>-<cloud>.yaml`)."""
    left_out = tuple(f"-{cloud}.yaml" for cloud in without)
    files = [path for path in sorted(assets.compositions.glob("*.yaml")) if not path.name.endswith(left_out)]
    await _apply(kubectl, *(f"--filename={path}" for path in files))


async def prepare_namespaces(
    kubectl: Kubectl, assets: Assets, namespaces: Iterable[str], clouds: Iterable[str]
) -> None:
    """Let the composer and these clouds' providers use Secrets in namespaces, as each needs before it has claims.

    Raises DevcloudError for a namespace that is not there.
    """
    for namespace in namespaces:
        for cloud in clouds:
            folder = assets.deploy / "kustomize" / "clouds" / cloud / "claim-namespace"
            await _apply(kubectl, f"--namespace={namespace}", "--kustomize", str(folder))


async def prepared_namespaces(kubectl: Kubectl) -> tuple[str, ...]:
    """Return the namespaces in which the composer may use Secrets."""
    selector = f"--field-selector=metadata.name={_COMPOSER_BINDING}"
    columns = "--output=custom-columns=:.metadata.namespace"
    listing = await kubectl.run("get", "rolebindings", "--all-namespaces", selector, columns, "--no-headers")
    return tuple(line.strip() for line in listing.splitlines() if line.strip())


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
    answer = await kubectl.run(*query, "jsonpath={.data.id}")
    if not answer:
        raise DevcloudError(f"ConfigMap {SYSTEM_NAMESPACE}/{INSTALLATION} has no key `id`: restore it from a backup")
    return answer


async def apply_objects(kubectl: Kubectl, objects: Iterable[Mapping[str, Any]]) -> None:
    """Apply objects, Secrets among them."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    # By standard input: an argument or a file would show what is secret.
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
