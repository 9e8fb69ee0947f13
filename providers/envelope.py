"""The part of a managed resource's spec that all clouds share, beside `forProvider`. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class ConfigReference(msgspec.Struct, frozen=True, rename="camel"):
    """Which ProviderConfig serves the resource."""

    name: str


class Maintenance(msgspec.Struct, frozen=True, rename="camel"):
    """When an edit that restarts or locks out is carried out."""

    apply: Literal["Window", "Immediate"] = "Window"


class KeyReference(msgspec.Struct, frozen=True, rename="camel"):
    """A key of a Secret in the resource's own namespace."""

    name: str
    key: str


class Rotation(msgspec.Struct, frozen=True, rename="camel"):
    """A token that rotates the password when it changes."""

    token: str | None = None


class Envelope(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How a provider may act on a resource; a cloud's spec gives `for_provider` its own type."""

    for_provider: Any
    provider_config_ref: ConfigReference = ConfigReference("default")
    management_policy: Literal["Manage", "Observe"] = "Manage"
    deletion_policy: Literal["Orphan", "Snapshot", "Delete"] = "Orphan"
    drift_policy: Literal["Window", "Correct"] = "Window"
    maintenance: Maintenance = Maintenance()
    ignore_fields: tuple[str, ...] = ()
    password_secret_ref: KeyReference | None = None
    password_rotation: Rotation = Rotation()
