"""What a pass reads from the cloud: the database, its window and its backups, the operation under way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic

from apis.reasons import CUT_OFF
from apis.teardown import Policy
from providers.accounts.answers import Answers
from providers.accounts.connections import Accounts, accepted_accounts
from providers.accounts.limits import Limiter
from providers.external.client import FailedOperation, PushedAside, Target
from providers.external.consent import SERVER_ENTRY, Consent, consent_of
from providers.external.observation import Absent, Observation, Predecessor, Present, SpecT, Unknown, unknown_of
from providers.external.provider import ConfigT, ConnectedAccount, Kind
from providers.managed import record
from providers.managed.record import LastSeen, is_same_database
from providers.settings import Settings
from runtime.conditions import find
from runtime.errors import Blocked, Failure, Terminal
from runtime.objects import Object, key_of

_LONGEST_OPERATION = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Look(Generic[SpecT, ConfigT]):
    """What was observed, and in which account (None where it is not connected).

    `live` says that it was asked in this pass, `listed` that a list of the account shows what becomes of it, `unlisted`
    that it was not found and that the last list lacks it as well. `last_seen` is what the next passes may rely on.
    """

    account: ConnectedAccount[SpecT, ConfigT] | None
    observation: Observation[SpecT]
    live: bool = True
    listed: bool = False
    unlisted: bool = False
    last_seen: LastSeen | None = None


class CloudReader(Generic[SpecT, ConfigT]):
    """Reads from the cloud; a failed read teaches nothing, and is no absence."""

    def __init__(
        self, kind: Kind[SpecT, Any], accounts: Accounts[SpecT, ConfigT], settings: Settings, limiter: Limiter
    ) -> None:
        self._kind = kind
        self._accounts = accounts
        self._settings = settings
        self._limiter = limiter
        self.answers = Answers(settings.monotonic, settings.sweep, settings.resync)
        # A hundred resources at once list an account once, not each for itself.
        self._counting = asyncio.Lock()

    async def observe(self, obj: Object, config: str, target: Target[SpecT], *, live: bool) -> Look[SpecT, ConfigT]:
        """Observe what an object stands for, in the account of its ProviderConfig.

        Unless it has to be `live`, the last answer of the account's list does, or that of a look since.
        """
        look = await self._observe(obj, config, target, live=live)
        reached = not _is_unreached(obj, look.observation)
        answered = not isinstance(look.observation, Unknown)
        self._accounts.record_reach(config, key_of(obj), reached=reached, answered=answered)
        return look

    async def _observe(self, obj: Object, config: str, target: Target[SpecT], *, live: bool) -> Look[SpecT, ConfigT]:
        try:
            account = await self._accounts.connect(config)
            external_ref = record.external_ref_of(obj, absent_since=None)
            recorded = external_ref.account
            if not account.changed and recorded and account.id in accepted_accounts(account.config_object):
                look = await self._look(obj, account, target, live=live)
                observation = look.observation
                if recorded == account.id or isinstance(observation, Unknown):
                    return look
                if is_same_database(target, external_ref, observation):
                    return look
            if account.changed or (recorded and recorded != account.id):
                text = account.changed or (
                    f"the database lives in account {recorded}, the ProviderConfig reaches {account.id}; nothing is"
                    " changed until it reaches the former again"
                )
                return Look(replace(account, changed=text), Unknown("AccountChanged", text))
            return await self._look(obj, account, target, live=live)
        except Failure as failure:
            return Look(None, unknown_of(failure))

    async def _look(
        self, obj: Object, account: ConnectedAccount[SpecT, ConfigT], target: Target[SpecT], *, live: bool
    ) -> Look[SpecT, ConfigT]:
        reader = account.clients.listed
        if reader is None:
            return Look(account, await account.clients.external.observe(target))
        if account.clients.changes is not None:
            known = None if live else await self._unchanged(obj, account, target)
            if known is not None:
                return Look(account, known, live=False, last_seen=record.last_seen_of(obj))
            # What is seen counts by a list of before.
            await self.answers.listed_lately(account)
            began, observation = self._settings.now(), await account.clients.external.observe(target)
            return Look(account, observation, last_seen=await self._seen(obj, account, target, observation, began))
        if not live and self._may_use_answer(obj):
            answer = await self.answers.answer(account, target.name)
            known = None if answer is None else await reader.observe_listed(target, answer)
            if answer is not None and known is not None and _is_recorded(target, known):
                seen = Present(replace(known.observed, answer=answer))
                return Look(account, seen, live=False, listed=True)
        as_of = self.answers.now()
        observation = await account.clients.external.observe(target)
        self.record(account, target.name, observation, as_of)
        is_listed = await self.answers.ensure_listed(account)
        missing = isinstance(observation, Absent) and self.answers.is_missing(account, target.name)
        return Look(account, observation, listed=is_listed, unlisted=is_listed and missing)

    async def _unchanged(
        self, obj: Object, account: ConnectedAccount[SpecT, ConfigT], target: Target[SpecT]
    ) -> Present[SpecT, Any] | None:
        """Return what was seen last, by the object's status, where the log of changes shows nothing since.

        In a pass that somebody waits for it counts for nothing.
        """
        last_seen, reader, changes = record.last_seen_of(obj), account.clients.listed, account.clients.changes
        if last_seen is None or reader is None or changes is None or not record.is_routine(obj):
            return None
        if not self._may_use_answer(obj) or not await self.answers.listed_lately(account):
            return None
        if not changes.is_unchanged(target.name, last_seen.at, self._settings.now()):
            return None
        known = await reader.observe_listed(target, last_seen.answer)
        is_recorded = known is not None and target.incarnation in {"", known.observed.incarnation}
        return known if is_recorded else None

    async def _seen(
        self,
        obj: Object,
        account: ConnectedAccount[SpecT, ConfigT],
        target: Target[SpecT],
        observation: Observation[SpecT],
        began: datetime,
    ) -> LastSeen | None:
        """Return what a look that began at a time makes the next passes rely on; what still counts stays as it is."""
        answer = observation.observed.answer if isinstance(observation, Present) else b""
        former, changes = record.last_seen_of(obj), account.clients.changes
        if not answer or changes is None:
            return None
        is_same = former is not None and former.answer == answer
        if not await self.answers.listed_lately(account):
            return former if is_same else None
        if former is not None and is_same and changes.is_unchanged(target.name, former.at, self._settings.now()):
            return former
        return LastSeen(began, answer)

    def record(
        self, account: ConnectedAccount[SpecT, ConfigT], name: str, observation: Observation[SpecT], as_of: float
    ) -> None:
        """Record what a look that began at `as_of` was answered."""
        match observation:
            case Present(observed=observed) if observed.answer:
                self.answers.of(account).record(name, observed.answer, as_of)
            case Absent():
                self.answers.of(account).forget(name)
            case _:
                pass

    def _may_use_answer(self, obj: Object) -> bool:
        """Return whether an answer of before does: nothing is open, and nobody asked for a look of now."""
        intent, consent = record.intent_of(obj), consent_of(obj)
        is_open = intent is not None and intent.by != self._settings.process and self._settings.now() < intent.not_after
        once = [path for path, _ in consent.values if path != SERVER_ENTRY]
        is_asked = record.is_reconcile_requested(obj) or bool(once or consent.adopt)
        return not (is_open or is_asked or record.operation_of(obj) is not None)

    async def facts(  # noqa: PLR0913 - a pass, what it saw, and what it may do
        self,
        account: ConnectedAccount[SpecT, ConfigT],
        target: Target[SpecT],
        observation: Observation[SpecT],
        policy: Policy | None,
        now: datetime,
        *,
        delete_intended: bool,
    ) -> tuple[dict[str, Any], Observation[SpecT]]:
        """Return what follows from the observation: when its window opens, which backups a lost one has."""
        facts: dict[str, Any] = {}
        backups = account.clients.backups
        match observation:
            case Present(observed=observed):
                # By the clock of the pass: one that is open is open at its `now`, however long the look took.
                facts["window_at"] = self._kind.next_window(observed, now)
            case Absent() if backups is not None and target.incarnation and self._kind.stateful and not target.leaving:
                with suppress(Failure):
                    facts["backups"] = await backups.restorable(target)
                with suppress(Failure):
                    facts["backup"] = await backups.latest(target)
            case Absent() if backups is not None and target.restore and not target.leaving:
                with suppress(Failure):
                    facts["backups"] = await backups.restorable(target)
            case Absent() if policy is Policy.SNAPSHOT and target.leaving:
                # Without it nothing is let go: the final one, or any of what others took away.
                if backups is not None and target.incarnation and self._kind.stateful:
                    try:
                        facts["backup"] = await backups.latest(replace(target, leaving=delete_intended))
                    except Failure as failure:
                        return facts, unknown_of(failure)
        return facts, observation

    async def poll(self, obj: Object, account: ConnectedAccount[SpecT, ConfigT]) -> tuple[str, FailedOperation | None]:
        """Poll the operation under way; return what it does while it is open, or reason and message of its failure."""
        operation, operations = record.operation_of(obj), account.clients.operations
        started_at = record.operation_started_at(obj)
        if operation is None or started_at is None or account.changed:
            return "", None
        try:
            ended = operations is None or await operations.poll(operation)
        except (Terminal, Blocked) as failure:
            return "", FailedOperation(failure.reason, failure.message, isinstance(failure, PushedAside))
        except Failure:
            ended = False
        # After so long the object's own state decides.
        is_over = ended or self._settings.now() - started_at >= _LONGEST_OPERATION
        return "" if is_over else operation.kind, None

    async def ensure_listed(self, obj: Object, account: ConnectedAccount[SpecT, ConfigT]) -> tuple[str, str] | None:
        """List the account once in the life of this process where a limit counts what is there without a resource."""
        if not self._limiter.needs_list(obj, account):
            return None
        try:
            async with self._counting:
                if self._limiter.needs_list(obj, account):
                    listing = await self.answers.list(account)
                    self._limiter.listed(key_of(account.config_object).name, account.id, listing)
        except Failure as failure:
            return refusal_of(failure)
        return None

    async def named_predecessor(
        self,
        consent: Consent,
        predecessors: tuple[Predecessor, ...],
        account: ConnectedAccount[SpecT, ConfigT] | None,
        target: Target[SpecT],
    ) -> tuple[Target[SpecT], Observation[SpecT]] | None:
        """Observe the predecessor that a person named instead of the name by rule; None where none is named."""
        for predecessor in predecessors:
            if account is not None and consent.adopt == predecessor.incarnation:
                hash_ = self._kind.naming.hash_in(target.spec, predecessor.name) or target.hash
                target = replace(target, name=predecessor.name, hash=hash_)
                return target, await account.clients.external.observe(target)
        return None


def _is_recorded(target: Target[SpecT], known: Present[SpecT, Any]) -> bool:
    """Return whether an answer shows this resource's own database; any doubt is looked into."""
    observed = known.observed
    return target.owner.owns(observed.owner) and target.incarnation in {"", observed.incarnation}


def refusal_of(failure: Failure) -> tuple[str, str]:
    """Return reason and sentence of a failed read, for a plan that it refuses."""
    unknown = unknown_of(failure)
    return unknown.reason, unknown.message


def _is_unreached(obj: Object, observation: Observation[Any]) -> bool:
    """Return whether the server was not reached, or answers nothing yet after an outage that is still reported."""
    if not isinstance(observation, Unknown):
        return False
    return observation.reason == CUT_OFF or (find(obj, "Ready") or {}).get("reason") == CUT_OFF
