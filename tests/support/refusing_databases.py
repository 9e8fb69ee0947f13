"""Databases of a simulated cloud that nothing upgrades to PostgreSQL 18."""

from __future__ import annotations

from devcloud.errors import DevcloudError
from devcloud.simulator.dataplane import NoDatabases


class RefusingDatabases(NoDatabases):
    """Nothing behind the instances, but for the refusal of that version."""

    async def upgrade(self, resource_id: str, version: str) -> None:
        """Refuse PostgreSQL 18, as pg_upgrade does where an extension is missing there."""
        if version.partition(".")[0] == "18":
            raise DevcloudError(f"{resource_id}: pg_upgrade failed")
