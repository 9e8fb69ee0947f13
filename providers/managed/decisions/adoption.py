"""What taking over a thing of somebody else's would change about it, before anybody agrees to it. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from providers.credentials.passwords import Introduce, PutBack, decide_password
from providers.external.client import Target
from providers.external.observation import Change, Class, Observed, SpecT, describe, digest
from providers.external.provider import Kind
from providers.managed.decisions.decide_update import is_consented, is_due
from providers.managed.decisions.plan import Preview
from providers.managed.inputs import Inputs, differences
from runtime.objects import Object
from runtime.replaced import replace

FIELD: Final = "adoption"
_MOST: Final = 64


def with_preview(kind: Kind[SpecT, Any], inputs: Inputs[SpecT]) -> Inputs[SpecT]:
    """Return the inputs with what adopting changes, where what was observed is not this resource's and may be had."""
    observed = inputs.observed
    return replace(inputs, preview=None if observed is None else _preview(kind, inputs, observed))


def _preview(kind: Kind[SpecT, Any], inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Preview | None:
    recorded = inputs.external_ref.incarnation
    is_same = not recorded or observed.is_recorded_as(recorded)
    if inputs.lifecycle.deleting or (is_same and inputs.is_ours(observed)) or not inputs.may_show(observed):
        return None
    target = _adopted(kind, inputs.target, observed)
    changes = differences(kind, inputs.envelope, target, observed, inputs.external_ref.applied_keys)
    ownership = tuple(change for change in changes if kind.is_ownership(change))
    others = tuple(change for change in changes if change not in ownership)
    others += (*kind.adopted(observed), *_of_login(kind, inputs, target, others))
    hashed = [(change.path, change.want, change.have, change.kind.value) for change in (*ownership, *others)]
    agreed = [target.name, observed.incarnation, inputs.apply_now, inputs.correct_drift, hashed]
    return Preview(
        observed.incarnation, ownership, tuple((change, _when(inputs, change)) for change in others), digest(agreed)
    )


def _adopted(kind: Kind[SpecT, Any], target: Target[SpecT], observed: Observed[SpecT, Any]) -> Target[SpecT]:
    """Return the target as the first pass after an adoption has it: with a login that it makes where there is none."""
    target = replace(target, incarnation=observed.incarnation)
    if kind.logins is None or target.active or not kind.logins.applies(target.spec):
        return target
    first, second = kind.logins.names(target)
    is_new = first != second and kind.logins.versions(observed).keys().isdisjoint({first, second})
    return replace(target, active=first) if is_new else target


def _of_login(
    kind: Kind[SpecT, Any], inputs: Inputs[SpecT], target: Target[SpecT], changes: tuple[Change, ...]
) -> tuple[Change, ...]:
    """Return the login that would be made, where no change of a role says it, or the password that would be set."""
    if kind.logins is None or inputs.passwords is None:
        return ()
    if target.active != inputs.target.active:
        is_shown = any(change.path == ("roles", target.active) for change in changes)
        return () if is_shown else (Change(("logins", target.active), "present", None),)
    is_single = inputs.logins[0] == inputs.logins[1]
    step = decide_password(replace(inputs.passwords, published=True, taken_over=is_single), inputs.now)
    is_set = isinstance(step, Introduce | PutBack)
    return (Change(("logins", inputs.logins[0], "password"), "a new one", "the present one"),) if is_set else ()


def _when(inputs: Inputs[SpecT], change: Change) -> str:
    fields = {field.encode_name for field in msgspec.structs.fields(inputs.target.spec)}
    if change.veto is not None or (inputs.refusal is not None and change.path[0] in fields):
        return "Refused"
    if change.kind is Class.LOSS and not is_consented(inputs, change):
        return "Consent"
    converged = inputs.external_ref.converged
    # What has another thing's place, and was as asked for before, is put back as drift is.
    edited = converged is None or converged.spec_hash != inputs.spec_hash
    return "Now" if is_due(inputs, change, edited=edited) else "Window"


def dump(preview: Preview | None) -> Object | None:
    """Return `status.adoption`."""
    if preview is None:
        return None
    shown: Object = {"incarnation": preview.incarnation[:256], "hash": preview.hash, "total": len(preview.changes)}
    if preview.ownership:
        shown["ownership"] = [_entry(change) for change in preview.ownership[:_MOST]]
    if preview.changes:
        shown["changes"] = [_entry(change) | {"when": when} for change, when in preview.changes[:_MOST]]
    return shown


def _entry(change: Change) -> Object:
    return {"path": change.shown[:256], "desired": describe(change.want), "observed": describe(change.have)}
