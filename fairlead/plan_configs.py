"""What edited ProviderConfigs do to the resources that they serve, by the provider's own decision on each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from apis import names
from fairlead.cluster import every_object
from fairlead.edits import Edits
from fairlead.plan_clouds import CloudChange, Clouds, cloud_changes, config_place, kind_of, provider_of
from fairlead.plan_diff import Change, ClaimPlan
from fairlead.yaml_files import Document, invalid
from providers.external.provider import decode_config
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube
from runtime.objects import NAMESPACES, Key, Object, Resource, annotations_of, deleting, key_of, status_of

# What the API server lets nobody change while a ProviderConfig is in use, as its CRD says.
FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("region", "accountID"),
    "azure": ("subscriptionID", "cloud"),
    "gcp": ("project",),
    "onprem": ("host", "port", "database"),
}
# What may be set once it was not.
_ONCE: Final = frozenset({"accountID"})
# What a provider alone can say: it connects by these, and its process allows addresses.
_BY_CONNECTING: Final = (
    "endpoint", "authority_host", "credentials", "admin_secret_ref", "ca_secret_ref", "ca_bundle", "ca_bundle_ref",
    "login_check", "logins",
)  # fmt: skip
_NOT_FORESEEN: Final = "what a connection by the new {fields} shows is not foreseen; what lives is not changed by it"
_ALLOWED: Final = CloudChange("in place", why="it is allowed again, and looked at")
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EditedConfig:
    """A ProviderConfig as it is, None where it is not there yet, and as it would be; `refusal` is the API server's."""

    before: Object | None
    after: Object
    refusal: str = ""


@dataclass(slots=True)
class ConfigEdits:
    """The edited ProviderConfigs, by group and name."""

    kube: Kube
    edited: dict[Place, EditedConfig] = field(default_factory=dict)
    _homes: dict[str, Object | None] = field(default_factory=dict)

    @classmethod
    async def read(cls, kube: Kube, edits: Edits) -> ConfigEdits:
        """Read the ProviderConfigs that live. Raises CommandError with the place where one cannot be."""
        edited = {place_of(document): await _edited(kube, document) for document in edits.configs}
        return cls(kube, edited)

    def configs(self) -> dict[Place, Object]:
        """Return the ProviderConfigs as they would be; what the API server refuses stays as it is."""
        accepted = {place: edit.after for place, edit in self.edited.items() if not edit.refusal}
        refused = {place: edit.before for place, edit in self.edited.items() if edit.refusal and edit.before}
        return {**accepted, **refused}

    async def added_to(self, plans: Sequence[ClaimPlan], namespace: str, clouds: Clouds) -> list[ClaimPlan]:
        """Return the plans with what the ProviderConfigs do to resources that they do not change yet."""
        added: list[ClaimPlan] = []
        for (group, name), edit in self.edited.items():
            title = f"ProviderConfig {group.partition('.')[0]}/{name}"
            if edit.refusal:
                added.append(ClaimPlan(title, "", (Change("block", "spec", why=edit.refusal),)))
                continue
            planned = {change.name for plan in plans for change in plan.changes if change.cloud}
            served = [item async for item in self._served(group, name, namespace)]
            unmade = frozenset(
                (resource.kind, key_of(obj).name)
                for resource, obj in served
                if names.EXTERNAL_NAME not in annotations_of(obj)
            )
            for resource, obj in served:
                if key_of(obj).name not in planned:
                    added += await self._of_resource(resource, obj, edit, replace(clouds, unmade=unmade), title)
        return merged(plans, added)

    async def _served(self, group: str, name: str, namespace: str) -> Any:
        provider = provider_of(group)
        for kind in () if provider is None else provider.kinds:
            try:
                async for item in every_object(self.kube, kind.resource, namespace):
                    obj = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **item}
                    if config_place(group, obj)[1] == name and not deleting(obj):
                        yield kind.resource, obj
            except NotFound:
                continue

    async def _of_resource(
        self, resource: Resource, obj: Object, edit: EditedConfig, clouds: Clouds, title: str
    ) -> Iterator[ClaimPlan]:
        namespace = key_of(obj).namespace
        if namespace not in self._homes:
            self._homes[namespace] = await _home(self.kube, namespace)
        effects = effects_on(resource, obj, edit, replace(clouds, home=self._homes[namespace]))
        if not effects:
            return iter(())
        annotations = annotations_of(obj)
        claim = f"{namespace}/{annotations.get(names.CLAIM_NAME) or key_of(obj).name}"
        change = Change("update", annotations.get(names.RESOURCE, ""), resource.kind, key_of(obj).name, cloud=effects)
        return iter((ClaimPlan(claim, title, (change,)),))


