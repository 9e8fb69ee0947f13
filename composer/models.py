"""The kinds the composer reads and writes, as frozen data. Field for field the schemas in crds/. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from apis.connection import PasswordRecord
from apis.identity import NameRule
from apis.teardown import DeletionPolicy
from composer.inventory import Entry

Size = Literal["small", "medium", "large", "xlarge"]
Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
RolloutPhase = Literal["Progressing", "Soaking", "Paused", "Finished", "Halted", "Reverted", "Superseded"]
Expressions = dict[str, Any]
"""A tree whose texts may hold expressions; checked by `composer.render.template`."""


class _Frozen(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What all have in common: immutable, camelCase on the wire, unset fields left out."""


class NameRef(_Frozen, frozen=True):
    """Names one object."""

    name: str


class LabelSelector(_Frozen, frozen=True):
    """Selects by labels; empty selects everything."""

    match_labels: dict[str, str] = {}

    def matches(self, labels: dict[str, str]) -> bool:
        """Return whether all labels agree."""
        return all(labels.get(name) == value for name, value in self.match_labels.items())


class TypeRef(_Frozen, frozen=True):
    """Names one kind of claim."""

    api_version: str
    kind: str


class AllowedNamespaces(_Frozen, frozen=True):
    """Whose claims may use a Composition: namespaces by name, and those with the labels; neither means nobody."""

    names: tuple[str, ...] = ()
    selector: LabelSelector | UnsetType = UNSET

    def admits(self, namespace: str, labels: dict[str, str]) -> bool:
        """Return whether a namespace is one of them."""
        by_labels = not isinstance(self.selector, UnsetType) and self.selector.matches(labels)
        return namespace in self.names or by_labels


class AppliesTo(_Frozen, frozen=True):
    """Which claims get a Composition that they did not name."""

    namespace_selector: LabelSelector = LabelSelector()
    claim_selector: LabelSelector = LabelSelector()
    priority: int = 0


class ResourceTemplate(_Frozen, frozen=True):
    """One composed resource. `when`, `for_each` and `ready_when` are expressions, empty when not given.

    `carried_out` is, by the path of a floor, the path in the object's status of what was carried out of it.
    `name_prefix` and `name_limit` bound the names of its objects; 0 is no limit of its own.
    """

    name: str
    template: Expressions
    when: str = ""
    for_each: str = ""
    depends_on: tuple[str, ...] = ()
    ready_when: str = ""
    moved_from: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    carried_out: Mapping[str, str] = {}
    stateful: bool | UnsetType = UNSET
    name_prefix: str = ""
    name_limit: int = 0

    @property
    def name_rule(self) -> NameRule:
        """The rule of its objects' names."""
        return NameRule(self.name_prefix, self.name_limit)


class PasswordTemplate(_Frozen, frozen=True):
    """A password that the composer makes, once for each claim and rotation."""

    name: str


class Rollout(_Frozen, frozen=True):
    """How a changed Composition reaches its claims."""

    waves: tuple[str, ...] = ()
    max_failed: int = 0
    soak_seconds: int = 300
    progress_deadline_seconds: int = 3600
    on_failure: Literal["Halt", "Rollback"] = "Halt"


class FieldOffering(_Frozen, frozen=True):
    """What of one field of a claim a Composition serves; more is refused before anything is rendered.

    `values`: of a list its elements, of a map its names. `refused`: the sentence that refuses the field as a whole.
    """

    values: tuple[str, ...] = ()
    minimum: int | UnsetType = UNSET
    maximum: int | UnsetType = UNSET
    refused: str = ""


class CompositionSpec(_Frozen, frozen=True):
    """How one kind of claim is expanded. `offerings`: by the path of a field below the claim's spec."""

    composite_type_ref: TypeRef
    resources: tuple[ResourceTemplate, ...]
    applies_to: AppliesTo | UnsetType = UNSET
    allowed_namespaces: AllowedNamespaces | UnsetType = UNSET
    environments: tuple[str, ...] = ()
    deletion_policies: tuple[DeletionPolicy, ...] = ("Orphan",)
    offerings: Mapping[str, FieldOffering] = msgspec.field(name="offers", default={})
    variables: Expressions = {}
    passwords: tuple[PasswordTemplate, ...] = ()
    connection: Expressions = {}
    status: Expressions = {}
    rollout: Rollout | UnsetType = UNSET
    revision_history_limit: int = 10


class CompositionRevisionSpec(_Frozen, frozen=True):
    """A Composition as it was: `composition` is its spec as it was written.

    `environments`: the data of the environments that it reads, by name.
    """

    composition_name: str
    revision: int
    hash: str
    composition: dict[str, Any]
    environments: dict[str, Any] = {}


class CompositionChoice(_Frozen, frozen=True):
    """The Composition and the revision in use; the rest where revisions go by waves: how the claim came to it.

    `input`: what the claim's owner wrote then, in short, by `composer.composition.rollout_claims.input_of`.
    """

    name: str = ""
    revision: str = ""
    since: str = ""
    previous: str = ""
    was_ready: bool | UnsetType = UNSET
    input: str = ""


class Binding(_Frozen, frozen=True):
    """The Secret with the credentials (Service Binding 1.1, Provisioned Service)."""

    name: str


class Rotation(_Frozen, frozen=True):
    """Asks for a new password: each new token once, with `force` without a grace for the former one."""

    token: str
    force: bool | None = None


class ClaimSpec(_Frozen, frozen=True):
    """What the engine itself reads of any kind of claim; templates see the whole spec."""

    deletion_policy: DeletionPolicy = "Orphan"
    deletion_protection: bool = False
    composition_ref: NameRef | UnsetType = UNSET
    composition_selector: LabelSelector | UnsetType = UNSET
    composition_revision_ref: NameRef | UnsetType = UNSET
    connection_secret_name: str = ""
    password_rotation: Rotation | UnsetType = UNSET


