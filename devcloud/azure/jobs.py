"""The work that operations ask of the databases, as calls of the data plane."""

from devcloud.azure import databases as engine
from devcloud.azure.firewall import access_of
from devcloud.azure.lifecycle import effects
from devcloud.azure.lifecycle.effects import ServerEffect
from devcloud.azure.state.model import Server
from devcloud.postgres.instance import StatementError
from devcloud.simulator.dataplane import Address, Database, DataPlane

_DUPLICATE_DATABASE = "42P04"
_PORT = 5432


def database_of(server: Server, password: str | None) -> Database:
    """Return a server as its database sees it."""
    return Database(
        resource_id=server.resource_id,
        identifier=server.name,
        port=_PORT,
        username=server.properties.administrator_login or "azure_entra_admin",
        password=password or "",
        db_name=None,
        version=server.properties.version,
    )


async def carry_out(effect: ServerEffect, before: Server, after: Server, databases: DataPlane) -> Address | None:
    """Do an operation's work; return where a new server answers.

    Args:
        effect: What the operation brings about.
        before: The server before it.
        after: The server after it, the same where it is then gone.
        databases: The data plane.

    Raises:
        DevcloudError: The databases cannot.
    """
    resource_id = before.resource_id
    match effect:
        case effects.CreateServer():
            return await _created(effect, after, databases)
        case effects.UpdateServer(password=password, cuts_sessions=cuts_sessions):
            if password is not None:
                await databases.set_password(resource_id, password)
            await _restarted(before, after, databases, cuts_sessions=cuts_sessions)
            await databases.set_access(resource_id, access_of(after))
        case effects.DropServer() | effects.StopServer():
            # Its data outlive it, for whoever revives it.
            await databases.stop(resource_id)
        case effects.StartServer():
            await databases.start(resource_id)
        case effects.RestartServer():
            await databases.reboot(resource_id)
        case effects.PutDatabase() | effects.DropDatabase():
            await _changed_database(effect, before, databases)
        case effects.PutRule() | effects.DropRule() | effects.SetConfiguration() | effects.TakeBackup():
            # A backup changes nothing: a restore asks for a point in time.
            await databases.set_access(resource_id, access_of(after))
    return None


async def _restarted(before: Server, after: Server, databases: DataPlane, *, cuts_sessions: bool) -> None:
    if after.properties.version != before.properties.version:
        await databases.upgrade(before.resource_id, after.properties.version)
    elif cuts_sessions:
        await databases.reboot(before.resource_id)


async def _created(effect: effects.CreateServer, server: Server, databases: DataPlane) -> Address:
    database = database_of(server, effect.password)
    if effect.source is None:
        address = await databases.create(database)
    else:
        address = await databases.clone(database, effect.source)
        if effect.password is not None:
            await databases.set_password(server.resource_id, effect.password)
    await databases.set_access(server.resource_id, access_of(server))
    return address


async def _changed_database(
    effect: effects.PutDatabase | effects.DropDatabase, server: Server, databases: DataPlane
) -> None:
    if isinstance(effect, effects.DropDatabase):
        await databases.execute(server.resource_id, (engine.removal(effect.name),))
        return
    owner = database_of(server, None).username
    try:
        await databases.execute(server.resource_id, (engine.creation(effect.name, owner),))
    except StatementError as error:
        # A former process made it, and ended before it said so.
        if error.sqlstate != _DUPLICATE_DATABASE:
            raise
