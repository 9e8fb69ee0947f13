"""The two logins of an instance: looked at, put in order, given passwords and switched off by its administrator.

Impure: it speaks SQL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

from providers.aws import sql
from providers.aws.models import RDSInstanceParameters
from providers.aws.roles import is_of_roles, names_of
from providers.aws.sql import AdministratorRefused
from providers.aws.translate import wanted_roles
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.login import Server
from providers.external.observation import Change, Observed
from providers.external.sql_session import Session, Unreached
from runtime.errors import Blocked, Failure, Transient

Seen = Observed[RDSInstanceParameters]
Where = Target[RDSInstanceParameters]


class Reaching(Protocol):
    """What the instances of an account know about reaching one."""

    def place(self, target: Where) -> tuple[Server, str] | None:
        """Return server and database to log in to; None where nothing answers, or nothing proves that it is RDS."""

    def reached(self, target: Where, *, is_reached: bool) -> None:
        """Remember whether an instance answered."""

    async def take_administrator(self, target: Where, fence: Fence, *, managed: bool) -> None:
        """Give the administrator the password that the provider alone knows."""


class InstanceLogins:
    """What is done by SQL; the administrator's own password is RDS's to change."""

    def __init__(self, instances: Reaching) -> None:
        self._instances = instances

    async def seen(self, target: Where, seen: Seen) -> Seen:
        """Add what a session as the administrator shows, once the application has logins of its own.

        What RDS does with the administrator's password is no matter of theirs.
        """
        if target.active not in names_of(target.spec.master_username).logins or not target.incarnation:
            return seen
        seen = replace(seen, password_elsewhere=False)
        if not seen.usable or self._is_shared(target):
            return seen
        try:
            async with self._session(target) as session:
                roles = await sql.look(session, names_of(target.spec.master_username))
        except AdministratorRefused:
            return replace(seen, facts=replace(seen.facts, administrator_refused=not seen.password_pending))
        except Failure:
            # Nothing was learnt.
            return seen
        return replace(seen, facts=replace(seen.facts, roles=roles))

    async def put_in_order(self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence) -> None:
        """End what differs about the roles and the administrator's password."""
        if any(change.path[0] == "administrator" for change in changes):
            await self._instances.take_administrator(target, fence, managed=observed.facts.kept_elsewhere)
        if any(is_of_roles(change) for change in changes):
            async with self._session(target) as session:
                await sql.put_in_order(session, wanted_roles(target, observed.facts.database), fence)

    async def set_password(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        """Give one of the two logins its password.

        Raises:
            Blocked: `CloudBusy`: the administrator's password, with which that is done, has to be set first.
        """
        wanted = wanted_roles(target, observed.facts.database, setting=credential.username)
        try:
            async with self._session(target) as session:
                await sql.set_password(session, wanted, credential, fence)
        except AdministratorRefused:
            if not observed.password_pending:
                await self._instances.take_administrator(target, fence, managed=observed.facts.kept_elsewhere)
            text = f"instance {observed.name} gets the administrator's password with which its logins are made"
            raise Blocked("CloudBusy", text) from None

    async def retire(self, target: Where, username: str, fence: Fence) -> None:
        """Switch one of the two logins off."""
        async with self._session(target) as session:
            await sql.retire(session, username, names_of(target.spec.master_username), fence)

    @staticmethod
    def _is_shared(target: Where) -> bool:
        """Tell whether applications may still come as the administrator, whose password is theirs until then."""
        return target.spec.master_username in {target.active, target.retiring}

    @asynccontextmanager
    async def _session(self, target: Where) -> AsyncIterator[Session]:
        """Open a session as the administrator: by the password that is published, or by the provider's own.

        Raises:
            AdministratorRefused: Neither opens one.
        """
        place = self._instances.place(target)
        if place is None:
            raise Transient(f"instance {target.name} cannot be reached, and its logins are made by SQL")
        try:
            session = await self._opened(target, *place)
        except Unreached:
            self._instances.reached(target, is_reached=False)
            raise
        self._instances.reached(target, is_reached=True)
        async with sql.lent(session, target.name):
            yield session

    @staticmethod
    async def _opened(target: Where, server: Server, database: str) -> Session:
        username = target.spec.master_username
        if target.active == username and target.published:
            with suppress(AdministratorRefused):
                return await sql.opened(server, database, Credential(username, target.published))
        return await sql.opened(server, database, Credential(username, target.own_password))
