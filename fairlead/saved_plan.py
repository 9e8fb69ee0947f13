"""`fairlead plan --out FILE` and `fairlead apply FILE`: what was read is what is applied, or nothing is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.cluster import connected, current_namespace
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.plan import Options, Outcome, plan
from fairlead.plan_diff import ClaimPlan
from fairlead.yaml_files import documents_in
from runtime.errors import ApplyConflict
from runtime.kube import Kube
from runtime.objects import Object, key_of, metadata

FORMAT: Final = 1
# The name under which kubectl applies on the server: who applied by it before goes on without a conflict.
_MANAGER: Final = "kubectl"
_FIRST: Final = ("Namespace", "ConfigMap", "Composition")


class SavedPlan(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Objects that were planned, and what they would do, as `--out` writes it.

    Attributes:
        format: Of this file.
        namespace: The one that was asked for, empty for none.
        settings: The namespace of environments.
        objects: What is to be applied, in the order of the files.
        claims: What was planned.
    """

    format: int = FORMAT
    namespace: str = ""
    settings: str
    objects: tuple[dict[str, Any], ...]
    claims: tuple[ClaimPlan, ...]


def save(file: Path, options: Options, outcome: Outcome) -> None:
    """Write a plan; raises CommandError where it would apply nothing that may be applied, or cannot be written."""
    objects = tuple(document.content for path in options.paths for document in documents_in(path))
    saved = SavedPlan(
        namespace=options.namespace or "", settings=options.settings, objects=objects, claims=outcome.claims
    )
    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(saved), indent=2))
    except OSError as error:
        raise CommandError(f"{file}: cannot be written: {error.strerror}") from error


async def apply(file: Path, options: Options) -> tuple[str, ...]:
    """Apply a saved plan where everything is as it was planned; return what was applied.

    `options` says which API server. Raises CommandError for a file that is no plan, for one of which something has
    moved since, and where somebody else owns a field; ApiError when the server cannot be asked.
    """
    saved = _read(file)
    with tempfile.TemporaryDirectory() as folder:
        for number, obj in enumerate(saved.objects):
            (Path(folder) / f"{number:04}.json").write_bytes(msgspec.json.encode(obj))
        again = await plan(
            Options((Path(folder),), saved.namespace or None, server=options.server, settings=saved.settings)
        )
    moved = _differing(saved.claims, again.claims)
    if moved:
        text = "\n".join(f"  {name}" for name in moved[:20])
        raise CommandError(
            f"{file}: nothing was applied, as something moved since it was planned:\n{text}\nplan again, and read it",
            exit_code=Exit.REFUSED,
        )
    async with connected(options.server) as kube:
        ordered = sorted(saved.objects, key=lambda obj: _order(str(obj["kind"])))
        home = saved.namespace or current_namespace(options.server)
        return tuple([await _apply(kube, Discovery(kube), obj, home, saved.settings) for obj in ordered])


def _read(file: Path) -> SavedPlan:
    try:
        saved = msgspec.json.decode(file.read_bytes(), type=SavedPlan)
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror}", exit_code=Exit.INVALID_INPUT) from error
    except msgspec.MsgspecError as error:
        text = f"{file}: is no plan of `fairlead plan --out`: {error}"
        raise CommandError(text, exit_code=Exit.INVALID_INPUT) from error
    if saved.format != FORMAT:
        text = f"{file}: is of another version of fairlead (format {saved.format}): plan again"
        raise CommandError(text, exit_code=Exit.INVALID_INPUT)
    return saved


def _differing(before: Iterable[ClaimPlan], now: Iterable[ClaimPlan]) -> list[str]:
    """Return the claims of which the plan is another one, but for when a maintenance window opens next."""
    first, second = ({plan.claim: _timeless(plan) for plan in plans} for plans in (before, now))
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def _timeless(plan: ClaimPlan) -> ClaimPlan:
    changes = tuple(
        msgspec.structs.replace(change, cloud=tuple(msgspec.structs.replace(field, at="") for field in change.cloud))
        for change in plan.changes
    )
    # As it is read from a file.
    return msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(plan, changes=changes)), ClaimPlan)


def _order(kind: str) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


async def _apply(kube: Kube, discovery: Discovery, obj: Object, namespace: str, settings: str) -> str:
    resource = await discovery.resource_of(str(obj["apiVersion"]), str(obj["kind"]))
    if resource is None:
        raise CommandError(f"the API server serves no kind {obj['kind']}", exit_code=Exit.INVALID_INPUT)
    meta = dict(metadata(obj))
    if resource.namespaced and not meta.get("namespace"):
        meta["namespace"] = settings if resource.kind == "ConfigMap" else namespace
    try:
        applied = await kube.apply(resource, {**obj, "metadata": meta}, manager=_MANAGER)
    except ApplyConflict as error:
        raise CommandError(f"{obj['kind']} {meta.get('name')}: {error}", exit_code=Exit.REFUSED) from error
    return f"{resource.kind} {key_of(applied)} applied"
