"""The Compositions of a cluster, with the environments that they read."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from apis import names
from composer.render.errors import near
from fairlead.cluster import every_object
from fairlead.exits import CommandError, Exit
from fairlead.imports.fitting import Candidate
from runtime.errors import NotFound
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, Key, Object, metadata

_SETTINGS: Final = "fairlead-system"


async def candidates(kube: Kube, composition: str) -> tuple[Candidate, ...]:
    """Read the Compositions of the cluster, or the one that is named, with their environments."""
    known = {str(metadata(obj)["name"]): obj["spec"] async for obj in every_object(kube, names.COMPOSITIONS)}
    if composition and composition not in known:
        raise CommandError(f"there is no Composition {composition}{near(composition, known)}", exit_code=Exit.USAGE)
    chosen = {composition: known[composition]} if composition else known
    return tuple([Candidate(name, spec, await _environments(kube, spec)) for name, spec in sorted(chosen.items())])


async def _environments(kube: Kube, spec: Object) -> dict[str, dict[str, str]]:
    """Read those of a Composition that there are; what refers to another one cannot be rendered."""
    environments = {}
    for name in spec.get("environments") or ():
        with suppress(NotFound):
            environments[str(name)] = dict((await kube.get(CONFIG_MAPS, Key(_SETTINGS, str(name)))).get("data") or {})
    return environments
