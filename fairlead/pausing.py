"""`fairlead pause` and `fairlead resume`: no call of ours changes what is paused, in no cloud, until its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apis import names
from apis.pause import is_paused
from fairlead.annotate import Changes, annotate, tools_with
from fairlead.cluster import connected, current_namespace, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL, Server
from runtime.conditions import instant
from runtime.objects import Key, Object, Resource, annotations_of, key_of

_CONFIG = "ProviderConfig"
_SPAN = re.compile(r"(\d{1,5})([smhd])")
_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done, a line each, and remarks on what may undo it."""

    lines: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """Which object a person means: NAME or KIND/NAME, a namespace, an API server."""

    reference: str
    namespace: str | None = None
    server: Server = USUAL


def span_in(text: str) -> timedelta | None:
    """Return the span that `30s`, `30m`, `2h` or `1d` mean, None for another text."""
    span = _SPAN.fullmatch(text)
    return int(span[1]) * _UNITS[span[2]] if span else None


def timeout_in(text: str) -> float | None:
    """Return the seconds of a time-out, None for an empty text: none. Raises CommandError (usage) for what is none."""
    span = span_in(text)
    if text and not span:
        raise CommandError(f"--timeout {text!r} is no span: write 90s, 30m or 2h", exit_code=Exit.USAGE)
    return span.total_seconds() if span else None


def end_in(text: str, now: datetime) -> str:
    """Return the end (RFC 3339) that `30m`, `2h`, `1d` or a time mean. Raises CommandError (usage) for another text."""
    span = span_in(text)
    end = now + span if span else instant(text)
    if end is None:
        problem = f"{text!r} is no time: write 30m, 2h, 1d, or a time with its zone as 2026-11-22T18:00:00Z"
        raise CommandError(problem, exit_code=Exit.USAGE)
    if end <= now:
        raise CommandError(f"{text} is over already", exit_code=Exit.USAGE)
    return end.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


async def pause(named: Named, *, until: str, reason: str) -> Outcome:
    """Pause a claim with its children, a managed resource of no claim, or all that a ProviderConfig serves.

    `until` empty: without an end. Raises CommandError for what cannot be paused by itself, and ApiError.
    """
    value = end_in(until, datetime.now(UTC)) if until else "true"
    changes: Changes = {names.PAUSED: value, names.PAUSED_REASON: reason or None}
    resource, obj = await _write(named, changes)
    end = f"until {value}" if until else "until `fairlead resume`"
    return Outcome((f"{_called(resource, obj)} is paused {end}{_whom(resource)}",), tuple(_remarks(obj, names.PAUSED)))


async def resume(named: Named, *, destroys_until: str) -> Outcome:
    """End a pause. `destroys_until`: of a ProviderConfig, until when its destroy rate limit holds nothing back.

    Raises CommandError for what cannot be paused, and where `destroys_until` is said of anything but a ProviderConfig.
    """
    now = datetime.now(UTC)
    changes: dict[str, str | None] = {names.PAUSED: None, names.PAUSED_REASON: None}
    if destroys_until:
        changes[names.DESTROY_LIMIT_LIFTED] = end_in(destroys_until, now)
    resource, obj = await _write(named, changes)
    called, was_paused = _called(resource, obj), is_paused(annotations_of(obj), now)
    lines = [f"{called} goes on{_whom(resource)}" if was_paused else f"{called} was not paused"]
    if destroys_until:
        lines.append(f"its deletions and restarts are not limited until {changes[names.DESTROY_LIMIT_LIFTED]}")
    return Outcome(tuple(lines), tuple(_remarks(obj, names.PAUSED)))


async def _write(named: Named, changes: Changes) -> tuple[Resource, Object]:
    word, name = split_reference(named.reference)
    async with connected(named.server) as kube:
        resource = await Discovery(kube).resource_named(word)
        namespace = (named.namespace or current_namespace(named.server)) if resource.namespaced else ""

        def decide(obj: Object) -> Changes:
            refuse(resource, obj, changes)
            return changes

        return resource, await annotate(kube, resource, Key(namespace, name), decide)


def refuse(resource: Resource, obj: Object, changes: Changes) -> None:
    """Raise CommandError (refused) for an object on which these annotations would do nothing, or not last. Pure."""
    annotations, called = annotations_of(obj), _called(resource, obj)
    claim = annotations.get(names.CLAIM_NAME, "")
    if claim:
        text = f"{called} follows its claim {claim}: name the claim instead"
    elif resource == names.COMPOSITIONS:
        text = f"{called} pauses no claim; to halt its rollout: fairlead rollout pause {key_of(obj).name}"
    elif not _heeds(resource, obj):
        text = f"{called} is never paused: name a claim, a managed resource or a ProviderConfig"
    elif names.DESTROY_LIMIT_LIFTED in changes and resource.kind != _CONFIG:
        text = f"{called} has no destroy rate limit: name the ProviderConfig"
    else:
        return
    raise CommandError(text, exit_code=Exit.REFUSED)


def _heeds(resource: Resource, obj: Object) -> bool:
    """Return whether a process of ours heeds a pause on it; a claim of another group is known by its identity."""
    is_served = resource.group in names.CLAIM_GROUPS or names.is_managed(resource.group)
    return is_served or names.IDENTITY in annotations_of(obj)


def _called(resource: Resource, obj: Object) -> str:
    key = key_of(obj)
    return f"{resource.kind} {key.name}" + (f" in namespace {key.namespace}" if key.namespace else "")


def _whom(resource: Resource) -> str:
    return ", and all that it serves" if resource.kind == _CONFIG else ""


def _remarks(obj: Object, annotation: str) -> Sequence[str]:
    return [
        f"remark: {manager} has set {annotation} here, and may set it again: change it where that comes from"
        for manager in tools_with(obj, annotation)
    ]
