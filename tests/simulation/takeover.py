"""A platform team that takes over what somebody made by hand, beside an application that goes on."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from devcloud.gcp.server import PROJECT
from fairlead.account_lists import Search
from fairlead.assets import assets
from fairlead.exits import Exit
from fairlead.imports import agreeing, unmanaged, writing
from fairlead.imports.thing import Thing
from fairlead.kube_options import USUAL
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.cloud_sql import ALICE
from fairlead.simulation.onprem import SERVER
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from providers.external.sql.scram import verifier
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, Resource, key_of, uid_of, version_of
from tests.simulation.history import PERSON, TEAM

PASSWORD: Final = "Of-before-1-long"
CONFIG: Final = "providerconfig/default"
ENOUGH_S: Final = 1800.0


@dataclass(frozen=True, slots=True)
class HandMade:
    """What somebody made in a cloud: how it is called there, and by which login and database an application uses it."""

    name: str
    user: str
    database: str


HAND_MADE: Final = {
    "aws": HandMade("shop-prod", "shop_app", "shop"),
    "gcp": HandMade("shop-prod", "shop_app", "shop"),
    "azure": HandMade("databases/shop-prod", "shop_app", "shop"),
    "onprem": HandMade("shop", "shop_app", "shop"),
}


async def _by_hand(cloud: str, there: Any) -> None:
    """Make it as a person does in that cloud."""
    if cloud == "aws":
        there.ask("CreateDBInstance", DBInstanceIdentifier="shop-prod", DBInstanceClass="db.m7g.large",
                  Engine="postgres", EngineVersion="16.9", AllocatedStorage=100, MasterUsername="shop_app",
                  MasterUserPassword=PASSWORD, DBName="shop", BackupRetentionPeriod=14,
                  Tags=[{"Key": "costs", "Value": "77"}])  # fmt: skip
    elif cloud == "gcp":
        settings = {"tier": "db-custom-2-8192", "edition": "ENTERPRISE", "userLabels": {"costs": "77"}}
        body = {"name": "shop-prod", "region": "europe-west1", "databaseVersion": "POSTGRES_16", "settings": settings}
        for path, content in (
            ("instances", body),
            ("instances/shop-prod/databases", {"name": "shop"}),
            ("instances/shop-prod/users", {"name": "shop_app", "password": PASSWORD}),
        ):
            there.ask(ALICE, "POST", f"v1/projects/{PROJECT}/{path}", (), content)
            await asyncio.sleep(ENOUGH_S)
    elif cloud == "azure":
        properties = {"version": "16", "administratorLogin": "shop_app", "administratorLoginPassword": PASSWORD,
                      "storage": {"storageSizeGB": 64}, "backup": {"backupRetentionDays": 14}}  # fmt: skip
        sku = {"name": "Standard_D2ds_v5", "tier": "GeneralPurpose"}
        body = {"location": "westeurope", "tags": {"costs": "77"}, "sku": sku, "properties": properties}
        path = "/providers/Microsoft.DBforPostgreSQL/flexibleServers/shop-prod"
        there.ask("PUT", path, body)
        await asyncio.sleep(ENOUGH_S)
        there.ask("PUT", f"{path}/databases/shop", {"properties": {}})
    else:
        on_the_server(there, "shop")
    await asyncio.sleep(ENOUGH_S)


def on_the_server(there: Any, name: str) -> None:
    for statement in (
        f"CREATE ROLE {name}_app LOGIN PASSWORD '{verifier(PASSWORD, b'salt of a person')}'",
        f"CREATE ROLE {name}_owner",
        f"GRANT {name}_owner TO fairlead_admin",
        f"CREATE DATABASE {name} OWNER {name}_owner",
        f"GRANT CONNECT ON DATABASE {name} TO {name}_app",
    ):
        there.ask(statement)


@dataclass
class Team:
    """A platform team at its command line, beside an application that logs in every five seconds."""

    platform: Platform
    hand_made: HandMade
    namespaces: tuple[str, ...] = ()
    logins: int = 0
    refused: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self, cloud: str) -> None:
        """Start the processes, make what is to be taken over, and let its application log in."""
        self.platform.install((TEAM, *self.namespaces), objects_in(assets("compositions"), f"postgres-{cloud}.yaml"))
        password = base64.b64encode(PASSWORD.encode()).decode()
        meta = {"name": "of-before", "namespace": TEAM}
        self.platform.server.put(
            SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"password": password}}
        )
        self.tasks += self.platform.background()
        for process in self.platform.names:
            await self.platform.start(process)
        await _by_hand(cloud, self.platform.cloud)
        self.tasks.append(asyncio.create_task(self._log_in()))

    async def end(self) -> None:
        """End all."""
        self.platform.check()
        for process in tuple(self.platform.processes):
            await self.platform.kill(process)
        for task in self.tasks:
            task.cancel()

    async def _log_in(self) -> None:
        server, application = self.hand_made.name.rpartition("/")[2], self.hand_made
        server = SERVER if self.platform.description.name == "onprem" else server
        while True:
            is_in = self.platform.cloud.admits(server, application.user, PASSWORD, application.database)
            self.logins, self.refused = self.logins + 1, self.refused + (not is_in)
            await asyncio.sleep(5)

    async def apply(self, text: str) -> tuple[Resource, Key]:
        """Create what a file has, as kubectl does."""
        obj = YAML(typ="safe", pure=True).load(text)
        kinds = (CLAIMS, *self.platform.description.resources)
        resource = next(kind for kind in kinds if kind.kind == obj["kind"])
        await self.platform.server.create(resource, obj, manager=PERSON)
        return resource, key_of(obj)

    async def delete(self, reference: str, namespace: str) -> None:
        """Delete a managed resource, as kubectl does."""
        kind, name = reference.split("/")
        resource = next(kinds for kinds in self.platform.description.resources if kinds.kind.lower() == kind)
        obj = self.object(resource, Key(namespace, name))
        await self.platform.server.delete(resource, key_of(obj), uid=uid_of(obj), resource_version=version_of(obj))
        await asyncio.sleep(ENOUGH_S)

    async def left_and_found(self, claim: Key, policy: str) -> tuple[Thing, ...]:
        """Delete a claim; return what `import find` says that it left."""
        edit = [{"op": "replace", "path": "/spec/deletionPolicy", "value": policy}]
        await self.platform.server.json_patch(CLAIMS, claim, edit, manager=PERSON)
        await asyncio.sleep(ENOUGH_S)
        obj = self.object(CLAIMS, claim)
        await self.platform.server.delete(CLAIMS, claim, uid=uid_of(obj), resource_version=version_of(obj))
        await asyncio.sleep(ENOUGH_S)
        (account,) = await unmanaged.find(CONFIG, Search(), USUAL)
        assert all(former.startswith(str(claim)) for former in account.former.values()), account
        return tuple(thing for thing in account.things if f"{thing.kind}/{thing.name}" in account.former)

    async def adopted(self, thing: Thing, secret: str) -> Object:
        """Write the resource of one thing, and adopt it; return it as it is then."""
        options = writing.Options(CONFIG, (thing.name,), TEAM, USUAL, kind=thing.kind, password_secret=secret)
        (written,) = await writing.write(options)
        resource, key = await self.apply(written.text)
        await asyncio.sleep(ENOUGH_S)
        (preview,) = await agreeing.previews([f"{resource.kind.lower()}/{key.name}"], TEAM, USUAL)
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        assert adopted.exit is Exit.DONE, adopted
        await asyncio.sleep(ENOUGH_S)
        return self.object(resource, key)

    def object(self, resource: Resource, key: Key) -> Object:
        """Return an object as it is."""
        return self.platform.server.all_of(resource)[key]

    def changes(self, *of: str) -> list[str]:
        """Return what was changed in the cloud so far, of some kinds of things or of all."""
        calls = [call for call in self.platform.cloud.history if not of or call.action.partition(".")[0] in of]
        return [f"{call.principal} {call.action}" for call in calls]


def team_of(cloud: str, monkeypatch: pytest.MonkeyPatch) -> Team:
    description = clouds.described(cloud)
    description = replace(description, config={**description.config, "allowAdoption": True})
    platform = Platform(f"import {cloud}", virtual_time.Trace(), description)

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield platform.server

    for module in (unmanaged, writing, agreeing):
        monkeypatch.setattr(module, "connected", connect)
    return Team(platform, HAND_MADE[cloud])
