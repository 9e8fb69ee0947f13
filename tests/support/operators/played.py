"""Other operators, played on a real API server: what each writes about a claim's objects, in the order of its source.

CloudNativePG writes its Secrets before the phase, and the phase before the condition. Zalando writes Secrets and then
its phase, and has no conditions. ACK writes the state of RDS beside conditions of its own types. Config Connector and
Azure Service Operator write a condition Ready, which names the generation that was carried out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import yaml_texts
from tests.support.api import Api, JsonObject
from tests.support.kinds import SECRET, Kind
from tests.support.waiting import eventually

_CRDS = Path(__file__).resolve().parent / "crds"
# The folder of `make operators CRDS=...`: the operators' own CRDs, in folders of the same names.
_OWN_CRDS = "OPERATOR_CRDS"
Status = dict[str, Any]


def crd_files(operator: str) -> list[Path]:
    """Return the files of an operator's CRDs: its own where a folder has them, else those that are modelled on them."""
    own = Path(os.environ.get(_OWN_CRDS) or "/nonexistent") / operator
    return sorted((own if own.is_dir() else _CRDS / operator).glob("*.yaml"))


def crds(operator: str) -> Iterator[JsonObject]:
    """Yield an operator's CRDs without what an API server wrote of them."""
    for path in crd_files(operator):
        crd: JsonObject = yaml_texts.load(path)
        crd.pop("status", None)
        yield crd


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an operator writes: the status of the claim's object of a kind, or a Secret."""

    kind: Kind | None
    status: Status = field(default_factory=dict)
    secret: Callable[[str], JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class PasswordRef:
    """The kind whose spec names the Secret of a password, and the path of that name."""

    kind: Kind
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """One operator.

    Attributes:
        name: Of its folder, its Composition and the namespaces' label.
        kinds: What its Composition makes and it reconciles, the source of the connection first.
        environment: The ConfigMap that its Composition reads.
        rise: What it writes until all is up; a status names the generation where `observed` says so.
        failure: What it writes when it gives up on the source, and words of it.
        storage: The path of the storage in the source, and what it is for a claim of 40 GiB.
        connection: The keys of the connection Secret beside those that follow from them, but for the password.
        password_ref: Where an object names the password that the composer makes; None where the operator makes it.
        observed: Whether its conditions or statuses name the generation.
    """

    name: str
    kinds: tuple[Kind, ...]
    environment: Mapping[str, str]
    rise: tuple[Step, ...]
    failure: tuple[Status, str]
    storage: tuple[tuple[str, ...], object]
    connection: Callable[[str, str], Mapping[str, str]]
    password_ref: PasswordRef | None = None
    observed: bool = False

    @property
    def source(self) -> Kind:
        return self.kinds[0]

    async def bring_up(self, api: Api, namespace: str, claim: str) -> None:
        """Play everything from the first sight of the claim's objects until all of them are up."""
        for step in self.rise:
            await self.play(api, namespace, claim, step)

    async def bring_up_what_is_there(self, api: Api, namespace: str, claim: str) -> None:
        """Play each step whose object is there: what one object reports may have the next one made."""
        for step in self.rise:
            if await self.children(api, namespace, claim, step.kind):
                await self.play(api, namespace, claim, step)

    async def fail(self, api: Api, namespace: str, claim: str) -> None:
        """Play that the operator gives up on the source of the connection."""
        await self.play(api, namespace, claim, Step(self.source, self.failure[0]))

    async def play(self, api: Api, namespace: str, claim: str, step: Step) -> None:
        """Write one step, once its object is there."""
        kind = step.kind or self.source
        obj = await self.child(api, namespace, claim, kind)
        if step.secret is not None:
            secret = step.secret(obj["metadata"]["name"])
            await _write_secret(api, namespace, secret)
            return
        status = self._of_generation(step.status, obj["metadata"]["generation"])
        await api.merge(kind.path(namespace, obj["metadata"]["name"], "status"), {"status": status})

    def _of_generation(self, status: Status, generation: int) -> Status:
        if not self.observed:
            return status
        conditions = [{**condition, "observedGeneration": generation} for condition in status.get("conditions", ())]
        if self.name == "aso":
            return {**status, "conditions": conditions}
        return {**status, "observedGeneration": generation}

    async def until_named(self, api: Api, namespace: str, claim: str, secret: str) -> None:
        """Wait until the claim's object names the Secret of a password: an operator sees a new one by that alone."""
        assert self.password_ref is not None
        kind, path = self.password_ref.kind, self.password_ref.path

        async def is_named() -> bool:
            return bool(value_at(await self.child(api, namespace, claim, kind), path) == secret)

        await eventually(is_named, f"{'.'.join(path)} of the {kind.kind} of {claim} is {secret}", limit_s=120.0)

    async def child(self, api: Api, namespace: str, claim: str, kind: Kind | None = None) -> JsonObject:
        """Return the claim's one object of a kind once it is there, the source's without a kind."""
        wanted = kind or self.source

        async def there() -> JsonObject | None:
            children = await self.children(api, namespace, claim, wanted)
            return children[0] if len(children) == 1 else None

        return await eventually(there, f"the {wanted.kind} of {claim}", limit_s=120.0)

    async def children(self, api: Api, namespace: str, claim: str, kind: Kind | None = None) -> list[JsonObject]:
        """Return all objects of a kind that the claim made, also those that it does not own any more."""
        items = await api.items((kind or self.source).path(namespace))
        return [
            item
            for item in items
            if (item["metadata"].get("annotations") or {}).get("fairlead.dev/claim-name") == claim
        ]


async def _write_secret(api: Api, namespace: str, secret: JsonObject) -> None:
    path = SECRET.path(namespace, secret["metadata"]["name"])
    if await api.find(path) is None:
        await api.create(SECRET.path(namespace), secret)
    else:
        await api.merge(path, {"stringData": secret["stringData"]})


def value_at(obj: JsonObject, path: tuple[str, ...]) -> Any:
    """Return the value at a path of an object."""
    value: Any = obj
    for name in path:
        value = value[name]
    return value


def _condition(type_: str, status: str, reason: str = "", message: str = "", **more: Any) -> JsonObject:
    made = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**made, "lastTransitionTime": "2026-11-01T00:00:00Z", **more}


