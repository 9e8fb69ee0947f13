"""How each of the ten ways loses what it loses, and the waves in which a platform suffers them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tests.support import losses
from tests.support.api import ApiError, JsonObject
from tests.support.foreign import Operator
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, CONFIG_MAP, CRD, NAMESPACE, REVISION, SECRET, Kind
from tests.support.loss_sides import Foreign, Side
from tests.support.losses import CLAIM_DELETED, Case, Outcome, Way
from tests.support.staff import Staff
from tests.support.system import System
from tests.support.waiting import eventually

_PREFIX = "fairlead.dev/"
_NO_FINALIZERS = {"metadata": {"finalizers": None}}
_HELD_LIMIT_S = 30.0
# Made anew by the restore or by hand, a claim has no finalizer before the composer has seen it: deleted earlier it is
# gone at once, and nothing was lost that ties it to anything.
_FIRST_SEEN = (losses.RESTORED, losses.AGAIN)


async def side_by_side(staff: Staff, some: list[Case]) -> list[Outcome]:
    """Suffer the ways that concern single claims, all at once: lose and act while nobody is at work."""
    system = staff.system
    await losses.move_in(system, some)
    operators = {case.side.operator for case in some if isinstance(case.side, Foreign)}
    later = [case for case in some if case.way in _FIRST_SEEN and case.act == CLAIM_DELETED]
    async with staff.away():
        await _lose(system, some, operators)
        await losses.act(system, [case for case in some if case not in later])
    await losses.settle(system, some)
    if later:
        await losses.act(system, later)
        await losses.settle(system, some)
    return await losses.look(system, some)


async def label_gone(staff: Staff, some: list[Case]) -> list[Outcome]:
    """Lose the label by which the child's CRD says that it holds data; put it back in the end."""
    system = staff.system
    await losses.move_in(system, some)
    paths = _definitions(some)
    async with staff.away():
        for path in paths:
            await system.api.merge(path, {"metadata": {"labels": {f"{_PREFIX}stateful": None}}})
        await losses.act(system, some)
    await losses.settle(system, some)
    outcomes = await losses.look(system, some)
    for path in paths:
        await system.api.merge(path, {"metadata": {"labels": {f"{_PREFIX}stateful": "true"}}})
    return outcomes


async def not_served(staff: Staff, some: list[Case]) -> list[Outcome]:
    """Have the child's kind served no longer while the acts come; serve it again in the end."""
    system = staff.system
    await losses.move_in(system, some)
    await _serve(system, some, served=False)
    await losses.act(system, some)
    await losses.settle(system, some)
    await _serve(system, some, served=True)
    await losses.settle(system, some)
    return await losses.look(system, some)


async def crd_back(staff: Staff, some: list[Case]) -> list[Outcome]:
    """Have the child's CRD deleted and, once it is gone, made again; one that is held for its data stays."""
    system = staff.system
    await losses.move_in(system, some)
    for path in _definitions(some):
        kept = await _bare(system, path)
        await system.api.delete(path)
        with contextlib.suppress(AssertionError):
            await system.api.until_gone(path, limit_s=_HELD_LIMIT_S)
            await system.create(CRD, kept)
    await losses.settle(system, some)
    await losses.act(system, some)
    await losses.settle(system, some)
    return await losses.look(system, some)


WAVES: dict[Way, Callable[[Staff, list[Case]], Awaitable[list[Outcome]]]] = {
    losses.CRD_LABEL: label_gone,
    losses.NOT_SERVED: not_served,
    losses.CRD_BACK: crd_back,
}
"""The ways that concern a whole kind have a wave of their own, in this order; all others share the first wave."""


async def suffer(staff: Staff, some: list[Case]) -> list[Outcome]:
    """Run every case; return what became of each."""
    shared = [case for case in some if case.way not in WAVES]
    outcomes = await side_by_side(staff, shared) if shared else []
    _show(outcomes)
    for way, wave in WAVES.items():
        own = [case for case in some if case.way is way]
        wave_outcomes = await wave(staff, own) if own else []
        _show(wave_outcomes)
        outcomes += wave_outcomes
    return outcomes


def _show(outcomes: list[Outcome]) -> None:
    if outcomes:
        print("", losses.table(outcomes), sep="\n", flush=True)  # noqa: T201 - the matrix is the result


