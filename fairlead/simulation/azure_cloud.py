"""Azure, as a life has it: its provider, the simulated ARM, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.azure.entra.directory import SUBSCRIPTION
from devcloud.azure.platform import ENVIRONMENT
from fairlead.simulation.arm import CREDENTIALS, Azure
from fairlead.simulation.arm_transport import connector
from fairlead.simulation.clouds import CloudDescription
from providers.azure import PROVIDER

_SERVERS, _DATABASES, _RULES, _CONFIGURATIONS = (kind.resource for kind in PROVIDER.kinds)
_SECRET: Final = "azure-client"


CLOUD: Final = CloudDescription(
    name="azure",
    provider=PROVIDER,
    roles={_SERVERS: "servers", _DATABASES: "databases", _RULES: "rules", _CONFIGURATIONS: "settings"},
    login=_SERVERS,
    config={
        "subscriptionID": SUBSCRIPTION,
        "credentials": {"source": "ClientSecret", "secretRef": {"name": _SECRET}},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
    },
    secrets={_SECRET: CREDENTIALS},
    place=ENVIRONMENT,
    place_of=lambda _resource, external: external.partition("/")[2],
    server_at=lambda host: host.partition(".")[0].removeprefix("db-"),
    new=Azure,
    connector=connector,
)
