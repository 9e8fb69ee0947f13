"""The part of a managed resource's spec that all clouds share, apart from `forProvider`. Pure."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from apis.teardown import DeletionPolicy


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
    """A token that rotates the password when it changes; `force` waits for no grace and leaves hardly any."""

    token: str | None = None
    force: bool = False


class Envelope(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How a provider may act on a resource; a cloud's spec gives `for_provider` its own type."""

    for_provider: Any
    provider_config_ref: ConfigReference = ConfigReference("default")
    management_policy: Literal["Manage", "Observe"] = "Manage"
    deletion_policy: DeletionPolicy = "Orphan"
    drift_policy: Literal["Window", "Correct"] = "Window"
    maintenance: Maintenance = Maintenance()
    ignore_fields: tuple[str, ...] = ()
    # What nobody logs in to has no password; a DatabaseEnvelope has fields instead.
    password_secret_ref: ClassVar[KeyReference | None] = None
    password_rotation: ClassVar[Rotation] = Rotation()


class DatabaseEnvelope(Envelope, frozen=True, rename="camel", kw_only=True):
    """The envelope of what people log in to."""

    password_secret_ref: KeyReference | None = None  # type: ignore[misc]  # a field where others have a constant
    password_rotation: Rotation = Rotation()  # type: ignore[misc]  # as above