def place_of(document: Document) -> Place:
    """Return group and name of a ProviderConfig."""
    content = document.content
    return str(content["apiVersion"]).partition("/")[0], str(content["metadata"].get("name"))


async def _edited(kube: Kube, document: Document) -> EditedConfig:
    group, name = place_of(document)
    provider = provider_of(group)
    if provider is None:
        raise invalid(document.place("apiVersion"), f"{group} is the group of no provider")
    try:
        before: Object | None = await kube.get(provider.config_resource, Key("", name))
    except NotFound:
        before = None
    spec = document.content.get("spec") or {}
    try:
        decode_config(provider, spec)
    except msgspec.ValidationError as error:
        raise invalid(document.place("spec"), str(error)) from None
    after = {**(before or document.content), "spec": spec}
    return EditedConfig(before, after, refused_edit(provider.cloud, before, after))


def refused_edit(cloud: str, before: Object | None, after: Object) -> str:
    """Return why the API server refuses an edit of a ProviderConfig that is in use, empty where it does not."""
    if before is None or not status_of(before).get("inUse"):
        return ""
    former, present = before.get("spec") or {}, after.get("spec") or {}
    changed = [
        name
        for name in FIXED[cloud]
        if former.get(name) != present.get(name) and not (name in _ONCE and former.get(name) is None)
    ]
    if not changed:
        return ""
    text = " and ".join(changed)
    return f"the API server refuses it: {text}: fixed while resources use this ProviderConfig; make another one"


def effects_on(resource: Resource, obj: Object, edit: EditedConfig, clouds: Clouds) -> tuple[CloudChange, ...]:
    """Return all that becomes of a resource under an edited ProviderConfig, nothing where it is so before."""
    place = config_place(resource.group, obj)
    before, then = (
        () if config is None else cloud_changes(resource, obj, obj, replace(clouds, configs={place: config}))
        for config in (edit.before, edit.after)
    )
    connects = () if edit.before is None else _by_connecting(resource.group, edit.before, edit.after)
    if then == before:
        return tuple(connects)
    return (*(then or (_ALLOWED,)), *_by_unmade(resource, obj, clouds.unmade), *connects)


def _by_unmade(resource: Resource, obj: Object, unmade: Container[Place]) -> Iterator[CloudChange]:
    """Yield the fields that name what is not made yet, of which nothing can be said."""
    kind, spec = kind_of(resource), (obj.get("spec") or {}).get("forProvider") or {}
    for reference in () if kind is None else kind.references:
        name = str((spec.get(f"{reference.shown}Ref") or {}).get("name"))
        if (reference.resource.kind, name) in unmade:
            why = f"{reference.resource.kind} {name}, which it names, is not made yet"
            yield CloudChange("not known", path=reference.shown, why=why)


def _by_connecting(group: str, before: Object, after: Object) -> Iterator[CloudChange]:
    provider = provider_of(group)
    if provider is None:
        return
    former, present = (decode_config(provider, config.get("spec") or {}) for config in (before, after))
    changed = [name for name in _BY_CONNECTING if getattr(former, name, None) != getattr(present, name, None)]
    if changed:
        encoded = {of.name: of.encode_name for of in msgspec.structs.fields(provider.config_type)}
        yield CloudChange("not known", why=_NOT_FORESEEN.format(fields=", ".join(encoded[name] for name in changed)))


async def _home(kube: Kube, namespace: str) -> Object | None:
    try:
        return await kube.get(NAMESPACES, Key("", namespace))
    except (NotFound, Forbidden):
        return None


def merged(plans: Iterable[ClaimPlan], added: Iterable[ClaimPlan]) -> list[ClaimPlan]:
    """Return plans with the changes of others of the same claim after their own."""
    by_claim = {plan.claim: plan for plan in plans}
    for plan in added:
        own = by_claim.get(plan.claim)
        by_claim[plan.claim] = (
            plan if own is None else msgspec.structs.replace(own, changes=(*own.changes, *plan.changes))
        )
    return list(by_claim.values())
