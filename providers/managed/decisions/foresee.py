"""What a pass would decide on an edited object, by what its status says was observed last: the plan of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from providers.external import observed_status
from providers.external.client import Target
from providers.external.consent import consent_of
from providers.external.diff import diff
from providers.external.observation import Change, Observed, Path, Phase, Present, Queue, digest
from providers.external.ownership import identity_of, owner_of
from providers.external.provider import Kind
from providers.managed import record
from providers.managed.decisions.decide_update import INTERRUPTING, decide_update
from providers.managed.decisions.plan import Plan, Rest
from providers.managed.inputs import Inputs, Lifecycle
from runtime import kubectl
from runtime.objects import Object, generation_of, key_of, status_of
from runtime.replaced import replace


@dataclass(frozen=True, slots=True)
class Foresight:
    """What the next pass would decide; `window_at` is when the maintenance window opens next, None where none is set.

    `state` is the cloud's own word where it is at work and takes no change yet, empty where it takes changes. `outages`
    is for how long changes that interrupt do so, by their path, as far as the cloud says.
    """

    plan: Plan
    changes: tuple[Change, ...]
    window_at: datetime | None = None
    state: str = ""
    outages: Mapping[Path, str] = field(default_factory=dict)


def foresee(
    kind: Kind[Any, Any], obj: Object, now: datetime, config: Any = None, resolved: Mapping[str, str] | None = None
) -> Foresight | None:
    """Return what a pass over `obj` would decide, None where its status does not say what was observed.

    `obj` has the status and annotations that live, and the spec that is to be; `config` is its ProviderConfig's spec,
    None where that is not known; `resolved` what its references resolve to, where that is not what its status has. What
    only the account knows (how much is made or destroyed, turns, what others changed since) is left out. Raises
    InvalidSpec.
    """
    target = _target(kind, obj, status_of(obj).get("resolved") or {} if resolved is None else resolved)
    observed = observed_status.read(kind, obj, target)
    if observed is None:
        return None
    refusal = None if config is None else kind.refusal(target.spec, config, status_of(obj).get("atProvider") or {})
    inputs = replace(_inputs(kind, obj, target, observed, now), refusal=refusal)
    state = "" if observed.phase is Phase.READY else observed.state
    outages = {change.path: kind.outage(change, observed) for change in inputs.changes if change.kind in INTERRUPTING}
    return Foresight(_plan(inputs, observed), inputs.changes, inputs.window_at, state, outages)


def _plan(inputs: Inputs[Any], observed: Observed[Any, Any]) -> Plan:
    if inputs.lifecycle.paused:
        return Rest("Paused", inputs.lifecycle.paused, inputs.changes)
    if inputs.observe_only:
        return Rest("ObserveOnly", "managementPolicy Observe changes nothing", inputs.changes)
    return decide_update(inputs, observed)


def _target(kind: Kind[Any, Any], obj: Object, resolved: Mapping[str, str]) -> Target[Any]:
    external_ref = record.external_ref_of(obj, absent_since=None)
    envelope, key = record.envelope_of(obj, kind.spec_type), key_of(obj)
    spec = _resolved(kind, resolved, envelope.for_provider)
    if envelope.management_policy == "Observe":
        spec = kind.naming.filled(spec, external_ref.external_name)
    return Target(
        external_ref.external_name,
        spec,
        owner_of(obj, ""),
        identity_of(obj).hash,
        incarnation=external_ref.incarnation,
        address=kubectl.address_of(kind.resource.kind, key),
    )


def _resolved(kind: Kind[Any, Any], resolved: Mapping[str, str], spec: Any) -> Any:
    """Fill in the references that a spec has."""
    names = {
        reference.into: resolved[reference.shown]
        for reference in kind.references
        if reference.shown in resolved and getattr(spec, reference.field) and getattr(spec, reference.into) is None
    }
    return msgspec.structs.replace(spec, **names)


def _inputs(
    kind: Kind[Any, Any], obj: Object, target: Target[Any], observed: Observed[Any, Any], now: datetime
) -> Inputs[Any]:
    envelope = record.envelope_of(obj, kind.spec_type)
    external_ref = record.external_ref_of(obj, absent_since=None)
    differing = diff(target.spec, observed.spec, ignore=envelope.ignore_fields, applied=external_ref.applied_keys)
    # Of what a provider keeps true by itself: what leaves the cloud's queue. Tags and roles are no part of an edit.
    kept_true = kind.invariants(target, observed) if observed.facts is not None else ()
    left = (change for change in kept_true if change.queue is Queue.CANCEL)
    return Inputs(
        target,
        Present(observed),
        external_ref,
        now,
        spec_hash=digest(target.spec),
        generation=generation_of(obj),
        consent=consent_of(obj),
        observe_only=envelope.management_policy == "Observe",
        correct_drift=envelope.drift_policy == "Correct",
        apply_now=envelope.maintenance.apply == "Immediate",
        changes=tuple(kind.classify(change, observed) for change in (*differing, *left)),
        observed_hash=digest(observed.spec),
        window_at=kind.next_window(observed, now),
        projection=kind.projection,
        stateful=kind.stateful,
        inside=kind.inside,
        obj=obj,
        envelope=envelope,
        lifecycle=Lifecycle(paused=record.paused(obj, now)),
    )
