"""All reads of a pass: what belongs to the object in Kubernetes; the cloud and the credentials by their readers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Generic

import msgspec

from apis.names import EPHEMERAL_LABEL
from apis.teardown import Policy, instruction_of
from providers.accounts.answers import Answers
from providers.accounts.connections import Accounts
from providers.accounts.destroys import MADE_AT
from providers.accounts.limits import Limiter
from providers.accounts.turns import Holder
from providers.credentials.passwords import own_password
from providers.external.client import Target
from providers.external.config import refuse_namespace
from providers.external.consent import SERVER_ENTRY, consent_of
from providers.external.diff import missing as missing_fields
from providers.external.observation import Absent, ExternalRef, Observation, Present, SpecT, Unknown, digest
from providers.external.ownership import Identity, held, identity_of, owner_of
from providers.external.provider import ConfigT, Kind, LoginRules
from providers.external.spec import Envelope
from providers.managed import record, unanswered
from providers.managed.cloud_reader import CloudReader, Look, refusal_of
from providers.managed.decisions.adoption import with_preview
from providers.managed.decisions.attempts import NOTHING_TRIED, Attempts
from providers.managed.inputs import Inputs, Lifecycle, with_differences
from providers.managed.password_reader import PasswordReader
from providers.managed.references import References
from providers.settings import Settings
from runtime import kubectl
from runtime.cache import Cache, Informer
from runtime.conditions import instant
from runtime.errors import Conflict, Failure, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import CRDS, NAMESPACES, Key, Object, deleting, generation_of, key_of, labels_of, status_of, uid_of
from runtime.replaced import replace

_PREFIX = "fl-"
_ALTERNATING = "Alternating"
_NAMELESS = (
    "nothing says what is to be observed: name it as its cloud does in the annotation fairlead.dev/external-name (the"
    " platform team may), or set all required fields"
)


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
        self._objects: Informer = cache.informer(kind.resource)
        self.turns.add(kind.resource.kind, self._objects.store)
        self._kube = kube
        self._accounts = accounts
        self._settings = settings
        self._namespaces: Informer = cache.informer(NAMESPACES, selection=Selection(metadata_only=True))
        self._limiter = Limiter(
            self._objects,
            accounts,
            settings.now,
            stateful=kind.stateful,
            inside=kind.inside,
            installation=settings.installation,
        )
        rules: LoginRules[SpecT, Any] | None = kind.logins
        self._passwords = None if rules is None else PasswordReader(rules, kube, settings)
        self._references = References(kind, cache)
        self._cloud: CloudReader[SpecT, ConfigT] = CloudReader(kind, accounts, settings, self._limiter)
        self._absent_since: dict[Key, tuple[str, datetime]] = {}

    @property
    def _is_listed_late(self) -> bool:
        """Whether looks and lists may be of before what they are about was made."""
        return self._kind.asynchronous and self._kind.stateful and not self._kind.inside

    @property
    def limiter(self) -> Limiter:
        """The counters of creates and destroys."""
        return self._limiter

    @property
    def answers(self) -> Answers:
        """What lists and looks answered last."""
        return self._cloud.answers

    async def gather(self, obj: Object, attempts: Attempts = NOTHING_TRIED, *, live: bool = False) -> Inputs[SpecT]:
        """Read all that the decision about `obj` needs, the cloud by a look of now where it has to be `live`."""
        now, identity = self._settings.now(), identity_of(obj)
        envelope = record.envelope_of(obj, self._kind.spec_type)
        resolved = self._references.resolve(obj, envelope.for_provider)
        envelope = msgspec.structs.replace(envelope, for_provider=resolved.spec)
        external_ref = record.external_ref_of(obj, absent_since=None)
        await self._look_at_namespace(obj, is_made=record.is_made(obj, external_ref, tagged=self._kind.tagged))
        lifecycle = await self._lifecycle(obj, envelope, identity, now)
        target = self._target(obj, envelope, identity, external_ref)
        unobserved = self._unobserved(obj, envelope, target, lifecycle, resolved.missing)
        look: Look[SpecT, ConfigT] = (
            await self._cloud.observe(obj, envelope.provider_config_ref.name, target, live=live)
            if unobserved is None
            else Look(None, unobserved)
        )
        account, observation = look.account, look.observation
        recorded, target = record.with_recorded(obj, observation, external_ref, target)
        allowed = await self._allowed(obj, envelope, look, target, lifecycle)
        # Nothing was learnt by a look that failed.
        is_failed = isinstance(look.observation, Unknown)
        allowed["last_seen"] = record.last_seen_of(obj) if is_failed else look.last_seen
        allowed["refusal"] = allowed.get("refusal") or resolved.missing
        if account is not None and not account.changed:
            facts, observation = await self._cloud.facts(
                account, target, observation, lifecycle.policy, now, delete_intended=allowed["delete_intended"]
            )
            allowed |= facts
        if allowed.get("predecessors") and isinstance(observation, Absent):
            named = await self._cloud.named_predecessor(consent_of(obj), allowed["predecessors"], account, target)
            target, observation = named or (target, observation)
        is_new = isinstance(observation, Absent) and not recorded.incarnation and not recorded.restoring
        if is_new and (record.is_named_by_others(obj) or target.name != self._by_rule(obj, envelope, identity)):
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
        return with_preview(self._kind, with_differences(self._kind, inputs))

    def _target(self, obj: Object, envelope: Envelope, identity: Identity, external_ref: ExternalRef) -> Target[SpecT]:
        spec: SpecT = envelope.for_provider
        name = external_ref.external_name or self._by_rule(obj, envelope, identity)
        if envelope.management_policy == "Observe" and external_ref.external_name:
            spec = self._kind.naming.filled(spec, name)
        status, last_seen = status_of(obj), record.last_seen_of(obj)
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
            only_observed=envelope.management_policy == "Observe",
            is_new=self._is_listed_late and record.is_new(obj, self._settings.now()),
            agreed=consent_of(obj).of("restoreFrom"),
            agreed_servers=self._agreed_servers(obj, envelope),
            siblings=self._siblings(obj, spec, identity),
            address=kubectl.address_of(self._kind.resource.kind, key_of(obj)),
            is_by_rule=name == self._by_rule(obj, envelope, identity),
            last_answer=b"" if last_seen is None else last_seen.answer,
            unanswered=unanswered.since(obj) if self._kind.doubts_creates else None,
        )

    def _agreed_servers(self, obj: Object, envelope: Envelope) -> tuple[str, ...]:
        """Return the servers of others in which the platform team agreed to an object; its ProviderConfig must too."""
        config = self._usable_config(obj, envelope) or {}
        return consent_of(obj).of(SERVER_ENTRY) if (config.get("spec") or {}).get("allowAdoption") is True else ()

    def _siblings(self, obj: Object, spec: SpecT, identity: Identity) -> tuple[SpecT, ...]:
        """Return the specs of what was made of this kind for the same claim, where `spec` names others."""
        if not self._kind.names_siblings(spec):
            return ()
        store, own = self._objects.store, key_of(obj)
        keys = store.keys()
        others = (store.get(key) for key in keys if key.namespace == own.namespace and key != own)
        made = (
            other
            for other in others
            if other is not None
            and identity_of(other).uid == identity.uid
            # In status, which the provider alone writes: an annotation may be anybody's.
            and MADE_AT in status_of(other)
        )
        specs = (record.envelope_of(other, self._kind.spec_type).for_provider for other in made)
        return tuple(self._references.resolve(obj, spec_of_other).spec for spec_of_other in specs)

    async def _look_at_namespace(self, obj: Object, *, is_made: bool) -> None:
        """Read the namespace live where the watch has none, and of an object for which nothing was made yet.

        The watch may be behind that of objects, and what is made carries the namespace's uid. Raises Conflict where it
        is gone, and any other ApiError of the read.
        """
        key = Key("", key_of(obj).namespace)
        if is_made and key in self._namespaces.store:
            return
        try:
            namespace = await self._kube.get(NAMESPACES, key, metadata_only=True)
        except NotFound as error:
            if is_made or deleting(obj):
                return
            raise Conflict(f"namespace {key.name} is gone") from error
        self._namespaces.store.remember(namespace)

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
        is_named = bool(record.external_ref_of(obj, absent_since=None).external_name)
        if envelope.management_policy == "Observe" and not is_named and missing_fields(target.spec):
            return Unknown("InvalidValue", _NAMELESS)
        if self._kind.server_of is not None and not self._kind.server_of(target):
            return record.without_server(obj, missing)
        return None

    async def _allowed(
        self,
        obj: Object,
        envelope: Envelope,
        look: Look[SpecT, ConfigT],
        target: Target[SpecT],
        lifecycle: Lifecycle,
    ) -> dict[str, Any]:
        """Return what others allow: the ProviderConfig, the account, another process that may be at work."""
        external_ref, intent = record.external_ref_of(obj, absent_since=None), record.intent_of(obj)
        account = look.account
        calls = intent.calls if intent is not None else ()
        deletes = [call for call in calls if call.kind == "Delete" and call.incarnation == external_ref.incarnation]
        delete_intended = bool(deletes)
        allowed: dict[str, Any] = {
            "grace": self._settings.grace,
            "settle": self._settings.settle,
            "takeover": self._settings.takeover,
            "projection": self._kind.projection,
            "eventual": self._kind.asynchronous,
            "stateful": self._kind.stateful,
            "inside": self._kind.inside,
            "tagged": self._kind.tagged,
            "revival": self._kind.revival,
            "delete_intended": delete_intended,
            "without_backup": any(call.change_hash == digest(Policy.DELETE.value) for call in deletes),
            "live": look.live,
            "listed": look.listed,
            "unlisted": look.unlisted,
        }
        if intent is not None and intent.by != self._settings.process:
            known = intent.format == record.INTENT_FORMAT
            text = "" if known else f"a newer provider (intent format {intent.format}) was at work; upgrade this one"
            allowed |= {"intent_until": intent.not_after if known else None, "intent_unknown": text}
        if account is None:
            return allowed | {"not_allowed": self._not_allowed(obj, envelope)}
        unlisted = None if account.changed or lifecycle.deleting else await self._cloud.ensure_listed(obj, account)
        allowance = self._limiter.allowance(obj, account, self._namespace(obj), delete_intended=delete_intended)
        operating, failed = await self._cloud.poll(obj, account)
        server = self._kind.server_of(target) if self._kind.server_of is not None else ""
        holder = self.turns.holder(account.id, server, self.holder_of(obj)) if server else None
        refusal = unlisted or account.clients.account.refusal(target.spec)
        allowed |= asdict(allowance) | {"operating": operating, "operation_failed": failed, "server": server}
        allowed |= {"account_changed": account.changed, "refusal": refusal, "turn_of": str(holder or "")}
        if account.changed or lifecycle.deleting or external_ref.incarnation or external_ref.restoring:
            return allowed
        if not isinstance(look.observation, Absent):
            return allowed
        # Predecessors are searched before a first create only: afterwards the external reference shows what is ours.
        try:
            return allowed | {"predecessors": await account.clients.account.find_predecessors(target.owner)}
        except Failure as failure:
            return allowed | {"refusal": refusal_of(failure)}

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
