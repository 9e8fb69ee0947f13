"""What the ProviderConfigs of all clouds have in common, as Python sees it; a cloud adds its own beside it. Pure."""

from __future__ import annotations

import msgspec

from runtime.objects import Object, key_of


class SecretReference(msgspec.Struct, frozen=True, rename="camel"):
    """A Secret in the provider's own namespace."""

    name: str


class CaReference(msgspec.Struct, frozen=True, rename="camel"):
    """A key of a Secret in the provider's own namespace."""

    name: str
    key: str = "ca.crt"


class Selector(msgspec.Struct, frozen=True, rename="camel"):
    """Labels that a namespace must carry."""

    match_labels: dict[str, str] = {}


class AllowedNamespaces(msgspec.Struct, frozen=True, rename="camel"):
    """Who may use a ProviderConfig; neither means nobody."""

    names: tuple[str, ...] = ()
    selector: Selector | None = None


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """Bounds checked before a database is made or destroyed; None is no bound."""

    instances: int | None = None
    per_namespace: int | None = None
    creates_per_hour: int | None = None
    destroys_per_hour: int | None = None


class InstanceLimits(Limits, frozen=True, kw_only=True, rename="camel"):
    """Bounds of a cloud where each database is a server of its own: checked before one is made, grown or destroyed."""

    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    classes: tuple[str, ...] | None = None
    public_access: bool = False


def limit_refusal(
    limits: InstanceLimits, *, instance_class: str, storage_gib: int | None, publicly_accessible: bool
) -> tuple[str, str] | None:
    """Return reason and sentence when an instance is outside of what the ProviderConfig allows.

    `storage_gib` is the largest that the instance may become, what the cloud grows by itself included; None is unknown.
    """
    if limits.classes is not None and instance_class not in limits.classes:
        offered = ", ".join(limits.classes) or "none"
        return "LimitReached", f"class {instance_class} is not offered here, only {offered}; ask the platform team"
    if limits.storage_gib is not None and (storage_gib or 0) > limits.storage_gib:
        return "LimitReached", (
            f"at most {limits.storage_gib} GiB of storage are allowed for an instance, not {storage_gib};"
            " ask the platform team"
        )
    if publicly_accessible and not limits.public_access:
        return "LimitReached", "an address on the internet is not allowed here; ask the platform team"
    return None


def allowed(spec: Object, namespace: str, labels: dict[str, str]) -> bool:
    """Return whether a ProviderConfig's allowedNamespaces holds this namespace; unset it allows nobody."""
    rule = spec.get("allowedNamespaces") or {}
    if namespace in (rule.get("names") or ()):
        return True
    selector = rule.get("selector")
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def refuse_namespace(config: Object, namespace: str, labels: dict[str, str]) -> str:
    """Return why a namespace may not use a ProviderConfig, as if there were none; empty when it may."""
    if allowed(config.get("spec") or {}, namespace, labels):
        return ""
    return f"there is no ProviderConfig {key_of(config).name} that this namespace may use"
