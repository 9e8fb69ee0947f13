"""The command line's way to an API server: which one, which namespace, which resource a word means."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from composer.problems import near
from devcloud.paths import platform_path
from fairlead.exits import CommandError, Exit
from fairlead.server import Server
from runtime.errors import ApiError, NoAnswer, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, key_of, loads

_OUR_GROUPS = "fairlead.dev"
_CLAIM_KIND = "PostgreSQLInstance"
_TOLD = 3


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Kube]:
    """Connect for the length of a block.

    Raises CommandError when no API server is named, and when it gives no answer within the block.
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
    except NoAnswer as error:
        raise CommandError(f"the API server gives no answer: {error}; is it up, and the kubeconfig its own?") from error
    finally:
        await kube.close()


def default_kubeconfig() -> Path | None:
    """Return the file to use when nothing names one: kubectl's own default, else that of the platform of `up`.

    None where $KUBECONFIG or a Pod's own account is to be used, or nothing is there.
    """
    if os.environ.get("KUBECONFIG") or "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    candidates = (Path.home() / ".kube" / "config", platform_path() / "plane" / "kubeconfigs" / "admin")
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
        known: set[str] = set()
        plurals: set[str] = set()
        for api_version in await self._our_versions():
            for resource, names in await self._of(api_version):
                if word.lower() in names:
                    return resource
                known |= names
                plurals.add(resource.plural)
        listed = ", ".join(sorted(plurals)) or "none; is Fairlead installed there?"
        raise CommandError(
            f'the API server serves no kind "{word}" of Fairlead{near(word.lower(), known)}; it serves: {listed}'
        )

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


async def found_or_told(kube: Kube, resource: Resource, key: Key) -> Object:
    """Read an object that a person named.

    Raises CommandError that says where there is one of that name, or which name is near.
    """
    try:
        return await kube.get(resource, key)
    except NotFound as error:
        where = f" in namespace {key.namespace}" if resource.namespaced else ""
        known = await _known(kube, resource, key.namespace if resource.namespaced else "")
        raise CommandError(f"there is no {resource.kind} {key.name}{where}{_instead(resource, key, known)}") from error


async def _known(kube: Kube, resource: Resource, namespace: str) -> list[Key]:
    """Return those that the person may see: everywhere, else in one namespace, else none."""
    for each in ("", namespace):
        with suppress(ApiError):
            page = await kube.list_page(resource, Selection(namespace=each, metadata_only=True))
            return [key_of(loads(item)) for item in page.items]
    return []


def _instead(resource: Resource, key: Key, known: Sequence[Key]) -> str:
    homes = sorted(each.namespace for each in known if each.name == key.name and resource.namespaced)
    if homes:
        more = ", ..." if len(homes) > _TOLD else ""
        return f", but in {', '.join(homes[:_TOLD])}{more}: say -n {homes[0]}"
    beside = [each.name for each in known if not resource.namespaced or each.namespace == key.namespace]
    what = resource.plural if resource.namespaced else f"{resource.plural}.{resource.group}"
    return f"{near(key.name, beside)}; `kubectl get {what}{' -A' if resource.namespaced else ''}` lists them all"


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
