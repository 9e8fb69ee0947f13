"""What somebody made by hand is taken over on every cloud: no call but the agreed ones, no login refused."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from ruamel.yaml import YAML

from devcloud.gcp.server import PROJECT
from fairlead.account_lists import Search
from fairlead.assets import assets
from fairlead.exits import Exit
from fairlead.imports import agreeing, migrating, unmanaged, writing
from fairlead.imports.thing import Thing
from fairlead.kube_options import USUAL
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.cloud_sql import ALICE
from fairlead.simulation.onprem import SERVER
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.yaml_files import objects_in
from providers.external.sql.scram import verifier
from runtime.conditions import find
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object, Resource, key_of, status_of, uid_of, version_of
from tests.simulation.history import PERSON, TEAM

pytestmark = pytest.mark.slow

PASSWORD: Final = "Of-before-1-long"
_CONFIG: Final = "providerconfig/default"
_ENOUGH_S: Final = 1800.0
_MANY: Final = 24
_PAGE: Final = 1_000
_OF_DATA: Final = ("servers", "databases")


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
            await asyncio.sleep(_ENOUGH_S)
    elif cloud == "azure":
        properties = {"version": "16", "administratorLogin": "shop_app", "administratorLoginPassword": PASSWORD,
                      "storage": {"storageSizeGB": 64}, "backup": {"backupRetentionDays": 14}}  # fmt: skip
        sku = {"name": "Standard_D2ds_v5", "tier": "GeneralPurpose"}
        body = {"location": "westeurope", "tags": {"costs": "77"}, "sku": sku, "properties": properties}
        path = "/providers/Microsoft.DBforPostgreSQL/flexibleServers/shop-prod"
        there.ask("PUT", path, body)
        await asyncio.sleep(_ENOUGH_S)
        there.ask("PUT", f"{path}/databases/shop", {"properties": {}})
    else:
        _on_the_server(there, "shop")
    await asyncio.sleep(_ENOUGH_S)


def _on_the_server(there: Any, name: str) -> None:
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
    logins: int = 0
    refused: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self, cloud: str) -> None:
        """Start the processes, make what is to be taken over, and let its application log in."""
        self.platform.install((TEAM,), objects_in(assets("compositions"), f"postgres-{cloud}.yaml"))
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

    async def left_and_found(self, claim: Key, policy: str) -> tuple[Thing, ...]:
        """Delete a claim; return what `import find` says that it left."""
        edit = [{"op": "replace", "path": "/spec/deletionPolicy", "value": policy}]
        await self.platform.server.json_patch(CLAIMS, claim, edit, manager=PERSON)
        await asyncio.sleep(_ENOUGH_S)
        obj = self.object(CLAIMS, claim)
        await self.platform.server.delete(CLAIMS, claim, uid=uid_of(obj), resource_version=version_of(obj))
        await asyncio.sleep(_ENOUGH_S)
        (account,) = await unmanaged.find(_CONFIG, Search(), USUAL)
        assert all(former.startswith(str(claim)) for former in account.former.values()), account
        return tuple(thing for thing in account.things if f"{thing.kind}/{thing.name}" in account.former)

    async def adopted(self, thing: Thing, secret: str) -> Object:
        """Write the resource of one thing, and adopt it; return it as it is then."""
        options = writing.Options(_CONFIG, (thing.name,), TEAM, USUAL, kind=thing.kind, password_secret=secret)
        (written,) = await writing.write(options)
        resource, key = await self.apply(written.text)
        await asyncio.sleep(_ENOUGH_S)
        (preview,) = await agreeing.previews([f"{resource.kind.lower()}/{key.name}"], TEAM, USUAL)
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        assert adopted.exit is Exit.DONE, adopted
        await asyncio.sleep(_ENOUGH_S)
        return self.object(resource, key)

    def object(self, resource: Resource, key: Key) -> Object:
        """Return an object as it is."""
        return self.platform.server.all_of(resource)[key]

    def changes(self, *of: str) -> list[str]:
        """Return what was changed in the cloud so far, of some kinds of things or of all."""
        calls = [call for call in self.platform.cloud.history if not of or call.action.partition(".")[0] in of]
        return [f"{call.principal} {call.action}" for call in calls]


def _team(cloud: str, monkeypatch: pytest.MonkeyPatch) -> Team:
    description = clouds.described(cloud)
    description = replace(description, config={**description.config, "allowAdoption": True})
    platform = Platform(f"import {cloud}", virtual_time.Trace(), description)

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield platform.server

    for module in (unmanaged, writing, agreeing):
        monkeypatch.setattr(module, "connected", connect)
    return Team(platform, HAND_MADE[cloud])


@pytest.mark.parametrize("cloud", clouds.NAMES)
def test_what_was_made_by_hand_is_managed_by_its_owners_tags_alone(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_time.run(f"import {cloud}", lambda: _managed(cloud, monkeypatch))


async def _managed(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    team = _team(cloud, monkeypatch)
    await team.begin(cloud)
    before = team.changes()
    tags = {} if cloud == "onprem" else {"costs": "77"}
    (account,) = await unmanaged.find(_CONFIG, Search(tags=tags), USUAL)
    (nothing,) = await unmanaged.find(_CONFIG, Search(tags={"costs": "78"}), USUAL)
    options = writing.Options(_CONFIG, ("shop*",), TEAM, USUAL, password_secret="" if cloud == "gcp" else "of-before")
    (shown,) = await writing.show(options)
    (written,) = await writing.write(options)
    resource, key = await team.apply(written.text)
    (preview,) = await agreeing.previews([], TEAM, USUAL)
    await asyncio.sleep(_ENOUGH_S)
    untouched = team.changes()
    wrong = await agreeing.adopt(agreeing.Request(preview.called, "0" * 16, None, TEAM, USUAL))
    (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
    await asyncio.sleep(_ENOUGH_S)
    obj = team.object(resource, key)
    await team.end()

    assert ([thing.name for thing in account.things], nothing.things) == ([team.hand_made.name], ())
    assert len(shown["forProvider"]) > 5
    assert untouched == before
    assert (wrong[0].exit, adopted.exit) == (Exit.REFUSED, Exit.DONE)
    # On premises a login of its own is made beside those that there are, which the preview says.
    assert (preview.total > 0) == (cloud == "onprem")
    assert team.changes()[len(before) :] == [f"provider {'databases' if cloud == 'onprem' else 'servers'}.change"]
    assert (find(obj, "Ready") or {})["status"] == "True", status_of(obj)["conditions"]
    assert not [entry for entry in status_of(obj).get("drift") or () if entry["action"] != "Tolerated"]
    assert (team.refused, team.logins > 500) == (0, True)


@pytest.mark.parametrize("cloud", ["aws", "azure", "onprem"])
def test_a_claim_takes_it_over_and_what_it_leaves_comes_back(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_time.run(f"import {cloud}", lambda: _claimed(cloud, monkeypatch))


async def _claimed(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    team = _team(cloud, monkeypatch)
    await team.begin(cloud)
    secret = "" if cloud == "onprem" else "of-before"
    inside = ("database=databases/shop-prod/shop",) if cloud == "azure" else ()
    options = writing.Options(_CONFIG, ("shop*",), TEAM, USUAL, as_claims=True, inside=inside, password_secret=secret)
    (written,) = await writing.write(options)
    before = team.changes(*_OF_DATA)
    _, key = await team.apply(written.text)
    await asyncio.sleep(_ENOUGH_S)
    untouched = team.changes(*_OF_DATA)
    exits = []
    # What is inside of a server is looked at once the server is ours.
    for _ in range(2 if inside else 1):
        (preview,) = [shown for shown in await agreeing.previews([], TEAM, USUAL) if shown.agreement]
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        exits.append(adopted.exit)
        await asyncio.sleep(_ENOUGH_S)
    claim, admitted = team.object(CLAIMS, key), (team.refused, team.logins > 500)
    made = {call.rpartition(".")[2] for call in team.changes(*_OF_DATA)[len(before) :]}
    policy = "Snapshot" if cloud == "onprem" else "Orphan"
    left = await team.left_and_found(key, policy)
    (again,) = [thing for thing in left if thing.kind in {"RDSInstance", "FlexibleServer", "PostgresDatabase"}]
    after = await team.adopted(again, secret)
    await team.end()

    assert untouched == before
    assert again.name.endswith("shop") if cloud == "onprem" else again.name == team.hand_made.name
    assert (find(after, "Ready") or {})["status"] == "True", [c["message"] for c in status_of(after)["conditions"]]
    assert written.remarks
    assert set(exits) == {Exit.DONE}
    assert (find(claim, "Ready") or {})["status"] == "True", status_of(claim)["conditions"]
    assert made == {"change"}
    assert admitted == (0, True)


def test_a_state_of_terraform_becomes_files_whose_previews_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_time.run("import terraform", lambda: _migrated(monkeypatch))


async def _migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    team = _team("gcp", monkeypatch)
    await team.begin("gcp")
    state = [
        ("google_sql_user", {"name": "shop_app", "instance": "shop-prod"}),
        ("google_sql_database", {"name": "shop", "instance": "shop-prod"}),
        ("google_sql_database_instance", {"name": "shop-prod", "database_version": "POSTGRES_16"}),
        ("aws_db_instance", {"identifier": "elsewhere", "engine": "postgres"}),
    ]
    resources = [{"mode": "managed", "address": f"{kind}.a", "type": kind, "values": values} for kind, values in state]
    migration = migrating.of_terraform({"values": {"root_module": {"resources": resources}}})
    options = writing.Options(_CONFIG, (), TEAM, USUAL, password_secret="of-before")
    managed, elsewhere, files = await writing.migrate(options, migration.managed)
    before, totals = team.changes(), []
    for written in files:
        resource, key = await team.apply(written.text)
        await asyncio.sleep(_ENOUGH_S)
        (preview,) = await agreeing.previews([f"{resource.kind.lower()}/{key.name}"], TEAM, USUAL)
        totals.append(preview.total)
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        assert adopted.exit is Exit.DONE, adopted
    await asyncio.sleep(_ENOUGH_S)
    await team.end()

    assert [item.address.partition(".")[0] for item in managed] == [kind for kind, _ in reversed(state[:3])]
    assert [item.thing.name for item in elsewhere] == ["elsewhere"]
    assert totals == [0, 0, 0]
    # A POST that only reads is on record, too.
    assert set(team.changes()[len(before) :]) == {"provider servers.change", "provider servers.listServerCas"}
    assert team.changes()[len(before) :].count("provider servers.change") == 1
    assert team.refused == 0


def test_many_are_adopted_once_each_though_the_command_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual_time.run("import many", lambda: _many(tmp_path, monkeypatch))


async def _many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = _team("onprem", monkeypatch)
    await team.begin("onprem")
    for number in range(_MANY):
        _on_the_server(team.platform.cloud, f"many_{number}")
    # More than a page has.
    for number in range(_PAGE):
        team.platform.cloud.ask(f"CREATE DATABASE other_{number}")
    pages = list[str]()
    (account,) = await unmanaged.find(_CONFIG, Search(progress=pages.append), USUAL)
    files = await writing.write(writing.Options(_CONFIG, ("many_*",), TEAM, USUAL))
    for written in files:
        await team.apply(written.text)
    await asyncio.sleep(_ENOUGH_S)
    previews = await agreeing.previews([], TEAM, USUAL)
    file = folder / "previews.json"
    file.write_bytes(msgspec.json.encode({"previews": msgspec.to_builtins(previews)}))
    before, kills = team.changes(), 0
    request = agreeing.Request("", "", file, TEAM, USUAL, wave=8)
    for seconds in (0.05, 0.2, 0.3, 0.4):
        task = asyncio.create_task(agreeing.adopt(request))
        await asyncio.sleep(seconds)
        kills += task.cancel()
        await asyncio.wait((task,))
    outcomes = await agreeing.adopt(request)
    await asyncio.sleep(_ENOUGH_S)
    await team.end()

    assert (len(account.things), account.complete, len(pages)) == (_PAGE + _MANY + 1, True, 1)
    assert len(files) == len(previews) == len(outcomes) == _MANY
    assert {outcome.exit for outcome in outcomes} == {Exit.DONE}
    assert {outcome.text for outcome in outcomes} == {"adopted", "is managed already"}
    assert kills > 2
    assert team.changes()[len(before) :] == ["provider databases.change"] * _MANY
    assert team.refused == 0
