"""Which resource a person's word means: ours, a kind of claim of one's own, another operator's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from apis import names
from composer.render.errors import near
from fairlead.exits import CommandError
from runtime.errors import ApiError, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import Resource, loads

_BUILT_IN = ".k8s.io"


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A resource, and the words that mean it: plural, singular, kind and short names in lower case."""

    resource: Resource
    words: frozenset[str]

    @property
    def full_name(self) -> str:
        """The plural with its group, which no other resource has."""
        return f"{self.resource.plural}.{self.resource.group}"


class Discovery:
    """What the API server serves, asked once per group and version.

    Source: Kubernetes API concepts, "API Discovery" (unaggregated).
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._served: dict[str, tuple[ServedKind, ...]] = {}

    async def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of one kind, None when it is not served."""
        return next((served.resource for served in await self._of(api_version) if served.resource.kind == kind), None)

    async def resource_named(self, word: str) -> Resource:
        """Return the resource that a person means: kind, plural, singular or short name in any case, or NAME.GROUP.

        Our kinds go first, then the kinds of claim that Compositions name, then those of other operators.

        Raises CommandError that lists what there is, or the groups that have a kind of that name.
        """
        name, _, group = word.lower().partition(".")
        versions = await self._versions()
        ours = await self._all_of(version for api_group, version in versions.items() if _is_ours(api_group))
        if not group and (matching := _meant(name, ours)):
            return matching[0].resource
        own = await self._claim_kinds()
        if group:
            matching = _meant(
                name, await self._all_of(version for api_group, version in versions.items() if api_group == group)
            )
        else:
            foreign = (version for api_group, version in versions.items() if _is_foreign(api_group))
            matching = _meant(name, own) or _meant(name, await self._all_of(foreign))
        if len(matching) == 1:
            return matching[0].resource
        if matching:
            which = " and ".join(sorted(match.full_name for match in matching))
            raise CommandError(f'"{word}" may be {which}: name it with its group')
        raise CommandError(_unknown(word, ours, own))

    async def managed_kinds(self) -> list[Resource]:
        """Return the kinds of managed resources that are served: those of the providers' groups."""
        versions = await self._versions()
        kinds = await self._all_of(version for group, version in versions.items() if names.is_managed(group))
        return [kind.resource for kind in kinds if kind.resource.namespaced]

    async def claim_kinds(self) -> list[Resource]:
        """Return the kinds of claim that are served: those that are shipped, and those that Compositions name."""
        versions = await self._versions()
        shipped = await self._all_of(version for group, version in versions.items() if group in names.CLAIM_GROUPS)
        return [kind.resource for kind in (*shipped, *await self._claim_kinds())]

    async def config_kinds(self) -> list[Resource]:
        """Return the ProviderConfigs that are served, of each provider's group one."""
        versions = await self._versions()
        kinds = await self._all_of(version for group, version in versions.items() if names.is_managed(group))
        return [kind.resource for kind in kinds if kind.resource.kind == "ProviderConfig"]

    async def _versions(self) -> Mapping[str, str]:
        groups = loads(await self._kube.raw("GET", "/apis"))["groups"]
        return {group["name"]: group["preferredVersion"]["groupVersion"] for group in groups}

    async def _all_of(self, api_versions: Iterable[str]) -> list[ServedKind]:
        return [kind for api_version in api_versions for kind in await self._of(api_version)]

    async def _claim_kinds(self) -> list[ServedKind]:
        """Return the kinds of claim that are not ours, by the Compositions; none where these may not be listed."""
        types: set[tuple[str, str]] = set()
        with suppress(ApiError):
            page = await self._kube.list_page(names.COMPOSITIONS, Selection())
            named = ((loads(item).get("spec") or {}).get("compositeTypeRef") or {} for item in page.items)
            types = {(str(reference.get("apiVersion")), str(reference.get("kind"))) for reference in named}
        return [
            served
            for api_version, kind in sorted(types)
            if not _is_ours(api_version.partition("/")[0])
            for served in await self._of(api_version)
            if served.resource.kind == kind
        ]

    async def _of(self, api_version: str) -> tuple[ServedKind, ...]:
        if api_version not in self._served:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                listed = loads(await self._kube.raw("GET", path))["resources"]
            except NotFound:
                listed = []
            self._served[api_version] = tuple(_served(api_version, item) for item in listed if "/" not in item["name"])
        return self._served[api_version]


def _is_ours(group: str) -> bool:
    return names.is_own_group(group)


def _is_foreign(group: str) -> bool:
    """Whether a group is another operator's: neither ours nor Kubernetes' own."""
    return "." in group and not group.endswith(_BUILT_IN) and not _is_ours(group)


def _meant(name: str, kinds: Iterable[ServedKind]) -> list[ServedKind]:
    return [kind for kind in kinds if name in kind.words]


def _served(api_version: str, item: Mapping[str, Any]) -> ServedKind:
    group, _, version = api_version.rpartition("/")
    resource = Resource(group, version, item["kind"], item["name"], namespaced=item["namespaced"])
    words = {item["name"], item.get("singularName", ""), item["kind"].lower(), *item.get("shortNames", ())}
    return ServedKind(resource, frozenset(words - {""}))


def _unknown(word: str, ours: Iterable[ServedKind], own: Iterable[ServedKind]) -> str:
    ours, own = tuple(ours), tuple(own)
    words = {word for kind in (*ours, *own) for word in kind.words}
    names = sorted({our.resource.plural for our in ours} | {kind.full_name for kind in own})
    listed = ", ".join(names) or "none; is Fairlead installed there?"
    return f'the API server serves no kind "{word}" of Fairlead{near(word.lower(), words)}; it serves: {listed}'
