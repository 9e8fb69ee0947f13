"""Composer and provider in one process: started, killed and started again, between an API server and a cloud."""

from __future__ import annotations

import asyncio
import base64
import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import msgspec

from apis import names
from composer import process as composer_process
from composer.models import Offerings
from composer.render.errors import CompositionError, Problem
from composer.render.render import Rendered, render
from composer.validation.offerings import offerings
from composer.validation.validate import check
from devcloud.apiserver.api_server import ApiServer
from devcloud.apiserver.housekeeping import keep_house
from devcloud.apiserver.watching import Change
from fairlead.assets import assets
from fairlead.simulation import faulty
from fairlead.simulation.clouds import CloudDescription, CloudInMemory
from fairlead.simulation.process_life import Interruption, Moment
from fairlead.simulation.virtual_time import Trace, chance_of, uids
from fairlead.yaml_files import objects_in
from providers.external.provider import Rate
from providers.process import Times, build_for
from runtime import clock, fence
from runtime.cache import Cache
from runtime.controller import Controller
from runtime.errors import ApiError
from runtime.events import EventRecorder
from runtime.manager import Manager
from runtime.objects import CONFIG_MAPS, CRDS, EVENTS, LEASES, NAMESPACES, SECRETS, Key, Object, Resource, dumps, loads
from runtime.serve import ProcessContext, ProcessSettings, lead, send_events

SYSTEM: Final = "fairlead-system"
CLAIMS: Final = Resource("database.fairlead.dev", "v1alpha1", "PostgreSQLInstance", "postgresqlinstances")
_APPLY_S: Final = 300.0
_SECOND: Final = "-2"
_TIMES: Final = Times(
    resync=timedelta(minutes=10),
    sweep=timedelta(minutes=5),
    grace=timedelta(seconds=60),
    call_budget=timedelta(seconds=20),
    skew=timedelta(seconds=5),
    rotation_grace=timedelta(hours=1),
    settle=timedelta(minutes=1),
)


Answer = bytes | tuple[Problem, ...]
Answers = dict[bytes, Answer]


class InProcess:
    """A render pool without workers; what a pure function answered for the same request is kept."""

    async def render(self, request: Any) -> Any:
        """Render."""
        kept = _kept(_RENDERS, request, lambda: msgspec.json.encode(render(request)))
        if isinstance(kept, bytes):
            return msgspec.json.decode(kept, type=Rendered)
        raise CompositionError(*kept)

    async def check(self, request: Any) -> Any:
        """Check a Composition."""
        return _kept(_CHECKS, request, lambda: tuple(check(request)))

    async def offerings(self, request: Any) -> Any:
        """Return what claims may ask for."""
        kept = _kept(_OFFERINGS, request, lambda: msgspec.json.encode(offerings(request)))
        if isinstance(kept, bytes):
            return msgspec.json.decode(kept, type=Offerings)
        raise CompositionError(*kept)

    async def close(self) -> None:
        """Do nothing."""


def _kept(kept: Answers, request: Any, answer: Callable[[], Answer]) -> Answer:
    question = msgspec.json.encode(request)
    if question not in kept:
        if len(kept) > _MOST_ANSWERS:
            kept.clear()
        try:
            kept[question] = answer()
        except CompositionError as error:
            kept[question] = error.problems
    return kept[question]


_MOST_ANSWERS: Final = 1000
_RENDERS: Answers = {}
_OFFERINGS: Answers = {}
_CHECKS: Answers = {}
Build = Callable[[ProcessContext], Awaitable[Sequence[Controller]]]


@dataclass(slots=True)
class Process:
    """One process, from a start to its kill."""

    connection: faulty.Connection
    task: asyncio.Task[None]