# What is lost


async def _lose(system: System, some: list[Case], operators: set[Operator]) -> None:
    await asyncio.gather(*(_lose_of_claim(system, case) for case in some))
    await _lose_revisions(system, {case.composition for case in some if case.way is losses.REVISION})
    with contextlib.ExitStack() as stack:
        for operator in operators:
            stack.enter_context(operator.away())
        restored: dict[str, set[Kind]] = {}
        for case in some:
            if case.way is losses.RESTORED:
                restored.setdefault(case.namespace, set()).add(case.side.kind)
        await asyncio.gather(*(_restore(system, namespace, kinds) for namespace, kinds in restored.items()))


async def _lose_of_claim(system: System, case: Case) -> None:
    child = case.side.child_path(case.key)
    if case.way is losses.STATUS:
        bare = {**await system.api.get(case.path), "status": {"observedGeneration": -1}}
        await system.api.replace(f"{case.path}/status", bare)
    elif case.way is losses.ANNOTATIONS:
        for path in (case.path, child):
            annotations = (await system.api.get(path))["metadata"].get("annotations", {})
            ours = [key for key in annotations if key.startswith(_PREFIX)]
            await system.api.merge(path, {"metadata": {"annotations": dict.fromkeys(ours)}})
    elif case.way is losses.CHILD_LABEL:
        await system.api.merge(child, {"metadata": {"labels": {f"{_PREFIX}claim": None}}})
    elif case.way is losses.FINALIZERS:
        for path in (case.path, child):
            await system.api.merge(path, _NO_FINALIZERS)
    elif case.way is losses.AGAIN:
        await _force_away(system, case.path)
        await losses.make_claim(system, case)


async def _lose_revisions(system: System, compositions: set[str]) -> None:
    for revision in await system.api.items(REVISION.path()):
        if revision["spec"]["compositionName"] in compositions:
            await _force_away(system, REVISION.path("", revision["metadata"]["name"]))


async def _restore(system: System, namespace: str, composed: set[Kind]) -> None:
    """Delete a namespace, and make it and what was in it again as a backup tool does: no status, owner, finalizer."""
    kinds = (SECRET, CONFIG_MAP, *composed, CLAIM)
    saved = [(kind, obj) for kind in kinds for obj in await system.api.items(kind.path(namespace))]
    kept = [(kind, obj) for kind, obj in saved if obj["metadata"]["name"] != "kube-root-ca.crt"]
    for kind, obj in kept:
        await _force_away(system, kind.path(namespace, obj["metadata"]["name"]))
    await system.api.delete(NAMESPACE.path("", namespace))
    await until_gone(system, NAMESPACE.path("", namespace))
    await system.namespaced(namespace)
    for kind, obj in kept:
        # A list's items name no kind.
        whole = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
        await system.api.create(kind.path(namespace), _bare_of(whole), fieldManager="velero-server")


async def _force_away(system: System, path: str) -> None:
    """Delete an object whatever holds it, as an impatient person does."""
    with contextlib.suppress(ApiError):
        await system.api.merge(path, _NO_FINALIZERS)
        await system.api.delete(path)
    await until_gone(system, path)


# Definitions


def _definitions(some: list[Case]) -> list[str]:
    return sorted({CRD.path("", f"{case.side.kind.plural}.{case.side.kind.group}") for case in some})


async def _serve(system: System, some: list[Case], *, served: bool) -> None:
    for path in _definitions(some):
        test = [{"op": "add", "path": "/spec/versions/0/served", "value": served}]
        await system.api.json_patch(path, test)
    for side in {id(case.side): case.side for case in some}.values():

        async def known(side: Side = side) -> bool:
            try:
                return (await system.api.find(side.kind.path()) is not None) is served
            except ApiError:
                return False

        await eventually(known, f"{side.kind.kind} is{'' if served else ' not'} served")


async def _bare(system: System, path: str) -> JsonObject:
    return _bare_of(await system.api.get(path))


def _bare_of(obj: JsonObject) -> JsonObject:
    """Return an object as a backup tool or a person applies it again."""
    meta = {
        key: obj["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in obj["metadata"]
    }
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}
