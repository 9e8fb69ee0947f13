"""What a restore, a tool or an impatient person takes from objects: what ties a claim to its data."""

from __future__ import annotations

import contextlib
from typing import Final

from apis import names
from fairlead.simulation.platform import CLAIMS
from runtime.errors import NotFound
from runtime.objects import Key, Object, Resource
from tests.simulation.cast import Cast
from tests.simulation.history import FORCED, PERSON

_RESTORER: Final = "velero-server"


def _any(cast: Cast) -> tuple[Resource, Key] | None:
    """Return a claim or a resource that is there, None for none."""
    present = cast.keys(CLAIMS, *cast.platform.description.resources)
    return cast.draw(*present) if present else None


async def loses_status(cast: Cast) -> str:
    """Have an object without its status, as most restores leave it."""
    drawn = _any(cast)
    if drawn is None:
        return "nothing to lose"
    resource, key = drawn
    # Where a status has fields that must be there, one of before the first pass has them.
    operations = [{"op": "add", "path": "/status", "value": {}}]
    await cast.platform.server.json_patch(resource, key, operations, manager=_RESTORER, subresource="status")
    return f"{resource.kind} {key} has lost its status"


async def loses_annotations(cast: Cast) -> str:
    """Take our annotations from an object."""
    drawn = _any(cast)
    if drawn is None:
        return "nothing to lose"
    resource, key = drawn
    annotations = (await cast.platform.server.get(resource, key))["metadata"].get("annotations") or {}
    kept = {name: value for name, value in annotations.items() if not name.startswith(names.PREFIX)}
    await cast.edit(resource, key, "/metadata/annotations", kept)
    return f"{resource.kind} {key} has lost its annotations"


async def loses_labels(cast: Cast) -> str:
    """Take the labels from a resource."""
    present = cast.keys(*cast.platform.description.resources)
    if not present:
        return "nothing to lose"
    resource, key = cast.draw(*present)
    await cast.edit(resource, key, "/metadata/labels", {})
    return f"{resource.kind} {key} has lost its labels"


async def loses_revision(cast: Cast) -> str:
    """Delete a revision of the Composition whatever holds it."""
    keys = sorted(cast.platform.server.all_of(names.REVISIONS))
    if not keys:
        return "no revision"
    key = cast.draw(*keys)
    await _force_away(cast, names.REVISIONS, key)
    return f"{key} is forced away"


async def forces_claim_away(cast: Cast) -> str:
    """Delete a claim whatever holds it, and mostly make it again."""
    keys = cast.keys(CLAIMS)
    if not keys:
        return "nothing to lose"
    _, key = cast.draw(*keys)
    spec: Object = (await cast.platform.server.get(CLAIMS, key))["spec"]
    await _force_away(cast, CLAIMS, key)
    if cast.happens(3 / 4):
        return f"{key} is forced away, {await cast.make(CLAIMS, key, spec)}"
    return f"{key} is forced away"


async def _force_away(cast: Cast, resource: Resource, key: Key) -> None:
    operations: list[Object] = [
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        {"op": "add", "path": "/metadata/labels", "value": {FORCED: "true"}},
    ]
    await cast.platform.server.json_patch(resource, key, operations, manager=PERSON)
    with contextlib.suppress(NotFound):
        await cast.remove(resource, key)
