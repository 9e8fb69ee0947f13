"""Google Cloud, as a life has it: its provider, the simulated Cloud SQL, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.gcp.server import PROJECT
from devcloud.gcp.state.extensions import environment
from fairlead.simulation.cloud_sql import CloudSql, connector
from fairlead.simulation.clouds import CloudDescription
from providers.gcp import PROVIDER

_INSTANCES, _DATABASES, _USERS = (kind.resource for kind in PROVIDER.kinds)


CLOUD: Final = CloudDescription(
    name="gcp",
    provider=PROVIDER,
    roles={_INSTANCES: "servers", _DATABASES: "databases", _USERS: "logins"},
    login=_USERS,
    config={
        "project": PROJECT,
        "credentials": {"source": "MetadataServer"},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
    },
    secrets={},
    place={"region": "europe-west1", "privateNetwork": "projects/p/global/networks/n", **environment()},
    place_of=lambda _resource, external: external,
    server_at=lambda host: host.rpartition(":")[2],
    new=CloudSql,
    connector=connector,
)
