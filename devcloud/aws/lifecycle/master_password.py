"""The master user's password: how a reset goes, and the secret of one that Secrets Manager keeps. Pure.

AWS says of a reset: it is asynchronous and applied as soon as possible, whatever ApplyImmediately says; from the
request to its end PendingModifiedValues has MasterUserPassword (ModifyDBInstance of the API Reference); the status
becomes `resetting-master-credentials`, sessions go on, and who connects again needs the new password ("How do I reset
the master user password for my Amazon RDS DB instance?" of the Knowledge Center). PostgreSQL keeps one password for a
role (`pg_authid.rolpassword`), so there is one moment at which the new one begins to log in and the former one ends.
AWS does not say when it is; tests choose it (`behaviour.AwsBehaviour.password_after_s`).
"""

from typing import Final

import msgspec

from devcloud.aws.lifecycle.steps import Became, Step
from devcloud.aws.state.model import MasterUserSecret
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.work import SetPassword

RESET_S: Final = 26.0
"""How long a reset takes, from the request to `available`, before the clock's `durations`."""
_LEAD_S = 5.0  # the instance still shows its former status
MIDDLE_S: Final = (_LEAD_S + RESET_S) / 2
"""The middle of `resetting-master-credentials`, in seconds after the request."""
_STATUS = "resetting-master-credentials"


def reset(password: str, *, after_s: float, secret: MasterUserSecret | None) -> tuple[Step, ...]:
    """Return the steps of a new master password.

    Args:
        password: The new one.
        after_s: How long after the request it takes the former one's place, from 0 to `RESET_S`.
        secret: The secret that holds it, None when the user does; it is `active` at the end.
    """
    change = Step(
        status=None if after_s < _LEAD_S else _STATUS,
        seconds=0,
        work=SetPassword(password),
        ends=(Became(hidden={"password": password}),),
    )
    kept: dict[str, object] = {} if secret is None else {"master_user_secret": _in_status(secret, "active")}
    end = Became(shown=kept, clears=("master_user_password",))
    before = (Step(status=None, seconds=min(after_s, _LEAD_S)), Step(status=_STATUS, seconds=max(after_s - _LEAD_S, 0)))
    after = (
        Step(status=None, seconds=max(_LEAD_S - after_s, 0)),
        Step(status=_STATUS, seconds=RESET_S - max(after_s, _LEAD_S), ends=(end,), ended=(16,)),
    )
    return tuple(step for step in (*before, change, *after) if step.seconds or step.ends)


def secret_of(request: InstanceRequest, arn: str) -> MasterUserSecret | None:
    """Return the secret that a request makes for the instance of an ARN; None when the user keeps the password."""
    if not request.manage_master_user_password:
        return None
    _, _, _, region, account, *_, name = arn.split(":")
    scope = f"{region}:{account}"
    return MasterUserSecret(
        secret_arn=f"arn:aws:secretsmanager:{scope}:secret:rds!db-{name}",
        secret_status="creating",  # noqa: S106 - its status
        kms_key_id=request.master_user_secret_kms_key_id or f"arn:aws:kms:{scope}:key/aws-managed",
    )


def secret_after(request: InstanceRequest, present: MasterUserSecret | None, arn: str) -> MasterUserSecret | None:
    """Return the secret that the instance of an ARN has after a ModifyDBInstance (its ManageMasterUserPassword)."""
    if request.manage_master_user_password is False:
        return None
    if present is None:
        return secret_of(request, arn)
    return _in_status(present, "rotating") if request.rotate_master_user_password else present


def secret_at_creation(secret: MasterUserSecret | None) -> MasterUserSecret | None:
    """Return the secret of an instance at its creation."""
    return None if secret is None else _in_status(secret, "active")


def _in_status(secret: MasterUserSecret, status: str) -> MasterUserSecret:
    return msgspec.structs.replace(secret, secret_status=status)
