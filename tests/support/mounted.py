"""The connection Secret of a new on-prem database as files, as an application's volume has them."""

from __future__ import annotations

from pathlib import Path

from apis.connection import Connection
from composer.connection.secret import SecretTarget, entries, of_contract, published, wanted
from devcloud.onprem import OnPremServer
from providers.onprem.client import OnPremCloud
from runtime.objects import Key
from tests.composer.factories import claim
from tests.postgres.conftest import FENCE, Where, credential


async def mount(cloud: OnPremCloud, server: OnPremServer, where: Where, folder: Path) -> Path:
    """Make the database and write its Secret's keys into `folder`/db, which is returned."""
    await cloud.create(where, credential(where), FENCE)
    connection = {
        "host": server.host,
        "port": server.port,
        "database": where.name,
        "username": where.active,
        "sslmode": "verify-full",
        "passwordRef": {"name": "kept", "key": "current", "hash": "h"},
        "caRef": {"name": "kept", "key": "ca"},
    }
    child = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "PostgresDatabase",
        "metadata": {"name": "orders-database"},
        "status": {"connection": connection},
    }
    reported = published(child)
    assert isinstance(reported, Connection)
    secretly = SecretTarget(Key("shop", "orders-connection"), "claim-uid", owned=True)
    want = wanted(claim(), {"from": "database"}, child, of_contract(reported), secretly)
    kept = {"password": credential(where).password, "certificates": server.authority_pem.decode()}
    mounted = folder / "db"
    mounted.mkdir()
    for name, value in entries(want, kept).items():
        (mounted / name).write_text(value)
    return mounted