class Backup(_Frozen, frozen=True):
    """Automatic backups; `start_time` is HH:MM in UTC."""

    retention_days: int | UnsetType = UNSET
    start_time: str | UnsetType = UNSET


class MaintenanceWindow(_Frozen, frozen=True):
    """One hour of the week, in UTC."""

    day: Day
    hour: int


class Network(_Frozen, frozen=True):
    """From where the database may be reached."""

    public: bool = False
    allowed_cidrs: tuple[str, ...] = msgspec.field(name="allowedCIDRs", default=())


class RestoreSource(_Frozen, frozen=True):
    """The backup that a database starts from."""

    claim: str | UnsetType = UNSET
    backup: str | UnsetType = UNSET
    time: str | UnsetType = UNSET


class PostgreSQLInstanceSpec(ClaimSpec, frozen=True, kw_only=True):
    """What an application needs of PostgreSQL."""

    version: Literal["14", "15", "16", "17", "18"]
    size: Size | UnsetType = UNSET
    cpu: int | UnsetType = UNSET
    memory_gib: int | UnsetType = msgspec.field(name="memoryGiB", default=UNSET)
    storage_gib: int | UnsetType = msgspec.field(name="storageGiB", default=UNSET)
    high_availability: bool = False
    backup: Backup | UnsetType = UNSET
    maintenance_window: MaintenanceWindow | UnsetType = UNSET
    network: Network | UnsetType = UNSET
    database_name: str | UnsetType = UNSET
    username: str | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    password_secret_ref: NameRef | UnsetType = UNSET
    restore_from: RestoreSource | UnsetType = UNSET


class StatusCondition(_Frozen, frozen=True):
    """One condition as it is stored (metav1.Condition)."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int = 0


class ClaimStatus(_Frozen, frozen=True):
    """The status of a claim, which is all that the composer remembers of it.

    A composition may set `endpoint`, `port`, `version`, `storageGiB`, `notes` and more beside it.
    """

    observed_generation: int = -1
    conditions: tuple[StatusCondition, ...] = ()
    identity: str = ""
    composition: CompositionChoice = CompositionChoice()
    deletion_policy: DeletionPolicy | UnsetType = UNSET
    binding: Binding | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    port: int | UnsetType = UNSET
    version: str | UnsetType = UNSET
    storage_gib: int | UnsetType = msgspec.field(name="storageGiB", default=UNSET)
    notes: tuple[str, ...] = ()
    connection_hash: str = ""
    last_handled_reconcile_at: str = ""
    passwords: tuple[PasswordRecord, ...] = ()
    inventory: tuple[Entry, ...] = ()


class OfferedValue(_Frozen, frozen=True):
    """One value of a field, and what the Composition's own table has for it."""

    value: str
    means: str = ""


class OfferedField(_Frozen, frozen=True):
    """What a claim may have in one field, by its path below spec.

    `note`: what becomes of it where that is not what it says. `refused`: why no claim may have it.
    """

    path: str
    type: str = ""
    required: bool = False
    default: str = ""
    values: tuple[OfferedValue, ...] = ()
    minimum: int | UnsetType = UNSET
    maximum: int | UnsetType = UNSET
    note: str = ""
    refused: str = ""


class Offerings(_Frozen, frozen=True):
    """What claims may ask for by a Composition. `hash`: of the content that it was computed of."""

    hash: str = ""
    fields: tuple[OfferedField, ...] = ()
    regions: tuple[str, ...] = ()


class CompositionStatus(_Frozen, frozen=True):
    """The status of a Composition."""

    observed_generation: int = -1
    conditions: tuple[StatusCondition, ...] = ()
    revision: str = ""
    offerings: Offerings | UnsetType = msgspec.field(name="offers", default=UNSET)
    last_handled_reconcile_at: str = ""


class RolloutFailure(_Frozen, frozen=True):
    """One claim that failed in a rollout, as namespace/name, and why."""

    claim: str
    reason: str
    message: str


class RolloutStatus(_Frozen, frozen=True):
    """How far a revision has come; `through` is the rank that it has reached, `everyone`: all claims have.

    `revision` is the number that the state is of: content that comes back gets a new one. `opened`: when the open wave
    was opened (RFC 3339); a claim that came later is in the next. `paused`: how many paused claims do not have it.
    """

    revision: int
    phase: RolloutPhase
    wave: int = 0
    waves: int = 0
    since: str = ""
    opened: str = ""
    through: str = ""
    everyone: bool = False
    total: int = 0
    updated: int = 0
    paused: int = 0
    failed: int = 0
    failures: tuple[RolloutFailure, ...] = ()


class CompositionRevisionStatus(_Frozen, frozen=True):
    """The status of a revision."""

    observed_generation: int = -1
    conditions: tuple[StatusCondition, ...] = ()
    rollout: RolloutStatus | UnsetType = UNSET


class PostgreSQLInstance(_Frozen, frozen=True):
    """The abstract kind that ships with Fairlead."""

    spec: PostgreSQLInstanceSpec
    status: ClaimStatus = ClaimStatus()


class Composition(_Frozen, frozen=True):
    """How a claim is expanded, by the platform team."""

    spec: CompositionSpec
    status: CompositionStatus = CompositionStatus()


class CompositionRevision(_Frozen, frozen=True):
    """A Composition as it was at one time."""

    spec: CompositionRevisionSpec
    status: CompositionRevisionStatus = CompositionRevisionStatus()


CRD_MODELS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("PostgreSQLInstance", PostgreSQLInstance),
    ("Composition", Composition),
    ("CompositionRevision", CompositionRevision),
)
"""Every CRD of the composer and the model of its objects."""
