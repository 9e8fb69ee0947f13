"""All reads of a pass: the object's surroundings in Kubernetes, the account, the database, the credentials."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import Generic

import msgspec

from apis.names import EPHEMERAL_LABEL
from apis.teardown import Policy, instruction_of
from providers.accounts.connections import Accounts, accepted_accounts
from providers.accounts.limits import Limiter, refuse_namespace
from providers.credentials.passwords import own_password
from providers.external.client import Target
from providers.external.consent import consent_of, used_consents
from providers.external.observation import Absent, Marks, Observation, Present, SpecT, Unknown, digest, unknown_of
from providers.external.ownership import Identity, held, identity_of, owner_of
from providers.external.provider import Account, ConfigT, Provider
from providers.external.spec import Envelope
from providers.managed import record
from providers.managed.password_reader import PasswordReader
from providers.managed.plan import Bounds, Desired, Lifecycle, Scene
from providers.managed.record import Intent, is_same_database
from providers.managed.references import References
from providers.managed.snapshot import Snapshot, differences
from providers.settings import Settings
from runtime import kubectl
from runtime.cache import Cache, Informer
from runtime.conditions import instant
from runtime.errors import Blocked, Failure, NotFound, Terminal
from runtime.kube import Kube, Selection
from runtime.objects import CRDS, NAMESPACES, Key, Object, deleting, generation_of, key_of, labels_of, status_of, uid_of

_PREFIX = "fl-"
_ALTERNATING = "Alternating"


class Gatherer(Generic[SpecT, ConfigT]):
    """Reads; decides nothing, changes nothing."""

    def __init__(
        self,
        provider: Provider[SpecT, ConfigT],
        kube: Kube,
        accounts: Accounts[SpecT, ConfigT],
        settings: Settings,
        cache: Cache,
    ) -> None:
        self._provider = provider
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._namespaces: Informer = cache.informer(NAMESPACES, selection=Selection(metadata_only=True))
        self._limiter = Limiter(
            cache.informer(provider.resource),
            accounts,
            settings.now,
            stateful=provider.stateful,
            installation=settings.installation,
        )
        self._passwords: PasswordReader[SpecT, ConfigT] = PasswordReader(provider, kube, settings)
        self._references = References(provider, cache)
        # A hundred resources at once list an account once, not each for itself.
        self._counting = asyncio.Lock()
        self._absent_since: dict[Key, tuple[str, datetime]] = {}

    @property
    def limiter(self) -> Limiter:
        """The counters of creates and destroys."""
        return self._limiter

    async def gather(self, obj: Object) -> Snapshot[SpecT]:
        """Read all that the decision about `obj` needs."""
        now, identity = self._settings.now(), identity_of(obj)
        envelope = record.envelope_of(obj, self._provider.spec_type)
        resolved = self._references.resolve(obj, envelope.for_provider)
        envelope = msgspec.structs.replace(envelope, for_provider=resolved.spec)
        marks = record.marks_of(obj, absent_since=None)
        lifecycle = await self._lifecycle(obj, envelope, identity, now)
        target = self._target(obj, envelope, identity, marks)
        desired = self._desired(obj, envelope, target, lifecycle)
        intent = record.intent_of(obj)
        account, observation = await self._observe(obj, envelope, target, lifecycle)
        marks, target = _with_recorded(obj, observation, marks, target)
        bounds = await self._bounds(obj, envelope, account, desired, intent)
        bounds = replace(bounds, refusal=bounds.refusal or resolved.missing)
        if account is not None and not account.changed:
            bounds = await self._seen_bounds(account, target, marks, observation, bounds)
            if lifecycle.deleting and lifecycle.policy is Policy.SNAPSHOT and isinstance(observation, Absent):
                bounds, observation = await self._kept(account, target, marks, observation, bounds)
        if bounds.predecessors and isinstance(observation, Absent):
            target, observation = await self._named_predecessor(desired, bounds, account, target, observation)
        if isinstance(observation, Absent) and not marks.incarnation and not marks.restoring:
            bounds = self._named_by_rule(target, self._by_rule(obj, envelope, identity), bounds)
        marks = replace(marks, absent_since=self._absence(obj, observation, now))
        scene = self._scene(Scene(desired, observation, marks, bounds, now), envelope, target)
        namespace = self._namespace(obj)
        snapshot = Snapshot(obj, envelope, scene, target, account, namespace, intent, resolved=resolved.names)
        if lifecycle.deleting or account is None or desired.observe_only or not self._provider.stateful:
            return snapshot
        snapshot = await self._passwords.read(snapshot)
        return replace(snapshot, scene=self._scene(snapshot.scene, snapshot.envelope, snapshot.target))

    def _target(self, obj: Object, envelope: Envelope, identity: Identity, marks: Marks) -> Target[SpecT]:
        spec: SpecT = envelope.for_provider
        name = marks.external_name or self._by_rule(obj, envelope, identity)
        status = status_of(obj)
        return Target(
            name,
            spec,
            owner_of(obj, self._settings.installation, uid_of(self._namespace(obj))),
            self._provider.hash_of(spec, name) or identity.hash,
            active=status.get("connection", {}).get("username", ""),
            retiring=status.get("rotation", {}).get("retiring", ""),
            alternates=((self._usable_config(obj, envelope) or {}).get("spec") or {}).get("logins") == _ALTERNATING,
            own_password=own_password(
                self._settings.hash_key, f"{self._settings.installation}\0{identity.uid}\0{name}"
            ),
            incarnation=marks.incarnation,
            restore=marks.restoring,
            leaving=deleting(obj),
            agreed=consent_of(obj).of("restoreFrom"),
            address=kubectl.address_of(self._provider.resource.kind, key_of(obj)),
        )

    def _namespace(self, obj: Object) -> Object:
        return self._namespaces.store.get(Key("", key_of(obj).namespace)) or {}

    def _by_rule(self, obj: Object, envelope: Envelope, identity: Identity) -> str:
        config = self._usable_config(obj, envelope) or {}
        prefix = (config.get("spec") or {}).get("namePrefix", _PREFIX)
        return self._provider.external_name(envelope.for_provider, identity, prefix)

    def _desired(self, obj: Object, envelope: Envelope, target: Target[SpecT], lifecycle: Lifecycle) -> Desired[SpecT]:
        return Desired(
            spec=target.spec,
            spec_hash=digest(target.spec),
            generation=generation_of(obj),
            owner=target.owner,
            lifecycle=lifecycle,
            consent=consent_of(obj),
            observe_only=envelope.management_policy == "Observe",
            correct_drift=envelope.drift_policy == "Correct",
            apply_now=envelope.maintenance.apply == "Immediate",
            address=target.address,
        )

    async def _lifecycle(self, obj: Object, envelope: Envelope, identity: Identity, now: datetime) -> Lifecycle:
        own = Policy(envelope.deletion_policy)
        policy: Policy | None = own
        if deleting(obj):
            policy = instruction_of(obj) if identity.has_claim else await self._own_policy(obj, own)
        config = self._usable_config(obj, envelope)
        with_config = record.paused(config, now) if config is not None else ""
        paused = record.paused(obj, now) or (with_config and f"{with_config} (all of this ProviderConfig)")
        withheld = record.withheld(policy, own) if self._provider.stateful else ""
        since = instant(str(obj["metadata"].get("deletionTimestamp", "")))
        return Lifecycle(deleting(obj), held(obj), policy, paused, withheld, since)

    def _not_allowed(self, obj: Object, envelope: Envelope) -> str:
        """Return why this namespace may not use the ProviderConfig: then it is neither dialled nor told about."""
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
        crd_key = Key("", f"{self._provider.resource.plural}.{self._provider.resource.group}")
        try:
            crd = await self._kube.get(CRDS, crd_key, metadata_only=True)
        except NotFound:
            return Policy.DETACH
        ephemeral = labels_of(namespace).get(EPHEMERAL_LABEL) == "true"
        ends = not namespace or deleting(namespace)
        return Policy.DETACH if deleting(crd) or (ends and not ephemeral) else wanted

    async def _observe(
        self, obj: Object, envelope: Envelope, target: Target[SpecT], lifecycle: Lifecycle
    ) -> tuple[Account[SpecT, ConfigT] | None, Observation[SpecT]]:
        if lifecycle.deleting and (lifecycle.policy is Policy.DETACH or not lifecycle.held):
            return None, Unknown("Deleting", "not looked at")
        if text := self._not_allowed(obj, envelope):
            return None, Unknown("NotAllowed", text)
        try:
            account = await self._accounts.connect(envelope.provider_config_ref.name)
            marks = record.marks_of(obj, absent_since=None)
            recorded = marks.account
            if not account.changed and recorded and account.id in accepted_accounts(account.config_object):
                seen = await account.cloud.observe(target)
                if recorded == account.id or is_same_database(target, marks, seen):
                    return account, seen
            if account.changed or (recorded and recorded != account.id):
                text = account.changed or (
                    f"the database lives in account {recorded}, the ProviderConfig reaches {account.id}; nothing is"
                    " changed until it reaches the former again"
                )
                return replace(account, changed=text), Unknown("AccountChanged", text)
            return account, await account.cloud.observe(target)
        except Failure as failure:
            return None, unknown_of(failure)

    async def _bounds(
        self,
        obj: Object,
        envelope: Envelope,
        account: Account[SpecT, ConfigT] | None,
        desired: Desired[SpecT],
        intent: Intent | None,
    ) -> Bounds:
        marks = record.marks_of(obj, absent_since=None)
        bounds = Bounds(
            grace=self._settings.grace,
            takeover=self._settings.takeover,
            translator=self._provider.translator,
            eventual=self._provider.slow,
            stateful=self._provider.stateful,
            delete_intended=intent is not None
            and any(call.kind == "Delete" and call.incarnation == marks.incarnation for call in intent.calls),
        )
        if intent is not None and intent.by != self._settings.process:
            known = intent.format == record.INTENT_FORMAT
            text = "" if known else f"a newer provider (intent format {intent.format}) was at work; upgrade this one"
            bounds = replace(bounds, intent_until=intent.not_after if known else None, intent_unknown=text)
        if account is None:
            return replace(bounds, not_allowed=self._not_allowed(obj, envelope))
        namespace = self._namespace(obj)
        if not account.changed and not desired.lifecycle.deleting:
            bounds = await self._counted(obj, account, bounds)
        allowance = self._limiter.allowance(obj, account, namespace, delete_intended=bounds.delete_intended)
        bounds = await self._followed(obj, account, bounds)
        bounds = replace(
            bounds,
            **asdict(allowance),
            account_changed=account.changed,
            refusal=bounds.refusal or account.cloud.objection(desired.spec),
        )
        if account.changed or desired.lifecycle.deleting:
            return bounds
        return await self._searched(account, desired, marks, bounds)

    async def _seen_bounds(
        self,
        account: Account[SpecT, ConfigT],
        target: Target[SpecT],
        marks: Marks,
        observation: Observation[SpecT],
        bounds: Bounds,
    ) -> Bounds:
        """Add what follows from what was seen: whether its window is open, which backup a lost one has."""
        match observation:
            case Present(observed=observed):
                return replace(bounds, window_open=self._provider.window_open(observed, self._settings.now()))
            case Absent() if marks.incarnation and self._provider.stateful and not target.leaving:
                with suppress(Failure):
                    bounds = replace(bounds, backups=await account.cloud.restorable(target))
                with suppress(Failure):
                    return replace(bounds, backup=await account.cloud.backup_of(target))
            case Absent() if marks.restoring and not target.leaving:
                with suppress(Failure):
                    return replace(bounds, backups=await account.cloud.restorable(target))
        return bounds

    async def _kept(
        self,
        account: Account[SpecT, ConfigT],
        target: Target[SpecT],
        marks: Marks,
        absent: Absent,
        bounds: Bounds,
    ) -> tuple[Bounds, Absent | Unknown]:
        """Look for the backup without which nothing is let go: the final one, or any of what others took away."""
        if not marks.incarnation or not self._provider.stateful:
            return bounds, absent
        try:
            kept = await account.cloud.backup_of(replace(target, leaving=bounds.delete_intended))
        except Failure as failure:
            return bounds, unknown_of(failure)
        return replace(bounds, backup=kept), absent

    async def _followed(self, obj: Object, account: Account[SpecT, ConfigT], bounds: Bounds) -> Bounds:
        """Ask after the operation under way; one that failed is told like a refusal, and asked for again later."""
        operation = record.operation_of(obj)
        if operation is None or account.changed:
            return bounds
        try:
            ended = await account.cloud.poll(operation)
        except (Terminal, Blocked) as failure:
            return replace(bounds, refusal=(failure.reason, failure.message))
        except Failure:
            ended = False
        return bounds if ended else replace(bounds, operating=operation.kind)

    async def _counted(self, obj: Object, account: Account[SpecT, ConfigT], bounds: Bounds) -> Bounds:
        """List the account once in the life of this process where a limit counts what is there without a resource."""
        if not self._limiter.wants_list(obj, account):
            return bounds
        try:
            async with self._counting:
                if self._limiter.wants_list(obj, account):
                    sweep = await account.cloud.observe_all()
                    self._limiter.listed(key_of(account.config_object).name, account.id, sweep)
        except Failure as failure:
            unknown = unknown_of(failure)
            return replace(bounds, refusal=(unknown.reason, unknown.message))
        return bounds

    async def _searched(
        self, account: Account[SpecT, ConfigT], desired: Desired[SpecT], marks: Marks, bounds: Bounds
    ) -> Bounds:
        """Search for predecessors before a first create only: afterwards the marks say what is ours."""
        if marks.incarnation or marks.restoring:
            return bounds
        try:
            return replace(bounds, predecessors=await account.cloud.find(desired.owner))
        except Failure as failure:
            unknown = unknown_of(failure)
            return replace(bounds, refusal=(unknown.reason, unknown.message))

    async def _named_predecessor(
        self,
        desired: Desired[SpecT],
        bounds: Bounds,
        account: Account[SpecT, ConfigT] | None,
        target: Target[SpecT],
        seen: Observation[SpecT],
    ) -> tuple[Target[SpecT], Observation[SpecT]]:
        """Look at the predecessor that a person named instead of at the name by rule."""
        for found in bounds.predecessors:
            if account is not None and desired.consent.adopt == found.incarnation:
                hash_ = self._provider.hash_of(target.spec, found.name) or target.hash
                target = replace(target, name=found.name, hash=hash_)
                return target, await account.cloud.observe(target)
        return target, seen

    @staticmethod
    def _named_by_rule(target: Target[SpecT], by_rule: str, bounds: Bounds) -> Bounds:
        """Make nothing under a name that a person gave: such a name is for taking over what is there."""
        if target.name == by_rule:
            return bounds
        text = f"there is no {target.name} to take over; remove fairlead.dev/external-name to have a new database"
        return replace(bounds, refusal=("AdoptionRefused", text))

    def _absence(self, obj: Object, observation: Observation[SpecT], now: datetime) -> datetime | None:
        """Remember since when an object's database is not found; a restart begins the grace anew, which is safe."""
        key, uid = key_of(obj), str(obj["metadata"]["uid"])
        if not isinstance(observation, Absent):
            if isinstance(observation, Present):
                self._absent_since.pop(key, None)
            return None
        known = self._absent_since.get(key)
        if known is None or known[0] != uid:
            self._absent_since[key] = (uid, now)
            return None
        return known[1]

    def forget(self, key: Key) -> None:
        """Drop what is remembered of an object that is gone."""
        self._absent_since.pop(key, None)
        self._passwords.forget(key)

    def _scene(self, scene: Scene[SpecT], envelope: Envelope, target: Target[SpecT]) -> Scene[SpecT]:
        match scene.observation:
            case Present(observed=observed):
                changes = differences(self._provider, envelope, target, observed, scene.marks.applied_keys)
                return replace(scene, changes=changes, observed_hash=digest(observed.spec))
            case _:
                return scene


def _with_recorded(
    obj: Object, observation: Observation[SpecT], marks: Marks, target: Target[SpecT]
) -> tuple[Marks, Target[SpecT]]:
    """Add what the cloud remembers of a database that is gone: annotations and status may have been lost with a backup.

    What a person gave up already is not remembered: the create that this allowed may have been cut off.
    """
    if not isinstance(observation, Absent) or not observation.recorded:
        return marks, target
    if ("recreate", observation.recorded) in used_consents(obj):
        return marks, target
    known = observation.recorded
    return replace(marks, incarnation=known, external_name=target.name), replace(target, incarnation=known)