@dataclass
class Platform:
    """A cluster, a cloud, and the processes between them.

    With two replicas each process has a standby, and they elect; `overlaps` are effects of one that did not hold the
    Lease while another did.
    """

    seed: str
    trace: Trace
    description: CloudDescription
    replicas: int = 1
    server: ApiServer = field(init=False)
    cloud: CloudInMemory = field(init=False)
    weather: faulty.Weather = field(default_factory=faulty.Weather)
    processes: dict[str, Process] = field(default_factory=dict)
    kills: int = 0
    requests: int = 0
    overlaps: list[tuple[float, str, str]] = field(default_factory=list)
    _restarts: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = ApiServer(now=clock.now, uid=uids(self.seed))
        self.server.listeners.append(self._note)
        if self.replicas > 1:
            self.server.resources[LEASES.group, LEASES.plural] = LEASES
        self.cloud = self.description.new(self.trace.add, chance_of(self.seed, "cloud"))

    def _note(self, resource: Resource, change: Change) -> None:
        obj = change.after if change.after is not None else change.before
        # The order of fields is nobody's: the client of the cloud keeps labels by their places in memory.
        text = msgspec.json.encode(obj, order="sorted").decode()
        self.trace.add(change.version, resource.plural, change.after is None, text)

    def install(self, namespaces: Sequence[str], compositions: Iterable[Object]) -> None:
        """Have what an installation has, namespaces for claims whose label `cloud` says this one, and Compositions."""
        for resource in (NAMESPACES, SECRETS, CONFIG_MAPS, CRDS, EVENTS):
            self.server.resources[resource.group, resource.plural] = resource
        about = self.description
        for namespace in ("kube-system", SYSTEM, about.namespace, *namespaces):
            labels = {"cloud": about.name} if namespace in namespaces else {}
            self.server.put(NAMESPACES, _object(NAMESPACES, "", namespace, labels=labels))
        self.apply_kinds()
        uid = self.server.all_of(NAMESPACES)[Key("", "kube-system")]["metadata"]["uid"]
        installation = _object(CONFIG_MAPS, SYSTEM, "fairlead-installation", data={"id": "abcd", "clusterUid": uid})
        self.server.put(CONFIG_MAPS, installation)
        kind = about.provider.config_resource
        self.server.put(kind, _object(kind, "", "default", spec=loads(dumps(about.config))))
        for name, values in about.secrets.items():
            data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
            self.server.put(SECRETS, _object(SECRETS, about.namespace, name, data=data))
        self.server.put(CONFIG_MAPS, _object(CONFIG_MAPS, SYSTEM, about.name, data=dict(about.place)))
        for composition in compositions:
            self.server.put(names.COMPOSITIONS, composition)

    def apply_kinds(self) -> int:
        """Have the CRDs that are not there; return how many those were."""
        crds = _crds(self.description.name)
        absent = [name for name in crds if self.server.find(CRDS, Key("", name)) is None]
        for name in absent:
            self.server.put(CRDS, loads(crds[name]))
        return len(absent)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all processes, standbys too."""
        names = ("composer", self.description.provider_process)
        return tuple(f"{name}{_SECOND * number}" for number in range(self.replicas) for name in names)

    async def start(self, name: str) -> None:
        """Start a process that does not run."""
        if name in self.processes:
            return
        chance = chance_of(self.seed, f"requests of {name} {self.kills}")
        connection = faulty.Connection(self.server, name, chance, self.weather, self.trace.add)
        self.trace.add("start", name)
        about, role = self.description, name.removesuffix(_SECOND)
        place = Key(SYSTEM if role == "composer" else about.namespace, role)
        run = _Run(connection, place, f"{name}.{self.kills}", self.replicas > 1, lambda: self._fall(name))
        if run.elects:
            connection.life.noted = lambda: self._note_effect(run)
        if role == "composer":
            task = asyncio.create_task(run.for_ever(_composer))
        else:
            provider = replace(
                about.provider,
                connect=about.connector(self.cloud, connection.life),
                rate=Rate(reads_per_second=1000, writes_per_second=1000),
            )
            task = asyncio.create_task(run.for_ever(build_for(provider, _TIMES)))
        self.processes[name] = Process(connection, task)

    async def kill(self, name: str) -> None:
        """End a process that runs at once: nothing that it sends from here on arrives."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.connection.life.is_over = True
        self.trace.add("kill", name)
        self.kills += 1
        self.requests += process.connection.requests
        process.task.cancel()
        # Who leads would first end its work, which hangs as all of a dead process does.
        await asyncio.wait((process.task,), timeout=None if self.replicas == 1 else 0)

    def kill_at(self, name: str, effect: int, moment: Moment, pause_s: float) -> None:
        """Have a process die around one of its next effects, and start it again a while later."""
        if name in self.processes:
            life = self.processes[name].connection.life

            def die() -> None:
                life.is_over = True
                self._fall(name, pause_s)

            life.interruption = Interruption(effect, moment, die)

    def freeze_at(self, name: str, effect: int, moment: Moment, seconds: float) -> None:
        """Have a process stand still around one of its next effects: it notices nothing, and goes on where it was."""
        if name in self.processes:
            life = self.processes[name].connection.life
            life.interruption = Interruption(effect, moment, lambda: life.freeze(seconds))

    def _fall(self, name: str, pause_s: float = 10.0) -> None:
        """Have a process that is dying ended, and started again a while later."""

        async def die() -> None:
            await self.kill(name)
            await asyncio.sleep(pause_s)
            await self.start(name)

        self._restarts.append(asyncio.create_task(die()))

    def cut_off(self, name: str, seconds: float) -> None:
        """Let the requests of a process wait on their way, both ways, for some time."""
        if name in self.processes:
            self.processes[name].connection.cut_off_until = clock.monotonic() + seconds

    def _note_effect(self, run: _Run) -> None:
        lease = self.server.find(LEASES, run.place)
        holder = str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")
        if holder not in {"", run.identity}:
            self.overlaps.append((clock.monotonic(), run.identity, holder))

    def check(self) -> None:
        """Raise what ended a process by itself."""
        for task in self._restarts:
            if task.done():
                task.result()
        for process in self.processes.values():
            if process.task.done():
                process.task.result()
                raise AssertionError("a process ended")

    def background(self) -> list[asyncio.Task[None]]:
        """Start what a cluster and a cloud do by themselves."""
        running = (keep_house(self.server), self.cloud.run(), self._apply_again())
        return [asyncio.create_task(task) for task in running]

    async def _apply_again(self) -> None:
        """Apply the release every few minutes, as a pipeline does."""
        while True:
            await asyncio.sleep(_APPLY_S)
            self.apply_kinds()