def _secret(name: str, **data: str) -> JsonObject:
    return SECRET.new("", name, stringData=data)


# CloudNativePG

CLUSTER = Kind("postgresql.cnpg.io", "v1", "Cluster", "clusters")
SCHEDULE = Kind("postgresql.cnpg.io", "v1", "ScheduledBackup", "scheduledbackups")
_NOT_UP = _condition("Ready", "False", "ClusterIsNotReady", "Cluster Is Not Ready")
_UP = _condition("Ready", "True", "ClusterIsReady", "Cluster is Ready")
_LOST = "Cluster is unrecoverable and needs manual intervention"


def cnpg_login(password: str, **server: str) -> Callable[[str], JsonObject]:
    """Return what makes the Secret `<cluster>-app` with a password; `server` says where it really is."""

    def made(name: str) -> JsonObject:
        login = {"username": "orders_app", "password": password, "dbname": "orders"}
        return _secret(f"{name}-app", **{"host": f"{name}-rw", "port": "5432", **login, **server})

    return made


def cnpg_authority(pem: str) -> Callable[[str], JsonObject]:
    """Return what makes the Secret `<cluster>-ca`."""
    return lambda name: _secret(f"{name}-ca", **{"ca.crt": pem})


CNPG = Played(
    "cnpg",
    (CLUSTER, SCHEDULE),
    {"image": "ghcr.io/cloudnative-pg/postgresql", "snapshotClass": "csi"},
    rise=(
        Step(None, secret=cnpg_authority("PEM")),
        Step(None, secret=cnpg_login("first")),
        Step(CLUSTER, {"phase": "Setting up primary", "phaseReason": "Creating primary instance"}),
        Step(CLUSTER, {"conditions": [_NOT_UP], "writeService": "orders-rw"}),
        Step(CLUSTER, {"phase": "Cluster in healthy state", "phaseReason": None, "conditions": [_UP]}),
        Step(SCHEDULE, {"lastCheckTime": "2026-11-23T02:00:00Z"}),
    ),
    failure=({"phase": _LOST, "conditions": [_NOT_UP]}, _LOST),
    storage=(("spec", "storage", "size"), "40Gi"),
    connection=lambda name, _namespace: {
        "host": f"{name}-rw",
        "port": "5432",
        "database": "orders",
        "username": "orders_app",
        "sslmode": "verify-full",
        "certificates": "PEM",
        "provider": "postgresql.cnpg.io",
    },
)

# Zalando

POSTGRESQL = Kind("acid.zalan.do", "v1", "postgresql", "postgresqls")


def zalando_login(password: str) -> Callable[[str], JsonObject]:
    """Return what makes the Secret of the user with a password."""
    suffix = "credentials.postgresql.acid.zalan.do"
    return lambda name: _secret(f"orders-app.{name}.{suffix}", username="orders_app", password=password)


ZALANDO = Played(
    "zalando",
    (POSTGRESQL,),
    {},
    rise=(
        Step(POSTGRESQL, {"PostgresClusterStatus": "Creating"}),
        Step(None, secret=zalando_login("first")),
        Step(POSTGRESQL, {"PostgresClusterStatus": "Running"}),
    ),
    failure=({"PostgresClusterStatus": "CreateFailed"}, "CreateFailed"),
    storage=(("spec", "volume", "size"), "40Gi"),
    connection=lambda name, namespace: {
        "host": f"{name}.{namespace}.svc",
        "port": "5432",
        "database": "orders",
        "username": "orders_app",
        "sslmode": "require",
        "provider": "acid.zalan.do",
    },
)

# ACK

INSTANCE = Kind("rds.services.k8s.aws", "v1alpha1", "DBInstance", "dbinstances")
_ADDRESS = "orders.abc.eu-west-1.rds.amazonaws.com"
_UNSYNCED = _condition("ACK.ResourceSynced", "False", message="DB Instance not available")
_SYNCED = _condition("ACK.ResourceSynced", "True")
_TERMINAL = _condition("ACK.Terminal", "True", message="InvalidParameterValue: allocatedStorage")

