"""`fairlead import show` and `write`: what is there, every field, and the files by which it would be managed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from apis import names
from composer.kinds.catalog import Catalog, catalog
from composer.render import schema
from fairlead.account_lists import Search, provider_configs
from fairlead.cluster import connected, current_namespace, every_object
from fairlead.exits import CommandError, Exit
from fairlead.imports.candidates import candidates
from fairlead.imports.fitting import Candidate, Fit, Wanted, best_fit
from fairlead.imports.following import Followed
from fairlead.imports.manifests import managed_resource, observed_fields
from fairlead.imports.migrating import Managed
from fairlead.imports.observing import observed
from fairlead.imports.thing import Thing
from fairlead.imports.unmanaged import Unmanaged, unmanaged
from fairlead.imports.written import Written
from fairlead.kube_options import Server
from fairlead.plan_clouds import kind_of
from fairlead.yaml_files import dump
from providers.external.diff import missing
from providers.managed.record import envelope_of
from runtime.kube import Kube
from runtime.objects import CRDS, Object, Resource, metadata, status_of

_MOST_AT_ONCE: Final = 8
_CLAIM: Final = "PostgreSQLInstance.database.fairlead.dev"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Options:
    """What is looked at: a ProviderConfig, names in its cloud (patterns of a shell), and where objects would live.

    `kind` is asked for where a name is of two kinds. `inside` are names of what is inside a server, by resource of the
    Composition; `composition` is the only one to consider, empty for all; `policy` of managed resources;
    `password_secret` has the present password of the login, by the key `password`. `things` are known already, and
    no list is needed; `within` is the server that they are inside of; `inner_fields` are what the names of some of them
    do not say.
    """

    config: str
    patterns: tuple[str, ...]
    namespace: str | None
    server: Server
    kind: str = ""
    as_claims: bool = False
    composition: str = ""
    inside: tuple[str, ...] = ()
    policy: str = "Manage"
    password_secret: str = ""
    things: tuple[Thing, ...] = ()
    within: str = ""
    inner_fields: Mapping[Thing, Object] = field(default_factory=dict)


async def show(options: Options) -> list[Object]:
    """Return what was observed of each thing: kind, name, every field, and what its cloud says beside them.

    Raises CommandError for names that nothing has.
    """
    async with connected(options.server) as kube, _Look.begin(kube, options) as look:
        return await _side_by_side(look.shown(thing) for thing in look.things)


async def write(options: Options) -> list[Written]:
    """Return a file for each thing. Raises CommandError for names that nothing has, and where nothing serves a kind."""
    async with connected(options.server) as kube, _Look.begin(kube, options) as look:
        return await _side_by_side(look.written(thing) for thing in look.things)


async def migrate(options: Options, managed: Sequence[Managed]) -> tuple[list[Managed], list[Managed], list[Written]]:
    """Write what of another tool's things is in the cloud of a ProviderConfig; return those, the others, and the files.

    Raises CommandError where nothing is.
    """
    async with connected(options.server) as kube:
        configs = await provider_configs(kube, options.config)
        cloud = configs[0][0].group.removesuffix(names.GROUP_SUFFIX)
        here = [item for item in managed if item.cloud == cloud]
        if not here:
            raise CommandError(
                f"nothing in it is of {cloud}, the cloud of {options.config}", exit_code=Exit.INVALID_INPUT
            )
        async with _Look.begin(kube, _of_managed(options, here)) as look:
            files = await _side_by_side(look.written(thing) for thing in look.things)
    return here, [item for item in managed if item.cloud != cloud], files


def _of_managed(options: Options, managed: Sequence[Managed]) -> Options:
    things = tuple(item.thing for item in managed)
    return replace(options, things=things, inner_fields={item.thing: dict(item.fields) for item in managed})


@dataclass(frozen=True, slots=True)
class _Look:
    """What is read once for all things of one ProviderConfig."""

    followed: Followed
    options: Options
    config: str
    group: str
    namespace: str
    kinds: Catalog
    candidates: tuple[Candidate, ...]
    things: tuple[Thing, ...]

    @classmethod
    @asynccontextmanager
    async def begin(cls, kube: Kube, options: Options) -> AsyncIterator[_Look]:
        configs = await provider_configs(kube, options.config)
        if len(configs) != 1:
            raise CommandError("name one ProviderConfig, as onprempc/default", exit_code=Exit.USAGE)
        resource, key = configs[0]
        things = options.things or _chosen(await unmanaged(kube, resource, key, _search(options)), options)
        kinds = catalog([crd async for crd in every_object(kube, CRDS)])
        served = await candidates(kube, options.composition) if options.as_claims else ()
        namespace = options.namespace or current_namespace(options.server)
        resources = {kinds[f"{thing.kind}.{resource.group}"].resource for thing in things}
        async with Followed.begin(kube, [(kind, namespace) for kind in resources]) as followed:
            yield cls(followed, options, key.name, resource.group, namespace, kinds, served, things)

    async def shown(self, thing: Thing) -> Object:
        """Look at one thing."""
        resource, kind_schema = self._kind(thing)
        async with observed(self.followed, resource, self.config, thing, self.namespace) as obj:
            status = status_of(obj)
            rest = {name: status[name] for name in ("atProvider", "drift", "adoption") if status.get(name)}
            fields = observed_fields(obj, thing, kind_schema)
            return {"kind": thing.kind, "name": thing.name, "forProvider": fields, **rest}

    async def written(self, thing: Thing) -> Written:
        """Look at one thing, and write its file."""
        resource, kind_schema = self._kind(thing)
        policy, remarks = self.options.policy, tuple[str, ...]()
        fields, lacking = _of_its_name(resource, thing, self.options.inner_fields.get(thing) or {})
        if lacking:
            policy = "Observe"
            remarks = (f"{thing.kind} {thing.name}: only observed until {', '.join(lacking)} is set in its file",)
        if not fields:
            async with observed(self.followed, resource, self.config, thing, self.namespace) as obj:
                fields = observed_fields(obj, thing, kind_schema)
        if not self.options.as_claims:
            secret = self.options.password_secret if "passwordSecretRef" in _properties(kind_schema) else ""
            place = (resource, self.config, thing, self.namespace, fields)
            return file_of(managed_resource(*place, policy=policy, password_secret=secret), remarks)
        claims = self.kinds[_CLAIM]
        wanted = Wanted(
            resource, thing, self.namespace, fields, _inside(self.options.inside), self.options.password_secret
        )
        fit = best_fit(wanted, self.candidates, claims.resource, claims.schema or {})
        if fit is None:
            text = f"no Composition makes one {thing.kind} of a claim; leave out --claim for a managed resource"
            raise CommandError(f"{thing.kind} {thing.name}: {text}", exit_code=Exit.INVALID_INPUT)
        return file_of(fit.claim, tuple(remarks_on(fit)))

    def _kind(self, thing: Thing) -> tuple[Resource, Object]:
        facts = self.kinds[f"{thing.kind}.{self.group}"]
        return facts.resource, dict(facts.schema or {})


async def _side_by_side(coroutines: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """Carry coroutines out, a few at a time; the first that fails ends them all."""
    room = asyncio.Semaphore(_MOST_AT_ONCE)

    async def carried_out(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        async with room:
            return await coroutine

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(carried_out(coroutine)) for coroutine in coroutines]
    return [task.result() for task in tasks]


def _of_its_name(resource: Resource, thing: Thing, others: Object) -> tuple[Object, tuple[str, ...]]:
    """Return the fields that the name of what is inside of a server says, and those that are lacking; else nothing.

    Nobody looks into a server before it is adopted; then what there is shows in the preview.
    """
    kind = kind_of(resource)
    fields = {} if kind is None else dict(kind.naming.fields(thing.name))
    if kind is None or fields.keys().isdisjoint({"server", "instance"}):
        return {}, ()
    fields |= others
    only_observed = {"spec": {"managementPolicy": "Observe", "forProvider": fields}}
    return fields, missing(envelope_of(only_observed, kind.spec_type).for_provider)


def _properties(kind_schema: Object) -> Object:
    properties: Object = (schema.step(kind_schema, "spec") or {}).get("properties") or {}
    return properties


def _search(options: Options) -> Search:
    return Search(options.patterns[0] if len(options.patterns) == 1 else "*", within=options.within)


def _chosen(there: Unmanaged, options: Options) -> tuple[Thing, ...]:
    """Return the things that a person named. Raises CommandError for a name that nothing has, or several kinds have."""
    chosen: dict[Thing, None] = {}
    for pattern in options.patterns:
        matching = [
            thing
            for thing in there.things
            if thing.is_called(pattern) and options.kind.lower() in {"", thing.kind.lower()}
        ]
        if not matching:
            more = "" if there.complete else ", and not every list was whole"
            text = f"{there.config} has nothing called {pattern} that no resource names{more}; `fairlead import find`"
            raise CommandError(f"{text} lists what it has", exit_code=Exit.INVALID_INPUT)
        chosen |= dict.fromkeys(matching)
    return tuple(chosen)


def _inside(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return `RESOURCE=NAME` pairs as they were typed. Raises CommandError."""
    split = [pair.partition("=") for pair in pairs]
    for resource, is_pair, name in split:
        if not (resource and is_pair and name):
            raise CommandError(f"--inside {resource}{is_pair}{name} is not RESOURCE=NAME", exit_code=Exit.USAGE)
    return {resource: name for resource, _, name in split}


def remarks_on(fit: Fit) -> Iterable[str]:
    """Yield what is to be said of a claim that was chosen."""
    name = metadata(fit.claim)["name"]
    if not fit.differences:
        yield f"{name}: Composition {fit.composition} would change nothing of it"
    for difference in fit.differences:
        yield f"{name}: Composition {fit.composition} would have {difference}"
    for resource, kind in fit.made:
        yield f"{name}: a new {kind} would be made; where there is one: --inside {resource}=NAME"


def file_of(obj: Object, remarks: tuple[str, ...] = ()) -> Written:
    """Return the file of an object."""
    return Written(f"{metadata(obj)['name']}.yaml", dump(obj), remarks)
