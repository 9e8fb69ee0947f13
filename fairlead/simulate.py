"""`fairlead simulate`: what happens over time, with the composer and a provider as they are, and all else in memory.

The API server and the cloud are simulated in this process on virtual time: hours take seconds. What is shown is what
the simulated cloud does; times are those that it takes.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog

from apis import names
from fairlead.assets import assets
from fairlead.edits import Edits, edits_in
from fairlead.exits import CommandError, Exit, worst
from fairlead.rendering import NO_UID, checked_claim
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, SYSTEM, Platform
from fairlead.simulation.timeline import LOOK_S, Step, Timeline
from fairlead.yaml_files import Document, invalid, objects_in
from runtime import clock
from runtime.errors import ApiError
from runtime.objects import CONFIG_MAPS, Object, Resource, metadata

_PERSON: Final = "fairlead-simulate"
_DEFAULT: Final = "default"
# For so long nothing happens before it is the end: with claims that wait for nothing, and with others.
_REST_S: Final = 180.0
_STILL_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Options:
    """What to simulate: files that are applied, then others one after another, then the deletion of the claims.

    `longest_s` is for how many virtual seconds each of these acts goes on at most.
    """

    first: tuple[Path, ...]
    then: tuple[Path, ...]
    cloud: str
    delete: bool
    longest_s: float


class Story(msgspec.Struct, frozen=True):
    """What came of each act, what is left in the cloud after the last one, and what the claims answer to the shell."""

    cloud: str
    steps: tuple[Step, ...]
    left: tuple[str, ...]
    backups: tuple[str, ...]
    exit: Exit


def simulate(options: Options) -> Story:
    """Simulate files in a cloud; raises CommandError where a file is wrong, or is refused."""
    if options.cloud not in clouds.NAMES:
        raise CommandError(f"--cloud {options.cloud!r}: there are {', '.join(clouds.NAMES)}", exit_code=Exit.USAGE)
    first = _edits(options.first)
    if not first.claims:
        raise invalid(options.first[0], "holds no claim: what is simulated begins with one")
    platform = Platform("simulate", virtual_time.Trace(), _described(options.cloud))
    acts = [(str(path), _edits((path,))) for path in options.then]
    return virtual_time.run("simulate", lambda: _story(options, platform, first, acts))


@contextmanager
def silent() -> Iterator[None]:
    """Let no line be logged by what runs in this process: what happens is in the story."""
    before, disabled = structlog.get_config(), logging.root.manager.disable
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        structlog.configure(**before)
        logging.disable(disabled)


def _described(cloud: str) -> clouds.CloudDescription:
    try:
        return clouds.described(cloud)
    except ModuleNotFoundError as error:
        text = f"{error.name} is not installed: install fairlead[cli,devcloud,{cloud}]"
        raise CommandError(text) from error


def _edits(paths: Iterable[Path]) -> Edits:
    edits = edits_in(paths, SYSTEM)
    for document in edits.claims:
        checked_claim(document, NO_UID)
    return edits


async def _story(options: Options, platform: Platform, first: Edits, acts: list[tuple[str, Edits]]) -> Story:
    timeline = Timeline(platform)
    platform.server.listeners.append(timeline.listen)
    whole = (first, *(edits for _, edits in acts))
    namespaces = {_namespace(document.content) for edits in whole for document in edits.claims}
    platform.install(sorted(namespaces), _compositions(options.cloud, first))
    background = platform.background()
    for process in ("composer", platform.description.provider_process):
        await platform.start(process)
    steps = [await _step(timeline, f"apply {', '.join(map(str, options.first))}", first, options.longest_s)]
    for path, edits in acts:
        steps.append(await _step(timeline, f"apply {path}", edits, options.longest_s))
    if options.delete:
        steps.append(await _step(timeline, "delete the claims", None, options.longest_s))
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    cloud = platform.cloud
    return Story(options.cloud, tuple(steps), tuple(sorted(cloud.left())), tuple(cloud.backups()), _exit(steps[-1]))


def _compositions(cloud: str, edits: Edits) -> Iterator[Object]:
    """Yield the Compositions of the files, and the shipped one of the cloud where they have none of its name."""
    written = {str(metadata(document.content)["name"]): document.content for document in edits.compositions}
    for shipped in objects_in(assets("compositions"), f"postgres-{cloud}.yaml"):
        yield written.pop(str(metadata(shipped)["name"]), shipped)
    yield from written.values()


async def _step(timeline: Timeline, act: str, edits: Edits | None, longest_s: float) -> Step:
    """Do one act, and wait until nothing happens any more."""
    began, server = clock.monotonic(), timeline.platform.server
    if edits is None:
        for claim in list(server.all_of(CLAIMS).values()):
            server.end(CLAIMS, claim)
    else:
        await _apply(timeline.platform, edits)
    timeline.changed_at = began
    while clock.monotonic() - began < longest_s:
        await asyncio.sleep(LOOK_S)
        timeline.look()
        timeline.platform.check()
        still = clock.monotonic() - timeline.changed_at
        if still >= (_REST_S if _are_at_rest(timeline.platform) else _STILL_S):
            break
    return timeline.step(act, began)


async def _apply(platform: Platform, edits: Edits) -> None:
    """Apply documents as a person does. Raises CommandError where the API server refuses one."""
    settings = [(CONFIG_MAPS, document) for document in edits.environments.values()]
    compositions = [(names.COMPOSITIONS, document) for document in edits.compositions]
    for resource, document in (*settings, *compositions, *((CLAIMS, document) for document in edits.claims)):
        try:
            await platform.server.apply(resource, _placed(resource, document), manager=_PERSON, force=True)
        except ApiError as error:
            raise invalid(document.place("metadata"), f"refused by the API server: {error}") from error


def _placed(resource: Resource, document: Document) -> Object:
    obj = document.content
    if not resource.namespaced:
        return obj
    namespace = SYSTEM if resource == CONFIG_MAPS else _namespace(obj)
    return {**obj, "metadata": {**metadata(obj), "namespace": namespace}}


def _namespace(obj: Object) -> str:
    return str(metadata(obj).get("namespace") or _DEFAULT)


def _are_at_rest(platform: Platform) -> bool:
    """Return whether nothing is on its way: of claims that are there, and that none is being deleted."""
    claims = platform.server.all_of(CLAIMS).values()
    return all("deletionTimestamp" not in metadata(claim) and not _is(claim, "Reconciling") for claim in claims)


def _is(claim: Object, kind: str) -> bool:
    conditions = (claim.get("status") or {}).get("conditions") or ()
    return any((item["type"], item["status"]) == (kind, "True") for item in conditions)


def _exit(step: Step) -> Exit:
    """Return what the claims answer to the shell after the last step; DONE where none is left."""
    exits = {"Ready": Exit.DONE, "not Ready": Exit.NOT_READY}
    return worst(
        Exit.STALLED if ", Stalled" in text.partition(":")[0] else exits.get(text.partition(":")[0], Exit.NOT_READY)
        for text in step.claims.values()
    )


def in_words(story: Story) -> Iterator[str]:
    """Yield the lines of a story for people."""
    for step in story.steps:
        yield f"{step.act}, at {duration(step.began)}:"
        yield from (f"  {duration(line.at - step.began):>12}  {line.subject}: {line.text}" for line in step.lines)
        for claim, seconds in sorted(step.failed_logins.items()):
            yield f"  logins of {claim} failed for {duration(seconds)}"
        if not step.failed_logins and step.claims:
            yield "  no login failed that had worked before"
    yield f"left in the cloud: {', '.join(story.left) or 'nothing'}"
    if story.backups:
        yield f"backups: {', '.join(story.backups)}"


def duration(seconds: float) -> str:
    """Write a span of time for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"
