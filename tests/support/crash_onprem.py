"""The crash matrix over an on-prem server: composer and provider die at each effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.support.crash import COMPOSER, PROVIDER
from tests.support.crash_run import CrashRun
from tests.support.end_state import end_states
from tests.support.home import Home, claim, furnish
from tests.support.kinds import CLAIM


class OnPremRun(CrashRun):
    """Claims whose databases lie on the rig's own server."""

    def expected(self) -> Mapping[tuple[str, str], str]:
        return {
            ("create", COMPOSER): "POST postgresdatabases",
            ("create", PROVIDER): "SQL CREATE DATABASE",
            ("update", COMPOSER): "PATCH postgresdatabases",
            ("update", PROVIDER): "SQL ALTER DATABASE",
            ("rotate", COMPOSER): "PUT secrets",
            ("rotate", PROVIDER): "SQL ALTER ROLE",
            ("delete", COMPOSER): "DELETE postgresdatabases",
            ("delete", PROVIDER): "SQL DROP DATABASE",
        }

    def name_of(self, scope: str) -> str:
        del scope
        return "db"

    async def make(self, scope: str) -> None:
        await self.rig.system.namespaced(scope)
        await self.rig.system.create(CLAIM, claim(scope, self.name_of(scope), deletionPolicy="Delete"))

    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        return await end_states(self.rig.system, list(scopes))

    async def plant(self, scope: str) -> Home:
        return await furnish(self.rig.system, scope, self.name_of(scope))

    async def is_home(self, scope: str, planted: Home) -> None:
        assert await planted.rows() == [planted.row], scope
        assert await planted.names() == [planted.database], scope
