"""What Terraform and Crossplane manage, by the examples of their documentation, is taken over with nothing to change.

Sources of the objects: the registry's pages on `aws_db_instance` and its groups, `google_sql_database_instance` with
database and user, `azurerm_postgresql_flexible_server` with its children; the examples of provider-upjet-aws, -gcp and
-azure, of provider-aws and of provider-sql; with PostgreSQL where these have another engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from devcloud.aws.platform import SUBNETS
from devcloud.gcp.server import PROJECT
from fairlead.account_lists import Search
from fairlead.cli import run
from fairlead.exits import Exit
from fairlead.imports import agreeing, migrating, unmanaged, writing
from fairlead.imports.written import save
from fairlead.kube_options import USUAL
from fairlead.simulation import virtual_time
from fairlead.simulation.cloud_sql import ALICE
from fairlead.yaml_files import documents_in
from tests.simulation.history import TEAM
from tests.simulation.takeover import CONFIG, ENOUGH_S, PASSWORD, on_the_server, team_of

pytestmark = pytest.mark.slow

_INNER: Final = frozenset({"CloudSQLDatabase", "CloudSQLUser", "FlexibleServerDatabase"})
_STATES: Final = Path(__file__).parent / "migrations"


async def _aws(there: Any) -> None:
    of_all = {"Engine": "postgres", "EngineVersion": "16.9", "AllocatedStorage": 20, "MasterUserPassword": PASSWORD}
    there.ask("CreateDBParameterGroup", DBParameterGroupName="education", DBParameterGroupFamily="postgres16",
              Description="Managed by Terraform")  # fmt: skip
    there.ask("ModifyDBParameterGroup", DBParameterGroupName="education", Parameters=[
        {"ParameterName": "log_connections", "ParameterValue": "1", "ApplyMethod": "immediate"}])  # fmt: skip
    there.ask("CreateDBSubnetGroup", DBSubnetGroupName="main", DBSubnetGroupDescription="Managed by Terraform",
              SubnetIds=list(SUBNETS), Tags=[{"Key": "Name", "Value": "My DB subnet group"}])  # fmt: skip
    there.ask("CreateDBInstance", DBInstanceIdentifier="example", DBInstanceClass="db.t3.micro", DBName="mydb",
              MasterUsername="foo", DBParameterGroupName="education", DBSubnetGroupName="main", **of_all)  # fmt: skip
    there.ask("CreateDBInstance", DBInstanceIdentifier="example-rds", DBInstanceClass="db.t3.medium", MultiAZ=True,
              MasterUsername="admin1", **of_all)  # fmt: skip


async def _gcp(there: Any) -> None:
    settings = {"tier": "db-f1-micro", "edition": "ENTERPRISE"}
    body = {"name": "main-instance", "region": "us-central1", "databaseVersion": "POSTGRES_15", "settings": settings}
    for path, content in (
        ("instances", body),
        ("instances/main-instance/databases", {"name": "my-database"}),
        ("instances/main-instance/users", {"name": "me", "password": PASSWORD}),
    ):
        there.ask(ALICE, "POST", f"v1/projects/{PROJECT}/{path}", (), content)
        await asyncio.sleep(ENOUGH_S)


async def _azure(there: Any) -> None:
    path = "/providers/Microsoft.DBforPostgreSQL/flexibleServers/example-psqlflexibleserver"
    properties = {"version": "16", "administratorLogin": "psqladmin", "administratorLoginPassword": PASSWORD,
                  "storage": {"storageSizeGB": 32}}  # fmt: skip
    sku = {"name": "Standard_D4s_v3", "tier": "GeneralPurpose"}
    rule = {"startIpAddress": "122.122.0.0", "endIpAddress": "122.122.0.0"}
    for below, content in (
        ("", {"location": "westeurope", "sku": sku, "properties": properties}),
        ("/databases/exampledb", {"properties": {"charset": "UTF8", "collation": "en_US.utf8"}}),
        ("/firewallRules/example-fw", {"properties": rule}),
        ("/configurations/backslash_quote", {"properties": {"value": "on", "source": "user-override"}}),
    ):
        there.ask("PUT", f"{path}{below}", content)
        await asyncio.sleep(ENOUGH_S)


async def _onprem(there: Any) -> None:
    on_the_server(there, "db1")


_MADE: Final[dict[str, Callable[[Any], Awaitable[None]]]] = {
    "aws": _aws, "gcp": _gcp, "azure": _azure, "onprem": _onprem,
}  # fmt: skip
ROWS: Final = sorted(path.name for path in _STATES.iterdir())


@pytest.mark.parametrize("file", ROWS)
def test_what_another_tool_manages_is_taken_over_with_nothing_to_change(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = virtual_time.run(f"migration {file}", lambda: _taken_over(_STATES / file, tmp_path, monkeypatch))

    assert run(["validate", str(folder)]) == Exit.DONE, capsys.readouterr().out


def _migration(state: Path) -> migrating.Migration:
    if state.suffix == ".json":
        return migrating.of_terraform(msgspec.json.decode(state.read_bytes()))
    return migrating.of_crossplane(document.content for document in documents_in(state))


async def _taken_over(state: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cloud, migration = state.stem, _migration(state)
    team = team_of(cloud, monkeypatch)
    await team.begin(cloud)
    await _MADE[cloud](team.platform.cloud)
    await asyncio.sleep(ENOUGH_S)
    (server,) = {item.thing.name.rpartition("/")[0] for item in migration.managed if item.thing.kind in _INNER} or {""}
    (account,) = await unmanaged.find(CONFIG, Search(within=server), USUAL) if server else (None,)
    inner = {thing for thing in account.things if thing.kind in _INNER} if account else set()
    options = writing.Options(CONFIG, (), TEAM, USUAL, password_secret="of-before")
    managed, elsewhere, files = await writing.migrate(options, migration.managed)
    save(folder, files)
    before, changes = team.changes(), list[str]()
    for written in files:
        resource, key = await team.apply(written.text)
        await asyncio.sleep(ENOUGH_S)
        (preview,) = await agreeing.previews([f"{resource.kind.lower()}/{key.name}"], TEAM, USUAL)
        changes += [change["path"] for change in preview.changes]
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        assert adopted.exit is Exit.DONE, (adopted, preview)
    await asyncio.sleep(ENOUGH_S)
    await team.end()

    assert len(managed) == len(files)
    assert inner == {item.thing for item in migration.managed if item.thing.kind in _INNER}
    assert elsewhere == []
    # On premises a login of its own is made beside those that there are.
    own = {"database", "grants", "members", "roles", "schemas"} if cloud == "onprem" else set[str]()
    assert {path.partition(".")[0] for path in changes} == own
    # What carries no tag is recorded here alone; a POST that only reads is on record, too.
    made = {change for change in team.changes()[len(before) :] if not change.endswith("listServerCas")}
    assert {change.rpartition(".")[2] for change in made} <= {"change"}
    return folder
