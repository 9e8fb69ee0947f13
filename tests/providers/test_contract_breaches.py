"""A cloud that breaks the contract is noticed, by the clause that is about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from apis.teardown import Policy
from providers.external.client import ExternalList, Fence, Operation
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Present
from runtime.errors import Failure, Transient
from tests.providers.contract import clause_named, keep
from tests.providers.toy_adapter import PlainServers, ToyChildren, ToyServers
from tests.providers.toy_client import Seen, ToyClient, ToyFields, Where, tags_of
from tests.providers.toy_service import Body

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "dev" / "contract-suite.md"


class DropsAnOperation(ToyClient):
    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> None:
        await super().set(target, observed, credential, fence)


class WaitsForALostHandle(ToyClient):
    async def poll(self, operation: Operation) -> bool:
        return bool((await self.call("operation", operation.id))["done"])


class TagsLate(ToyClient):
    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        login = (credential.username, credential.password)
        await self.call("insert", target.name, fence, fields=self.fields_of(target.spec), tags={}, login=login)
        return self.begun("Create", await self.call("patch", target.name, fence, fields={}, tags=tags_of(target.owner)))


class ForgetsTheFence(ToyClient):
    async def call(self, action: str, name: str = "", fence: Fence | None = None, **body: object) -> Body:
        still_open = None if fence is None else replace(fence, until=fence.until + 3600, leads=lambda: True)
        return await super().call(action, name, still_open, **body)


class ReadsAbsenceFromAnError(ToyClient):
    async def observe(self, target: Where) -> Present[ToyFields, Body] | Absent:
        try:
            return await super().observe(target)
        except Failure:
            return Absent()


class ListsInPart(ToyClient):
    async def list(self) -> ExternalList:
        items = {}
        with suppress(Failure):
            async for item in self.pages():
                items[item["name"]] = repr(item)
        return ExternalList(items, complete=True)


class CreatesASecondTime(ToyClient):
    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        try:
            return await super().create(target, credential, fence)
        except Transient:
            return await super().create(replace(target, name=f"{target.name}-2"), credential, fence)


class PutsWhatMayBeThere(ToyClient):
    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        fields, login = self.fields_of(target.spec), (credential.username, credential.password)
        return self.begun("Create", await self.call("put", target.name, fence, fields=fields, login=login))


class DeletesWithoutABackup(ToyClient):
    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        del policy
        return await super().delete(target, observed, Policy.DELETE, fence)


class KnowsObjectsByName(ToyClient):
    def observed(self, body: Body) -> Seen:
        return super().observed({**body, "id": body["name"]})


class ChangesWhatItDidNotObserve(ToyClient):
    async def update(
        self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        every_field = tuple(Change((name,), value, None) for name, value in self.fields_of(target.spec).items())
        return await super().update(target, observed, changes and every_field[:1], fence)


class KeepsAFormerAuthority(ToyClient):
    def observed(self, body: Body) -> Seen:
        return super().observed({**body, "ca": "PEM of the first authority\n"})


class PrintsAPassword(ToyClient):
    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        try:
            return await super().create(target, credential, fence)
        except Transient as failure:
            raise Transient(f"{failure}: login {credential.username} {credential.password}") from None


BREACHES: tuple[tuple[type[ToyClient], Callable[..., ToyServers], str], ...] = (
    (DropsAnOperation, ToyServers, "every_operation_is_followed_to_its_end"),
    (DropsAnOperation, ToyChildren, "children_of_one_server_take_turns"),
    (WaitsForALostHandle, ToyServers, "operation_whose_handle_is_lost_has_ended"),
    (TagsLate, PlainServers, "owner_is_in_the_create_itself"),
    (ForgetsTheFence, ToyServers, "no_call_leaves_after_the_leadership_was_lost"),
    (ForgetsTheFence, ToyServers, "no_call_leaves_after_the_time_of_its_intent"),
    (ReadsAbsenceFromAnError, ToyServers, "error_is_never_absence"),
    (ListsInPart, ToyServers, "list_in_part_is_never_called_complete"),
    (CreatesASecondTime, PlainServers, "create_without_an_answer_leads_to_the_same_object"),
    (PutsWhatMayBeThere, ToyChildren, "object_that_appears_before_the_create_arrives_is_not_ours"),
    (DeletesWithoutABackup, ToyServers, "policy_snapshot_keeps_a_backup_before_the_finalizer_goes"),
    (KnowsObjectsByName, ToyServers, "object_of_another_incarnation_is_only_read"),
    (ChangesWhatItDidNotObserve, ToyServers, "foreign_change_is_put_back_or_held_by_its_class"),
    (KeepsAFormerAuthority, ToyServers, "renewed_authority_is_published_within_one_sweep"),
    (PrintsAPassword, ToyServers, "password_is_in_no_status_event_log_or_error"),
)


@pytest.mark.parametrize(
    ("client", "adapter", "clause"),
    [pytest.param(*breach, id=f"{breach[0].__name__}-{breach[2]}") for breach in BREACHES],
)
async def test_breach_is_noticed(client: type[ToyClient], adapter: Callable[..., ToyServers], clause: str) -> None:
    with pytest.raises(AssertionError):
        await keep(clause_named(clause), adapter(client_type=client))


def test_page_names_every_breach_and_the_clause_that_notices_it() -> None:
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| `(\w+)` \|$", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(client.__name__, clause) for client, _, clause in BREACHES]
