"""What only Azure's provider understands about a server that it observed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.azure.servers.states import Window
from providers.external.sql.alternating import Roles

DEFAULT_DATABASE = "postgres"
"""The database that every server has."""
STORAGE_SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4095, 4096, 8192, 16384, 32767)
"""Sizes of Premium SSD in GiB that a server may have ("Storage options", and recorded capabilities)."""
PREMIUM_V2 = "premiumv2_lrs"
_LEAST_TIERS = dict(zip(STORAGE_SIZES, (4, 6, 10, 15, 20, 30, 40, 50, 50, 60, 70, 80), strict=True))
"""The performance tier of each size, below which Azure lets no server go ("Premium SSD", baselines)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One answer about a server, apart from what the spec has; `tags` are all of its tags as ARM spells them.

    `roles` is what a session as the administrator saw, None where there was none; `administrator_refused` that the
    server refuses the password that the provider alone knows; `database_missing` that the application's database was
    not there, so that nothing is known of rights in it; `rights_awaited` that it came a moment ago, without any.
    `restart_for` are configurations that take effect with a restart alone, `is_new` that nobody uses the server yet.
    """

    id: str
    state: str
    location: str
    host: str
    version: str
    minor_version: str
    storage_gib: int
    storage_type: str
    public: bool
    injected: bool
    encrypted_by_key: bool
    window: Window | None
    tags: Mapping[str, str] = field(default_factory=dict)
    roles: Roles | None = None
    administrator_refused: bool = False
    database_missing: bool = False
    rights_awaited: bool = False
    restart_for: tuple[str, ...] = ()
    is_new: bool = False


def next_size(wanted: int) -> int:
    """Return the smallest size of Premium SSD that holds so many GiB, the largest where none does."""
    return next((size for size in STORAGE_SIZES if size >= wanted), STORAGE_SIZES[-1])


def is_a_size(wanted: int, storage_type: str | None) -> bool:
    """Return whether Azure makes storage of this size; Premium SSD v2 has any."""
    return (storage_type or "").lower() == PREMIUM_V2 or wanted in STORAGE_SIZES


def at_least_tier(wanted: str, gib: int) -> str:
    """Return a performance tier, or that of storage of so many GiB where it is higher."""
    least = _LEAST_TIERS[next_size(gib)]
    return f"P{least}" if wanted[1:].isdigit() and int(wanted[1:]) < least else wanted
