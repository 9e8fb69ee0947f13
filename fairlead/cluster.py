"""The command line's way to an API server: which one, which namespace, which object a person names."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from composer.render.errors import near
from devcloud.paths import platform_path
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import Server
from runtime.errors import ApiError, NoAnswer, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import NAMESPACES, Key, Object, Resource, key_of, loads

_CLAIM_KIND = "PostgreSQLInstance"
_MOST_HOMES = 3


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
        raise CommandError(_unanswered(server, error)) from error
    finally:
        await kube.close()


def _unanswered(server: Server, error: NoAnswer) -> str:
    """Say that the API server is down; the one of `fairlead up` is known by where its kubeconfig lies."""
    named = [str(path)] if (path := server.kubeconfig or default_kubeconfig()) else _in_variable()
    platform = platform_path().resolve()
    if any(platform in Path(path).resolve().parents for path in named[:1]):
        return "the platform of `fairlead up` is down; `fairlead up` brings it back"
    return f"the API server gives no answer: {error}; is it up, and the kubeconfig its own?"


def _in_variable() -> list[str]:
    return [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]


def default_kubeconfig() -> Path | None:
    """Return the file to use when nothing names one: kubectl's own default, else that of the platform of `up`.

    None where $KUBECONFIG or a Pod's own account is to be used, or nothing is there.
    """
    if os.environ.get("KUBECONFIG") or "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    candidates = (Path.home() / ".kube" / "config", platform_path() / "plane" / "kubeconfigs" / "admin")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def current_namespace(server: Server) -> str:
    """Return the namespace of the context, as kubectl would take it; `default` when none is set."""
    path = server.kubeconfig or default_kubeconfig()
    named = [str(path)] if path else _in_variable()
    configs = [_read(path) for path in named]
    current = (str(config["current-context"]) for config in configs if config.get("current-context"))
    context = server.context or next(current, "")
    namespaces = (_namespace_in(config, context) for config in configs)
    return next((namespace for namespace in namespaces if namespace), "default")


def contexts(server: Server) -> list[str]:
    """Return the names of the contexts of the kubeconfigs that are meant; none where these cannot be read."""
    named = [str(path)] if (path := server.kubeconfig or default_kubeconfig()) else _in_variable()
    listed = (entry for path in named for entry in _read(path).get("contexts") or ())
    return [str(entry.get("name")) for entry in listed if isinstance(entry, dict)]


def _read(path: str) -> dict[str, Any]:
    """Read a kubeconfig as far as it can be: what is wrong with it is the connection's to say."""
    try:
        config = yaml.load(Path(path).read_text(), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return config if isinstance(config, dict) else {}


def _namespace_in(config: dict[str, Any], context: str) -> str:
    contexts = config.get("contexts")
    for entry in contexts if isinstance(contexts, list) else ():
        if isinstance(entry, dict) and entry.get("name") == context and isinstance(entry.get("context"), dict):
            return str(entry["context"].get("namespace") or "")
    return ""


async def existing(kube: Kube, resource: Resource, key: Key) -> Object:
    """Read an object that a person named.

    Raises CommandError that says that the namespace does not exist, where there is one of that name, or which name is
    near.
    """
    try:
        return await kube.get(resource, key)
    except NotFound as error:
        if resource.namespaced:
            await refuse_unknown_namespace(kube, key.namespace)
        where = f" in namespace {key.namespace}" if resource.namespaced else ""
        known = await _known(kube, resource, key.namespace if resource.namespaced else "")
        raise CommandError(f"there is no {resource.kind} {key.name}{where}{_instead(resource, key, known)}") from error


async def refuse_unknown_namespace(kube: Kube, name: str) -> None:
    """Raise CommandError where there is no such namespace; whoever may not ask learns nothing of namespaces."""
    try:
        await kube.get(NAMESPACES, Key("", name))
    except NotFound as error:
        names = [home.name for home in await _known(kube, NAMESPACES, "")]
        raise CommandError(f"namespace {name} does not exist{near(name, names)}") from error
    except ApiError:
        return


async def _known(kube: Kube, resource: Resource, namespace: str) -> list[Key]:
    """Return those that the person may see: everywhere, else in one namespace, else none."""
    for home in ("", namespace):
        with suppress(ApiError):
            page = await kube.list_page(resource, Selection(namespace=home, metadata_only=True))
            return [key_of(loads(item)) for item in page.items]
    return []


def _instead(resource: Resource, key: Key, known: Sequence[Key]) -> str:
    homes = sorted(neighbour.namespace for neighbour in known if neighbour.name == key.name and resource.namespaced)
    if homes:
        more = ", ..." if len(homes) > _MOST_HOMES else ""
        return f", but in {', '.join(homes[:_MOST_HOMES])}{more}: say -n {homes[0]}"
    neighbours = [
        neighbour.name for neighbour in known if not resource.namespaced or neighbour.namespace == key.namespace
    ]
    plural = resource.plural if resource.namespaced else f"{resource.plural}.{resource.group}"
    command = f"`kubectl get {plural}{' -A' if resource.namespaced else ''}` lists them all"
    close = near(key.name, neighbours)
    return f"{close} {command}" if close else f"; {command}"


async def every_object(kube: Kube, resource: Resource, namespace: str = "") -> AsyncIterator[Object]:
    """List all objects of a kind, page by page, in a namespace or everywhere. Raises ApiError."""
    page = await kube.list_page(resource, Selection(namespace=namespace))
    while True:
        for item in page.items:
            yield loads(item)
        if not page.next_page:
            return
        page = await kube.list_page(resource, Selection(namespace=namespace), next_page=page.next_page)


def split_reference(reference: str) -> tuple[str, str]:
    """Split `KIND/NAME`, or `NAME` alone for a claim, into the kind's word and the name.

    Raises CommandError for anything else.
    """
    word, slash, name = reference.rpartition("/")
    if not name or (slash and not word) or "/" in word:
        problem = f'"{reference}" is neither NAME nor KIND/NAME, for example orders or pgi/orders'
        raise CommandError(problem, exit_code=Exit.USAGE)
    return (word or _CLAIM_KIND), name
