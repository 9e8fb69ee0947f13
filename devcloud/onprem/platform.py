"""The platform team's PostgreSQL server as a part of `fairlead up`: open to every namespace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcloud import onprem
from devcloud.addresses import Lease
from devcloud.clouds import Cloud, RunningCloud
from devcloud.daemons import Lifetime
from devcloud.onprem import MAJOR, OnPremServer, Options
from devcloud.onprem.story import STORY
from devcloud.postgres.extensions import THERE, TRUSTED
from devcloud.programs import Program

_NAMESPACE = "fairlead-onprem"
_ADMIN_SECRET = "onprem-admin"  # noqa: S105 - a Secret's name


async def _start(folder: Path, lease: Lease) -> RunningCloud:
    options = Options(folder=folder, lifetime=Lifetime.DETACHED, durable=True, major=MAJOR)
    return _describe(folder, await onprem.start(options, lease))


def _find(folder: Path, octet: int) -> RunningCloud | None:
    server = onprem.server_in(folder, octet)
    return None if server is None else _describe(folder, server)


def _describe(folder: Path, server: OnPremServer) -> RunningCloud:
    return RunningCloud(
        says=f"on-prem: PostgreSQL {MAJOR} at {server.host}:{server.port} with TLS, ProviderConfig default",
        objects=_objects(server),
        logs={"postgres": server.server.log, "front": folder / "front.log"},
    )


def _objects(server: OnPremServer) -> tuple[Mapping[str, Any], ...]:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _ADMIN_SECRET, "namespace": _NAMESPACE},
        "stringData": {"username": server.username, "password": server.password, "host": server.host},
    }
    config = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "default"},
        "spec": {
            "host": server.host,
            "port": server.port,
            "database": server.database,
            "adminSecretRef": {"name": _ADMIN_SECRET},
            "caBundle": server.authority_pem.decode(),
            "extensions": sorted(TRUSTED & THERE[MAJOR]),
            "allowedNamespaces": {"selector": {}},
        },
    }
    return secret, config


CLOUD = Cloud(
    name="onprem",
    is_default=True,
    story=STORY,
    # A server on this machine answers at once: what happens to it is seen, and believed, sooner than a cloud's list.
    program=Program(
        "provider-onprem",
        ("providers", "onprem", "--sweep=2", "--grace=5"),
        _NAMESPACE,
        "fairlead-provider-onprem",
    ),
    start=_start,
    find=_find,
    stop=onprem.stop,
    erase=onprem.erase,
)
