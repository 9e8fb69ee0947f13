"""All reads of a pass: what belongs to the object in Kubernetes, the account, the database, the credentials."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, Generic

import msgspec

from apis.names import EPHEMERAL_LABEL
from apis.teardown import Policy, instruction_of
from providers.accounts.connections import Accounts, accepted_accounts
from providers.accounts.limits import Limiter, refuse_namespace
from providers.accounts.turns import Holder
from providers.credentials.passwords import own_password
from providers.external.client import Target
from providers.external.consent import Consent, consent_of
from providers.external.observation import (
    Absent,
    ExternalRef,
    Observation,
    Predecessor,
    Present,
    SpecT,
    Unknown,
    digest,
    unknown_of,
)
from providers.external.ownership import Identity, held, identity_of, owner_of
from providers.external.provider import ConfigT, ConnectedAccount, Kind, LoginRules
from providers.external.spec import Envelope
from providers.managed import record
from providers.managed.attempts import NOTHING_TRIED, Attempts
from providers.managed.inputs import Inputs, Lifecycle, with_differences
from providers.managed.password_reader import PasswordReader
from providers.managed.record import is_same_database
from providers.managed.references import References
from providers.settings import Settings
from runtime import kubectl
from runtime.cache import Cache, Informer
from runtime.conditions import instant
from runtime.errors import Blocked, Failure, NotFound, Terminal
from runtime.kube import Kube, Selection
from runtime.objects import CRDS, NAMESPACES, Key, Object, deleting, generation_of, key_of, labels_of, status_of, uid_of

_PREFIX = "fl-"
_ALTERNATING = "Alternating"
_LONGEST_OPERATION = timedelta(days=1)


class Gatherer(Generic[SpecT, ConfigT]):
    """Reads; decides nothing, changes nothing."""

    def __init__(
        self,
        kind: Kind[SpecT, Any],
        kube: Kube,
        accounts: Accounts[SpecT, ConfigT],
        settings: Settings,
        cache: Cache,
    ) -> None:
        self._kind = kind
        self.turns = accounts.turns
        self.turns.add(kind.resource.kind, cache.informer(kind.resource).store)
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._namespaces: Informer = cache.informer(NAMESPACES, selection=Selection(metadata_only=True))
        self._limiter = Limiter(
            cache.informer(kind.resource),
            accounts,
            settings.now,
            stateful=kind.stateful,
            installation=settings.installation,
        )
        rules: LoginRules[SpecT, Any] | None = kind.logins
        self._passwords = None if rules is None else PasswordReader(rules, kube, settings)
        self._references = References(kind, cache)
        # A hundred resources at once list an account once, not each for itself.
        self._listing = asyncio.Lock()
        self._absent_since: dict[Key, tuple[str, datetime]] = {}

    @property
    def limiter(self) -> Limiter:
        """The counters of creates and destroys."""
        return self._limiter

    async def gather(self, obj: Object, attempts: Attempts = NOTHING_TRIED) -> Inputs[SpecT]:
        """Read all that the decision about `obj` needs."""
        now, identity = self._settings.now(), identity_of(obj)
        envelope = record.envelope_of(obj, self._kind.spec_type)
        resolved = self._references.resolve(obj, envelope.for_provider)
        envelope = msgspec.structs.replace(envelope, for_provider=resolved.spec)
        external_ref = record.external_ref_of(obj, absent_since=None)
        lifecycle = await self._lifecycle(obj, envelope, identity, now)
        target = self._target(obj, envelope, identity, external_ref)
        account, observation = await self._observe(obj, envelope, target, lifecycle, resolved.missing)
        recorded, target = record.with_recorded(obj, observation, external_ref, target)
        allowed = await self._allowed(obj, envelope, account, target, lifecycle)
        allowed["refusal"] = allowed.get("refusal") or resolved.missing
        if account is not None and not account.changed:
            facts, observation = await self._facts(
                account, target, observation, lifecycle.policy, delete_intended=allowed["delete_intended"]
            )
            allowed |= facts
        if allowed.get("predecessors") and isinstance(observation, Absent):
            named = await self._named_predecessor(consent_of(obj), allowed["predecessors"], account, target)
            target, observation = named or (target, observation)
        is_new = isinstance(observation, Absent) and not recorded.incarnation and not recorded.restoring
        if is_new and target.name != self._by_rule(obj, envelope, identity):
            allowed["refusal"] = "AdoptionRefused", record.no_such_predecessor(target.name)
        recorded = replace(recorded, absent_since=self._absent_from(obj, observation, now))
        inputs = Inputs(
            target,
            observation,
            recorded,
            now,
            spec_hash=digest(target.spec),
            generation=generation_of(obj),
            lifecycle=lifecycle,
            consent=consent_of(obj),
            observe_only=envelope.management_policy == "Observe",
            correct_drift=envelope.drift_policy == "Correct",
            apply_now=envelope.maintenance.apply == "Immediate",
            obj=obj,
            envelope=envelope,
            account=account,
            namespace=self._namespace(obj),
            intent=record.intent_of(obj),
            resolved=resolved.names,
            attempts=attempts,
            **allowed,
        )
        is_read = not (lifecycle.deleting or inputs.observe_only)
        if self._passwords is not None and account is not None and is_read and self._passwords.applies(target.spec):
            inputs = await self._passwords.read(inputs)
        return with_differences(self._kind, inputs)

    def _target(self, obj: Object, envelope: Envelope, identity: Identity, external_ref: ExternalRef) -> Target[SpecT]:
        spec: SpecT = envelope.for_provider
        name = external_ref.external_name or self._by_rule(obj, envelope, identity)
        status = status_of(obj)
        return Target(
            name,
            spec,
            owner_of(obj, self._settings.installation, uid_of(self._namespace(obj))),
            self._kind.naming.hash_in(spec, name) or identity.hash,
            active=status.get("connection", {}).get("username", ""),
            retiring=status.get("rotation", {}).get("retiring", ""),
            alternates=((self._usable_config(obj, envelope) or {}).get("spec") or {}).get("logins") == _ALTERNATING,
            own_password=own_password(
                self._settings.hash_key, f"{self._settings.installation}\0{identity.uid}\0{name}"
            ),
            incarnation=external_ref.incarnation,
            restore=external_ref.restoring,
            leaving=deleting(obj),
            agreed=consent_of(obj).of("restoreFrom"),
            address=kubectl.address_of(self._kind.resource.kind, key_of(obj)),
        )

    def _namespace(self, obj: Object) -> Object:
        return self._namespaces.store.get(Key("", key_of(obj).namespace)) or {}

    def _by_rule(self, obj: Object, envelope: Envelope, identity: Identity) -> str:
        config = self._usable_config(obj, envelope) or {}
        prefix = (config.get("spec") or {}).get("namePrefix", _PREFIX)
        return self._kind.naming.name(envelope.for_provider, identity, prefix)

    async def _lifecycle(self, obj: Object, envelope: Envelope, identity: Identity, now: datetime) -> Lifecycle:
        own = Policy(envelope.deletion_policy)
        policy: Policy | None = own
        if deleting(obj):
            policy = instruction_of(obj) if identity.has_claim else await self._own_policy(obj, own)
        config = self._usable_config(obj, envelope)
        of_config = record.paused(config, now) if config is not None else ""
        paused = record.paused(obj, now) or (of_config and f"{of_config} (all of this ProviderConfig)")
        destroy_refused = record.refuse_destroy(policy, own) if self._kind.stateful else ""
        since = instant(str(obj["metadata"].get("deletionTimestamp", "")))
        return Lifecycle(deleting(obj), held(obj), policy, paused, destroy_refused, since)

    def _not_allowed(self, obj: Object, envelope: Envelope) -> str:
        """Return why this namespace may not use the ProviderConfig: then it is neither connected nor described."""
        name = envelope.provider_config_ref.name
        config = self._accounts.configs.store.get(Key("", name))
        labels = labels_of(self._namespace(obj))
        return "" if config is None else refuse_namespace(config, key_of(obj).namespace, labels)

    def _usable_config(self, obj: Object, envelope: Envelope) -> Object | None:
        if self._not_allowed(obj, envelope):
            return None
        return self._accounts.configs.store.get(Key("", envelope.provider_config_ref.name))

    async def _own_policy(self, obj: Object, wanted: Policy) -> Policy:
        """Without a claim: the namespace's or the CRD's deletion means Detach, unless the namespace is ephemeral."""
        namespace = self._namespace(obj)
        crd_key = Key("", f"{self._kind.resource.plural}.{self._kind.resource.group}")
        try:
            crd = await self._kube.get(CRDS, crd_key, metadata_only=True)
        except NotFound:
            return Policy.DETACH
        ephemeral = labels_of(namespace).get(EPHEMERAL_LABEL) == "true"
        ends = not namespace or deleting(namespace)
        return Policy.DETACH if deleting(crd) or (ends and not ephemeral) else wanted

    async def _observe(
        self,
        obj: Object,
        envelope: Envelope,
        target: Target[SpecT],
        lifecycle: Lifecycle,
        missing: tuple[str, str] | None,
    ) -> tuple[ConnectedAccount[SpecT, ConfigT] | None, Observation[SpecT]]:
        unobserved = self._unobserved(obj, envelope, target, lifecycle, missing)
        if unobserved is not None:
            return None, unobserved
        try:
            account = await self._accounts.connect(envelope.provider_config_ref.name)
            external_ref = record.external_ref_of(obj, absent_since=None)
            recorded = external_ref.account
            if not account.changed and recorded and account.id in accepted_accounts(account.config_object):
                observation = await account.clients.external.observe(target)
                if recorded == account.id or is_same_database(target, external_ref, observation):
                    return account, observation
            if account.changed or (recorded and recorded != account.id):
                text = account.changed or (
                    f"the database lives in account {recorded}, the ProviderConfig reaches {account.id}; nothing is"
                    " changed until it reaches the former again"
                )
                return replace(account, changed=text), Unknown("AccountChanged", text)
            return account, await account.clients.external.observe(target)
        except Failure as failure:
            return None, unknown_of(failure)

    def _unobserved(
        self,
        obj: Object,
        envelope: Envelope,
        target: Target[SpecT],
        lifecycle: Lifecycle,
        missing: tuple[str, str] | None,
    ) -> Absent | Unknown | None:
        """Return what is known of what is not observed at all; None where it is observed."""
        if lifecycle.deleting and (lifecycle.policy is Policy.DETACH or not lifecycle.has_finalizer):
            return Unknown("Deleting", "not looked at")
        if text := self._not_allowed(obj, envelope):
            return Unknown("NotAllowed", text)
        if self._kind.server_of is not None and not self._kind.server_of(target):
            return record.without_server(obj, missing)
        return None

    async def _allowed(
        self,
        obj: Object,
        envelope: Envelope,
        account: ConnectedAccount[SpecT, ConfigT] | None,
        target: Target[SpecT],
        lifecycle: Lifecycle,
    ) -> dict[str, Any]:
        """Return what others allow: the ProviderConfig, the account, another process that may be at work."""
        external_ref, intent = record.external_ref_of(obj, absent_since=None), record.intent_of(obj)
        calls = intent.calls if intent is not None else ()
        delete_intended = any(call.kind == "Delete" and call.incarnation == external_ref.incarnation for call in calls)
        allowed: dict[str, Any] = {
            "grace": self._settings.grace,
            "settle": self._settings.settle,
            "takeover": self._settings.takeover,
            "projection": self._kind.projection,
            "eventual": self._kind.asynchronous,
            "stateful": self._kind.stateful,
            "inside": self._kind.inside,
            "tagged": self._kind.tagged,
            "delete_intended": delete_intended,
        }
        if intent is not None and intent.by != self._settings.process:
            known = intent.format == record.INTENT_FORMAT
            text = "" if known else f"a newer provider (intent format {intent.format}) was at work; upgrade this one"
            allowed |= {"intent_until": intent.not_after if known else None, "intent_unknown": text}
        if account is None:
            return allowed | {"not_allowed": self._not_allowed(obj, envelope)}
        unlisted = None if account.changed or lifecycle.deleting else await self._ensure_listed(obj, account)
        allowance = self._limiter.allowance(obj, account, self._namespace(obj), delete_intended=delete_intended)
        operating, failed = await self._poll(obj, account)
        server = self._kind.server_of(target) if self._kind.server_of is not None else ""
        holder = self.turns.holder(account.id, server, self.holder_of(obj)) if server else None
        refusal = unlisted or account.clients.account.refusal(target.spec)
        allowed |= asdict(allowance) | {"operating": operating, "operation_failed": failed, "server": server}
        allowed |= {"account_changed": account.changed, "refusal": refusal, "turn_of": str(holder or "")}
        if account.changed or lifecycle.deleting or external_ref.incarnation or external_ref.restoring:
            return allowed
        # Predecessors are searched before a first create only: afterwards the external reference shows what is ours.
        try:
            return allowed | {"predecessors": await account.clients.account.find_predecessors(target.owner)}
        except Failure as failure:
            return allowed | {"refusal": _refusal_of(failure)}

    async def _facts(
        self,
        account: ConnectedAccount[SpecT, ConfigT],
        target: Target[SpecT],
        observation: Observation[SpecT],
        policy: Policy | None,
        *,
        delete_intended: bool,
    ) -> tuple[dict[str, Any], Observation[SpecT]]:
        """Return what follows from the observation: whether its window is open, which backups a lost one has."""
        facts: dict[str, Any] = {}
        backups = account.clients.backups
        match observation:
            case Present(observed=observed):
                facts["window_open"] = self._kind.window_open(observed, self._settings.now())
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

    async def _poll(self, obj: Object, account: ConnectedAccount[SpecT, ConfigT]) -> tuple[str, tuple[str, str] | None]:
        """Poll the operation under way; return what it does while it is open, or reason and message of its failure."""
        operation, operations = record.operation_of(obj), account.clients.operations
        if operation is None or account.changed:
            return "", None
        try:
            ended = operations is None or await operations.poll(operation)
        except (Terminal, Blocked) as failure:
            return "", (failure.reason, failure.message)
        except Failure:
            ended = False
        # After so long the object's own state decides.
        is_over = ended or self._settings.now() - operation.started_at >= _LONGEST_OPERATION
        return "" if is_over else operation.kind, None

    async def _ensure_listed(self, obj: Object, account: ConnectedAccount[SpecT, ConfigT]) -> tuple[str, str] | None:
        """List the account once in the life of this process where a limit counts what is there without a resource."""
        if not self._limiter.needs_list(obj, account):
            return None
        try:
            async with self._listing:
                if self._limiter.needs_list(obj, account):
                    listing = await account.clients.account.list()
                    self._limiter.listed(key_of(account.config_object).name, account.id, listing)
        except Failure as failure:
            return _refusal_of(failure)
        return None

    async def _named_predecessor(
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

    def _absent_from(self, obj: Object, observation: Observation[SpecT], now: datetime) -> datetime | None:
        """Return since when an object's database is not found; a restart and a create begin the grace again."""
        key, uid = key_of(obj), f"{uid_of(obj)}/{record.external_ref_of(obj, absent_since=None).incarnation}"
        if not isinstance(observation, Absent):
            if isinstance(observation, Present):
                self._absent_since.pop(key, None)
            return None
        known = self._absent_since.get(key)
        if known is None or known[0] != uid:
            self._absent_since[key] = (uid, now)
            return None
        return known[1]

    def holder_of(self, obj: Object) -> Holder:
        """Return an object as one that takes a turn."""
        return Holder(self._kind.resource.kind, key_of(obj))

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._absent_since.pop(key, None)
        if self._passwords is not None:
            self._passwords.forget(key)


def _refusal_of(failure: Failure) -> tuple[str, str]:
    unknown = unknown_of(failure)
    return unknown.reason, unknown.message
