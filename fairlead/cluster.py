"""The command line's way to an API server: which one, which namespace, which resource a word means."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from devcloud.paths import state_home
from fairlead.exits import CommandError, Exit
from fairlead.server import Server
from runtime.errors import NoAnswer, NotFound
from runtime.kube import Kube
from runtime.objects import Resource, loads

_OUR_GROUPS = "fairlead.dev"
_CLAIM_KIND = "PostgreSQLInstance"


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Kube]:
    """Connect for the length of a block.

    Raises CommandError when no API server is named.
    """
    # Imported here: it pulls in the Kubernetes client, which --help and render must not pay for.
    from runtime.kube_client import KubeClient

    try:
        kube = await KubeClient.connect(
            user_agent="fairlead-cli",
            kubeconfig=server.kubeconfig or default_kubeconfig(),
            context=server.context,
        )
    except NoAnswer as error:
        said = " ".join(str(error).split())
        raise CommandError(
            f"no API server is known: {said}. Name a kubeconfig by --kubeconfig or $KUBECONFIG; "
            'for a platform on this machine: fairlead up, then eval "$(fairlead env)"'
        ) from error
    try:
        yield kube
    finally:
        await kube.close()


def default_kubeconfig() -> Path | None:
    """Return the file to use when nothing names one: kubectl's own default, else that of the platform of `up`.

    None where $KUBECONFIG or a Pod's own account is to be used, or nothing is there.
    """
    if os.environ.get("KUBECONFIG") or "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    candidates = (Path.home() / ".kube" / "config", state_home() / "plane" / "kubeconfigs" / "admin")
    return next((each for each in candidates if each.exists()), None)


def current_namespace(server: Server) -> str:
    """Return the namespace of the context, as kubectl would take it; `default` when none is set."""
    path = server.kubeconfig or default_kubeconfig()
    named = [str(path)] if path else os.environ.get("KUBECONFIG", "").split(os.pathsep)
    configs = [_read(each) for each in named if each]
    current = (str(each["current-context"]) for each in configs if each.get("current-context"))
    context = server.context or next(current, "")
    found = (_namespace_in(each, context) for each in configs)
    return next((namespace for namespace in found if namespace), "default")


def _read(path: str) -> dict[str, Any]:
    """Read a kubeconfig as far as it can be: what is wrong with it is the connection's to say."""
    try:
        config = YAML(typ="safe", pure=True).load(Path(path).read_text())
    except (OSError, YAMLError):
        return {}
    return config if isinstance(config, dict) else {}


def _namespace_in(config: dict[str, Any], context: str) -> str:
    for entry in config.get("contexts") or ():
        if entry.get("name") == context:
            return str((entry.get("context") or {}).get("namespace") or "")
    return ""


class Discovery:
    """What the API server serves, asked once per group and version.

    Source: Kubernetes API concepts, "API Discovery" (unaggregated).
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._served: dict[str, tuple[tuple[Resource, frozenset[str]], ...]] = {}

    async def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of one kind, None when it is not served."""
        return next((found for found, _ in await self._of(api_version) if found.kind == kind), None)

    async def resource_named(self, word: str) -> Resource:
        """Return the namespaced resource of ours that a person means: kind, plural, singular or short name, any case.

        Raises CommandError that lists what there is.
        """
        known: list[str] = []
        for api_version in await self._our_versions():
            for resource, names in await self._of(api_version):
                if word.lower() in names:
                    return resource
                known.append(resource.plural)
        listed = ", ".join(sorted(known)) or "none; is Fairlead installed there?"
        raise CommandError(f'the API server serves no kind "{word}" of Fairlead; it serves: {listed}')

    async def _our_versions(self) -> Sequence[str]:
        groups = loads(await self._kube.raw("GET", "/apis"))["groups"]
        return [
            group["preferredVersion"]["groupVersion"]
            for group in groups
            if group["name"] == _OUR_GROUPS or group["name"].endswith(f".{_OUR_GROUPS}")
        ]

    async def _of(self, api_version: str) -> tuple[tuple[Resource, frozenset[str]], ...]:
        if api_version not in self._served:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                listed = loads(await self._kube.raw("GET", path))["resources"]
            except NotFound:
                listed = []
            self._served[api_version] = tuple(_entry(api_version, item) for item in listed if "/" not in item["name"])
        return self._served[api_version]


def _entry(api_version: str, item: dict[str, Any]) -> tuple[Resource, frozenset[str]]:
    group, _, version = api_version.rpartition("/")
    resource = Resource(group, version, item["kind"], item["name"], namespaced=item["namespaced"])
    names = {item["name"], item.get("singularName", ""), item["kind"].lower(), *item.get("shortNames", ())}
    return resource, frozenset(names - {""})


def split_reference(reference: str) -> tuple[str, str]:
    """Split `KIND/NAME`, or `NAME` alone for a claim, into the kind's word and the name.

    Raises CommandError for anything else.
    """
    word, slash, name = reference.rpartition("/")
    if not name or (slash and not word) or "/" in word:
        what = f'"{reference}" is neither NAME nor KIND/NAME, for example orders or pgi/orders'
        raise CommandError(what, exit_code=Exit.USAGE)
    return (word or _CLAIM_KIND), name
