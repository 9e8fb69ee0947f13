"""The platform team's own server, as a life has it: the on-prem provider, a PostgreSQL in memory, and its superuser."""

from __future__ import annotations

from typing import Final

from fairlead.simulation.clouds import CloudDescription
from fairlead.simulation.onprem import CONFIG, HOST, SECRET, SERVER, OnPrem
from providers.onprem import DATABASES, PROVIDER

CLOUD: Final = CloudDescription(
    name="onprem",
    provider=PROVIDER,
    roles={DATABASES.resource: "databases"},
    login=DATABASES.resource,
    config={**CONFIG, "allowedNamespaces": {"selector": {}}},
    secrets={"onprem-admin": SECRET},
    place={},
    place_of=lambda _resource, external: f"{SERVER}/{external}" if external else "",
    server_at=lambda host: SERVER if host == HOST else "",
    new=OnPrem,
    connector=OnPrem.connector,
)