async def _composer(context: ProcessContext) -> Sequence[Controller]:
    return await composer_process.build(context, InProcess())


@dataclass(frozen=True, slots=True)
class _Run:
    """One start of a process: `place` is its namespace and name, `fall` ends it at once."""

    connection: faulty.Connection
    place: Key
    identity: str
    elects: bool
    fall: Callable[[], None]

    async def for_ever(self, build: Build) -> None:
        """Be a process; one that ends because a kind is not there for long is started again, as a node does."""
        while True:
            try:
                await self._once(build)
            except* TimeoutError:
                self.connection.emit("restart", self.place.name)
            await asyncio.sleep(10)

    async def _once(self, build: Build) -> None:
        name = self.place.name
        context = ProcessContext(
            kube=self.connection,
            cache=Cache(self.connection),
            events=EventRecorder(self.connection, controller=name, instance=name),
            identity=self.identity if self.elects else name,
            settings=ProcessSettings(name=name, namespace=self.place.namespace, elect=self.elects),
            manager=Manager(),
        )
        if not self.elects:
            fence.bind(lambda: True)
        async with asyncio.TaskGroup() as group:
            group.create_task(context.cache.run())
            group.create_task(send_events(context) if self.elects else context.events.run())
            for controller in await _built(context, build):
                context.manager.add(controller)
            if self.elects:
                await lead(context, self._exit)
            await context.cache.wait_synced(timedelta(seconds=600))
            group.create_task(context.manager.run())

    def _exit(self) -> None:
        life = self.connection.life
        still_s = life.still_until - clock.monotonic()
        if still_s > 0:
            # Its own clock moves while it stands still, and a frozen process ends itself once it is awake.
            asyncio.get_running_loop().call_later(still_s, self._exit)
        elif not life.is_over:
            life.is_over = True
            self.fall()


async def _built(context: ProcessContext, build: Build) -> Sequence[Controller]:
    """Build, again after a while where the API server refuses, as `runtime.serve` does."""
    while True:
        try:
            return await build(context)
        except (ApiError, TimeoutError):
            await asyncio.sleep(2)


def _object(resource: Resource, namespace: str, name: str, *, labels: Any = None, **body: Any) -> Object:
    meta = {"name": name, "labels": labels or {}, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}


@functools.cache
def _crds(cloud: str) -> dict[str, bytes]:
    of_cloud = ("fairlead.dev_", "database.", f"{cloud}.")
    files = (path for path in sorted(assets("crds").glob("*.yaml")) if path.name.startswith(of_cloud))
    crds = [crd for path in files for crd in objects_in(path.parent, path.name)]
    for crd in crds:
        crd["metadata"]["finalizers"] = ["customresourcecleanup.apiextensions.k8s.io"]
        crd["status"] = {
            "conditions": [{"type": "Established", "status": "True"}],
            "storedVersions": [crd["spec"]["versions"][0]["name"]],
        }
    return {crd["metadata"]["name"]: dumps(crd) for crd in crds}
