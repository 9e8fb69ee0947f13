"""Google's own clients drive the simulator: google-cloud-sql and google-api-python-client."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import sqladmin_v1
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from devcloud.gcp.api.routes import PREFIXES, methods
from devcloud.gcp.simulator import METHODS
from tests.devcloud.gcp.conftest import Cloud, Json, until
from tests.devcloud.gcp.rest_channel import Rest, async_client, document
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

# Proto-plus and google-auth have no types for what they are made of.
sql: Any = sqladmin_v1


def body(name: str = "db-1") -> Any:
    settings = sql.Settings(tier="db-custom-1-3840", user_labels={"team": "a"}, storage_auto_resize=False)
    return sql.DatabaseInstance(
        name=name, region="europe-west1", database_version="POSTGRES_16", root_password="secret", settings=settings
    )


def documented(version: str) -> Iterator[tuple[str, str, str]]:
    """Yield action, HTTP method and path of a version, parameters as the simulator names them."""
    for resource, content in document(version)["resources"].items():
        for name, method in content.get("methods", {}).items():
            path = method["flatPath"].replace("{projectsId}", "{project}").replace("{backupsId}", "{backup}")
            # The newest resource has names of another style: `Backups.ListBackups`, `backups.listBackups`.
            short = re.sub(r"^([A-Za-z]+)Backups?$", r"\1", name) if resource.lower() == "backups" else name
            action = f"{resource[:1].lower()}{resource[1:]}.{short[:1].lower()}{short[1:]}"
            yield action, method["httpMethod"], path


@pytest.mark.parametrize("version", PREFIXES)
def test_methods_and_paths_are_those_of_the_discovery_document(version: str) -> None:
    known = set(documented(version))
    ours = {(route.action, route.method, f"{PREFIXES[version]}/{route.path}") for route in methods()}

    assert ours - known == set()
    assert {action for action, _, _ in ours} == METHODS.keys() - {"projects.get"}


async def test_client_takes_an_instance_through_its_life_with_databases_and_users(cloud: Cloud) -> None:
    rest, project = Rest(cloud.served.url, cloud.token), cloud.served.project
    instances, operations = async_client("SqlInstances", rest), async_client("SqlOperations", rest)
    databases, users = async_client("SqlDatabases", rest), async_client("SqlUsers", rest)
    target: Json = {"project": project, "instance": "db-1"}

    async def done(operation: Any) -> Any:
        async def ended() -> Any:
            shown = await operations.get(request={"project": project, "operation": operation.name})
            return shown if shown.status.name == "DONE" else None

        return await eventually(ended, "the operation has ended")

    insert = sql.SqlInstancesInsertRequest(project=project, body=body())
    await done(await instances.insert(request=insert))
    shown = await instances.get(request=target)
    assert (shown.state.name, shown.settings.data_disk_size_gb, shown.root_password) == ("RUNNABLE", 10, "")
    assert shown.settings.storage_auto_resize is False
    with pytest.raises(exceptions.Aborted) as error:
        await instances.insert(request=insert)
    assert ("reason", "instanceAlreadyExists") in tuple(error.value.errors[0].trailing_metadata())
    change = sql.DatabaseInstance(settings=sql.Settings(data_disk_size_gb=30))
    patch = sql.SqlInstancesPatchRequest(project=project, instance="db-1", body=change)
    assert (await done(await instances.patch(request=patch))).operation_type.name == "UPDATE"
    (listed,) = (await instances.list(request={"project": project})).items
    assert (listed.settings.data_disk_size_gb, listed.settings.user_labels["team"]) == (30, "a")

    made = await databases.insert(request={**target, "body": sql.Database(name="app")})
    user = await users.insert(request={**target, "body": sql.User(name="app", password="p")})
    changed = await users.update(request={**target, "name": "app", "body": sql.User(password="q")})
    assert [item.status.name for item in (made, user, changed)] == ["DONE"] * 3
    assert [item.name for item in (await users.list(request=target)).items] == ["app", "postgres"]
    assert (await databases.get(request={**target, "database": "app"})).charset == "UTF8"
    await users.delete(request={**target, "name": "app"})

    await done(await instances.delete(request={**target, "enable_final_backup": True}))
    with pytest.raises(exceptions.NotFound):
        await instances.get(request=target)
    backups = (await async_client("SqlBackups", rest).list_backups(request={"parent": f"projects/{project}"})).backups
    assert [(backup.type_.name, backup.state.name) for backup in backups] == [("FINAL", "SUCCESSFUL")]


@pytest.mark.parametrize("version", PREFIXES)
def test_google_api_python_client_drives_it(version: str, cloud: Cloud) -> None:
    with warnings.catch_warnings():
        # Its HTTP library warns of its own use of a parser.
        warnings.simplefilter("ignore", DeprecationWarning)
        service = build(
            "sqladmin",
            version,
            credentials=Credentials(cloud.token),  # type: ignore[no-untyped-call]  # google-auth has no types for it
            client_options={"api_endpoint": cloud.served.url},
        )
        project = cloud.served.project
        wanted = {
            "name": "db-1",
            "databaseVersion": "POSTGRES_16",
            "region": "europe-west1",
            "settings": {"tier": "db-custom-1-3840"},
        }
        operation = service.instances().insert(project=project, body=wanted).execute()
        get = service.operations().get(project=project, operation=operation["name"])
        until(get.execute, lambda shown: bool(shown["status"] == "DONE"))
        shown = service.instances().get(project=project, instance="db-1").execute()
        with pytest.raises(HttpError) as error:
            service.instances().insert(project=project, body=wanted).execute()
        service.close()

    assert shown["state"] == "RUNNABLE"
    assert error.value.status_code == 409
    assert error.value.error_details[0]["reason"] == "instanceAlreadyExists"
