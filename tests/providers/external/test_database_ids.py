"""What logins list of databases, and what that says of one whose cloud gives it no id."""

from __future__ import annotations

from dataclasses import dataclass, field

from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.database_ids import DatabaseIds
from providers.external.endpoint import VERIFIED, Endpoint

ENDPOINT = Endpoint("10.0.0.1", 5432, "postgres", VERIFIED)


@dataclass
class Server:
    """A server whose databases a login lists, at a clock that is moved on; `made` is made during a login."""

    databases: tuple[tuple[str, int], ...] | None = (("app", 100),)
    made: str = ""
    now: float = 0.0
    ids: DatabaseIds = field(init=False)

    def __post_init__(self) -> None:
        self.ids = DatabaseIds(self.connect, lambda: self.now)
        self.ids.record_endpoint(ENDPOINT, "fl-a")

    async def connect(self, _endpoint: Endpoint, _credential: Credential) -> LoginAnswer:
        self.now += 1
        if self.made:
            self.ids.record_made("fl-a", self.made)
        return LoginAnswer(Login.OK, databases=self.databases)

    async def incarnation(self, recorded: str) -> tuple[str, tuple[str, ...]]:
        """Return what identifies database `app` after a login."""
        self.now += 1
        await self.ids.try_login(ENDPOINT, Credential("app", "secret"))
        return self.ids.incarnation("fl-a", "app", "fl-a/app", recorded)


async def test_oid_that_a_login_listed_is_part_of_what_identifies_a_database() -> None:
    assert Server().ids.incarnation("fl-a", "app", "fl-a/app", "fl-a/app@7") == ("fl-a/app@7", ())
    assert Server().ids.incarnation("fl-a", "app", "fl-a/app", "fl-b/app@7") == ("fl-a/app", ())
    for recorded in ("", "fl-a/app", "fl-a/app@100", "fl-a/app@7"):
        assert await Server().incarnation(recorded) == ("fl-a/app@100", ("fl-a/app",))
    for databases in (None, (), (("other", 100),)):
        assert await Server(databases).incarnation("fl-a/app@7") == ("fl-a/app@7", ())


async def test_what_was_listed_before_a_database_was_made_is_of_another() -> None:
    server = Server(made="app")
    assert await server.incarnation("") == ("fl-a/app", ())
    server.made = ""
    assert await server.incarnation("fl-a/app") == ("fl-a/app@100", ("fl-a/app",))
    server.ids.record_made("fl-a", "app")
    assert server.ids.incarnation("fl-a", "app", "fl-a/app", "") == ("fl-a/app", ())


async def test_what_was_made_is_listed_once_by_the_login_that_was_taken_last() -> None:
    server = Server(())
    await server.incarnation("")
    server.ids.record_made("fl-a", "app")
    server.databases, server.now = (("app", 100),), server.now + 1
    for name in ("other", "app"):
        await server.ids.list_made("fl-a", name)
    assert server.ids.incarnation("fl-a", "app", "fl-a/app", "") == ("fl-a/app@100", ("fl-a/app",))

    logged_in_at = server.now
    await server.ids.list_made("fl-a", "app")
    assert server.now == logged_in_at


async def test_what_a_login_listed_since_it_was_made_is_not_listed_again() -> None:
    server = Server()
    server.ids.record_made("fl-a", "app")
    server.now += 1
    await server.incarnation("")
    server.databases = (("app", 200),)
    await server.ids.list_made("fl-a", "app")
    assert server.ids.incarnation("fl-a", "app", "fl-a/app", "")[0] == "fl-a/app@100"
