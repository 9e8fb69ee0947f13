"""`fairlead wait`: follow objects by a watch until they are as wanted, and say what goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cluster import connected, current_namespace, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit, worst
from fairlead.imports.following import Followed
from fairlead.kube_options import USUAL, Server
from fairlead.progress import Goal, Progress, progress_of
from runtime import clock
from runtime.kube import Kube
from runtime.objects import Key, Resource

_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is waited for: objects by name, how they shall be, and for how long at most (None: without an end)."""

    references: Sequence[str]
    goal: Goal = "ready"
    namespace: str | None = None
    timeout_s: float | None = None
    server: Server = USUAL


async def wait(wanted: Wanted, show: Callable[[str], None]) -> Exit:
    """Wait; `show` gets a line whenever what an object does is something else.

    STALLED as soon as one of them is, NOT_READY after the time-out. Raises CommandError where there is no such object.
    """
    references = [split_reference(reference) for reference in wanted.references]
    async with connected(wanted.server) as kube:
        targets = await _targets(kube, references, wanted)
        places = dict.fromkeys((resource, key.namespace) for resource, key in targets)
        async with Followed.begin(kube, places) as followed:
            return await _ended(followed, targets, wanted, show)


async def _targets(kube: Kube, references: Sequence[tuple[str, str]], wanted: Wanted) -> list[tuple[Resource, Key]]:
    discovery, targets = Discovery(kube), list[tuple[Resource, Key]]()
    for word, name in references:
        resource = await discovery.resource_named(word)
        home = (wanted.namespace or current_namespace(wanted.server)) if resource.namespaced else ""
        targets.append((resource, Key(home, name)))
        if wanted.goal != "gone":
            await existing(kube, resource, targets[-1][1])
    return targets


async def _ended(
    followed: Followed, targets: Sequence[tuple[Resource, Key]], wanted: Wanted, show: Callable[[str], None]
) -> Exit:
    begun, texts = clock.monotonic(), dict[tuple[Resource, Key], str]()
    try:
        async with asyncio.timeout(wanted.timeout_s):
            while True:
                standing = [_progress(followed, target, wanted.goal) for target in targets]
                for target, progress in zip(targets, standing, strict=True):
                    if texts.get(target) != progress.text:
                        show(f"{_elapsed(clock.monotonic() - begun)}  {target[1].name}: {progress.text}")
                    texts[target] = progress.text
                exits = [progress.exit for progress in standing if progress.exit is not None]
                if len(exits) == len(targets) or any(code is not Exit.DONE for code in exits):
                    return worst(exits)
                await followed.change()
    except TimeoutError as error:
        doing = "; ".join(f"{key.name}: {text}" for (_, key), text in texts.items())
        text = f"not {wanted.goal} within {wanted.timeout_s or 0:g} s: {doing}"
        raise CommandError(text, exit_code=Exit.NOT_READY) from error


def _progress(followed: Followed, target: tuple[Resource, Key], goal: Goal) -> Progress:
    resource, key = target
    obj = followed.present(resource, key)
    about = {"apiVersion": resource.api_version, "kind": resource.kind}
    return progress_of(about | obj if obj is not None else None, goal)


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if seconds >= _HOUR_S else f"{minutes}:{rest:02}"