ACK = Played(
    "ack",
    (INSTANCE,),
    {"subnetGroupName": "databases", "securityGroupID": "sg-0123"},
    rise=(
        Step(INSTANCE, {"conditions": [_UNSYNCED], "dbInstanceStatus": "creating"}),
        Step(INSTANCE, {"dbInstanceStatus": "available", "endpoint": {"address": _ADDRESS, "port": 5432}}),
        Step(INSTANCE, {"conditions": [_SYNCED]}),
    ),
    failure=({"conditions": [_UNSYNCED, _TERMINAL]}, "InvalidParameterValue: allocatedStorage"),
    storage=(("spec", "allocatedStorage"), 40),
    connection=lambda _name, _namespace: {
        "host": _ADDRESS,
        "port": "5432",
        "database": "orders",
        "username": "orders_app",
        "sslmode": "require",
        "provider": "rds.services.k8s.aws",
    },
    password_ref=PasswordRef(INSTANCE, ("spec", "masterUserPassword", "name")),
)

# Config Connector

_SQL = "sql.cnrm.cloud.google.com"
USER = Kind(_SQL, "v1beta1", "SQLUser", "sqlusers")
SQL_INSTANCE = Kind(_SQL, "v1beta1", "SQLInstance", "sqlinstances")
SQL_DATABASE = Kind(_SQL, "v1beta1", "SQLDatabase", "sqldatabases")
_UPDATING = _condition("Ready", "False", "Updating", "Update in progress")
_UP_TO_DATE = _condition("Ready", "True", "UpToDate", "The resource is up to date")
_REFUSED = _condition("Ready", "False", "UpdateFailed", "Error 400: Invalid tier")

KCC = Played(
    "kcc",
    (SQL_INSTANCE, SQL_DATABASE, USER),
    {"region": "europe-west1", "privateNetwork": "projects/shop/global/networks/databases"},
    rise=(
        Step(SQL_INSTANCE, {"conditions": [_UPDATING]}),
        Step(
            SQL_INSTANCE,
            {"conditions": [_UP_TO_DATE], "privateIpAddress": "10.1.2.3", "serverCaCert": {"cert": "PEM"}},
        ),
        Step(SQL_DATABASE, {"conditions": [_UP_TO_DATE]}),
        Step(USER, {"conditions": [_UP_TO_DATE]}),
    ),
    failure=({"conditions": [_REFUSED]}, "Error 400: Invalid tier"),
    storage=(("spec", "settings", "diskSize"), 40),
    connection=lambda _name, _namespace: {
        "host": "10.1.2.3",
        "port": "5432",
        "database": "orders",
        "username": "orders_app",
        "sslmode": "verify-ca",
        "certificates": "PEM",
        "provider": _SQL,
    },
    password_ref=PasswordRef(USER, ("spec", "password", "valueFrom", "secretKeyRef", "name")),
    observed=True,
)

# Azure Service Operator

_AZURE = "dbforpostgresql.azure.com"
SERVER = Kind(_AZURE, "v20250801", "FlexibleServer", "flexibleservers")
SERVER_DATABASE = Kind(_AZURE, "v20250801", "FlexibleServersDatabase", "flexibleserversdatabases")
_RECONCILING = _condition("Ready", "False", "Reconciling", "The resource is in the process", severity="Info")
_SUCCEEDED = _condition("Ready", "True", "Succeeded")
_INVALID = _condition("Ready", "False", "InvalidParameter", "sku is not available", severity="Error")
_FQDN = "fl-orders.postgres.database.azure.com"

ASO = Played(
    "aso",
    (SERVER, SERVER_DATABASE),
    {
        "resourceGroupID": "/subscriptions/s/resourceGroups/shop",
        "location": "westeurope",
        "delegatedSubnetID": "/subscriptions/s/subnets/databases",
        "privateDnsZoneID": "/subscriptions/s/zones/databases",
    },
    rise=(
        Step(SERVER, {"conditions": [_RECONCILING]}),
        Step(
            SERVER,
            {"conditions": [_SUCCEEDED], "state": "Ready", "version": "16", "fullyQualifiedDomainName": _FQDN},
        ),
        Step(SERVER_DATABASE, {"conditions": [_SUCCEEDED]}),
    ),
    failure=({"conditions": [_INVALID]}, "sku is not available"),
    storage=(("spec", "storage", "storageSizeGB"), 64),
    connection=lambda _name, _namespace: {
        "host": _FQDN,
        "port": "5432",
        "database": "orders",
        "username": "orders_app",
        "sslmode": "verify-full",
        "sslrootcert": "system",
        "provider": _AZURE,
    },
    password_ref=PasswordRef(SERVER, ("spec", "administratorLoginPassword", "name")),
    observed=True,
)

ALL = (CNPG, ZALANDO, ACK, KCC, ASO)
