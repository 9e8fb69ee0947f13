"""What the ProviderConfigs of all clouds have in common, as Python sees it; a cloud adds its own beside it. Pure."""

from __future__ import annotations

import msgspec


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
