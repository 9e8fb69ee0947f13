"""What may happen to one claim on AWS in a random walk."""

from __future__ import annotations

import random
import secrets
from typing import Any

import psycopg
from botocore.exceptions import ClientError

from tests.support.api import ApiError
from tests.support.kinds import CLAIM
from tests.support.walk_acts import (
    CHILD_DELETED,
    CONNECTION_DELETED,
    CREDENTIALS_DELETED,
    EDITS,
    ROTATE,
    Act,
    Walker,
    any_edit_withdrawn,
    child_edited,
)
from tests.support.walk_aws import AwsWorld

_RETENTIONS = range(8, 30)
_BY_LOGIN = "RDS shows no password, and a reset of it for a moment only: the login tried at each resync shows it"


def _world(walker: Walker) -> AwsWorld:
    assert isinstance(walker.world, AwsWorld)
    return walker.world


async def _retention(walker: Walker, dice: random.Random) -> str:
    days = dice.choice(_RETENTIONS)
    await walker.spec(backup={"retentionDays": days})
    return str(days)


async def _parameters(walker: Walker, dice: random.Random) -> str:
    parameters = {"work_mem": f"{dice.randrange(64, 9999)}kB"}
    await walker.spec(parameters=parameters)
    return str(parameters)


async def _withdraw(walker: Walker, dice: random.Random) -> str:
    """Take back every edit so far."""
    del dice
    await walker.spec(backup=None, parameters=None)
    return ""


async def _edit_and_withdraw(walker: Walker, dice: random.Random) -> str:
    """Edit, and take it back at once: whoever is at work has seen the edit or has not."""
    claim = await walker.world.system.api.get(CLAIM.path(walker.namespace, walker.name))
    before = claim["spec"].get("backup")
    days = await _retention(walker, dice)
    await walker.spec(backup=before)
    return days


async def _pause(walker: Walker, dice: random.Random) -> str:
    """Pause the claim until its next act; half of the time its user goes on editing."""
    await walker.edit({"metadata": {"annotations": {"fairlead.dev/paused": "true"}}})
    walker.undo = {"metadata": {"annotations": {"fairlead.dev/paused": None}}}
    return f"with an edit to {await _retention(walker, dice)}" if dice.random() < 0.5 else ""


async def _call(walker: Walker, operation: str, **parameters: Any) -> str:
    """Call RDS as a person does, on the claim's instance; return what failed."""
    world = _world(walker)
    try:
        identifier = world.identifiers[walker.name]
        await world.aws.person(operation, DBInstanceIdentifier=identifier, **parameters)
    except ClientError as error:
        return f"(in vain: {error.response['Error']['Code']})"
    return ""


async def _retention_by_hand(walker: Walker, dice: random.Random) -> str:
    return await _call(walker, "modify_db_instance", BackupRetentionPeriod=dice.randrange(1, 7))


def _to_rotate(walker: Walker, dice: random.Random) -> None:
    """Have the walk end with a rotation: the administrator's password is not set back behind anybody's back."""
    walker.way_out = {"spec": {"passwordRotation": {"token": f"t{dice.randrange(10**9)}"}}}


async def _password_reset(walker: Walker, dice: random.Random) -> str:
    _to_rotate(walker, dice)
    return await _call(walker, "modify_db_instance", MasterUserPassword=secrets.token_hex(12), ApplyImmediately=True)


async def _reboot(walker: Walker, dice: random.Random) -> str:
    del dice
    return await _call(walker, "reboot_db_instance")


async def _password_by_sql(walker: Walker, dice: random.Random) -> str:
    _to_rotate(walker, dice)
    # Of two logins each acts as the owner role unless it says otherwise.
    statement = f"SET ROLE NONE; ALTER ROLE CURRENT_USER PASSWORD '{secrets.token_hex(12)}'"
    try:
        async with await walker.world.system.login(walker.namespace, walker.name) as connection:
            await connection.execute(statement.encode())
    except (psycopg.Error, ApiError, KeyError) as error:
        # Who cannot log in has changed nothing.
        return f"(in vain: {type(error).__name__})"
    return ""


# Not storageGiB: RDS grows storage at once and never shrinks it, so that its withdrawal is refused at admission.
ANY_EDIT_WITHDRAWN_AWS = any_edit_withdrawn(EDITS)
ACTS_AWS = (
    Act("retention edited", _retention),
    Act("parameters edited", _parameters),
    Act("edits withdrawn", _withdraw),
    Act("edited and withdrawn at once", _edit_and_withdraw),
    Act("pause", _pause),
    Act("child edited", child_edited("backupRetentionPeriod")),
    CHILD_DELETED,
    CONNECTION_DELETED,
    CREDENTIALS_DELETED,
    Act("retention by another's hand", _retention_by_hand),
    Act("password reset by another's hand", _password_reset, unseen=_BY_LOGIN),
    Act("password by SQL", _password_by_sql, unseen=_BY_LOGIN),
    Act("reboot", _reboot),
)

ACTS_AWS_TWO_LOGINS = (*ACTS_AWS, ROTATE)
"""What may happen to a claim whose application has two logins.

Of one login the former password ends with the next one's beginning. Nobody gets in until the next one is published, and
while RDS or the provider is away nobody publishes it: Ready stays True for as long (seen for 24 to 32 s).
"""
