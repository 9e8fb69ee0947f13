"""Changes of an instance that more than one of its clients makes. Impure: it calls the SDK."""

from __future__ import annotations

from typing import Any

from providers.aws.account import AwsAccount
from providers.external.client import Fence


async def modify(account: AwsAccount, name: str, fence: Fence, **parameters: Any) -> None:
    """Change an instance by one ModifyDBInstance."""
    action = f"change instance {name}"
    await account.call("modify_db_instance", action, fence=fence, DBInstanceIdentifier=name, **parameters)


async def set_administrator_password(
    account: AwsAccount, name: str, password: str, fence: Fence, *, kept_elsewhere: bool
) -> None:
    """Set the administrator's password, which RDS does at once and without touching its queue.

    Where Secrets Manager was made its keeper that ends by the same call (ModifyDBInstance,
    ManageMasterUserPassword: turned off, MasterUserPassword must be given).
    """
    keeper = {"ManageMasterUserPassword": False} if kept_elsewhere else {}
    await modify(account, name, fence, MasterUserPassword=password, ApplyImmediately=False, **keeper)
