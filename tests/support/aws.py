"""A simulated RDS beside a rig: its instances, a person's own calls, what the cluster holds of it."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import boto3
import botocore.config

from devcloud.aws.platform import ACCESS_KEY, ACCOUNT, REGION, SECURITY_GROUP, SUBNETS
from devcloud.certificates import authority_in
from devcloud.simulator.server import AUTHORITY
from tests.support.api import JsonObject
from tests.support.kinds import CONFIG_MAP, SECRET, Kind, is_ready
from tests.support.simulated_cloud import SimulatedCloud, place_beside, running
from tests.support.system import System
from tests.support.waiting import eventually

RDS_INSTANCE = Kind("aws.fairlead.dev", "v1alpha1", "RDSInstance", "rdsinstances")
DB_SUBNET_GROUP = Kind("aws.fairlead.dev", "v1alpha1", "DBSubnetGroup", "dbsubnetgroups")
DB_PARAMETER_GROUP = Kind("aws.fairlead.dev", "v1alpha1", "DBParameterGroup", "dbparametergroups")
AWS_CONFIG = Kind("aws.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
NAMESPACE = "fairlead-aws"
PROVIDER = f"system:serviceaccount:{NAMESPACE}:fairlead-provider-aws"
KEY_SECRET, CA_SECRET = "aws-key", "aws-ca"
PERSON = "user/alice"
_PERSON_KEY = "AKIAALICEATTHECONSOLE"


@dataclass(slots=True, kw_only=True)
class Aws(SimulatedCloud):
    """A simulated RDS and what its judges do to it; its URL is that of RDS and of STS.

    `verify` is the file of the authority of that endpoint, where it has TLS.
    """

    cloud: ClassVar[str] = "aws"
    person_principal: ClassVar[str] = PERSON
    secret_key: str = field(repr=False)
    person_key: str = field(repr=False)
    verify: str = ""

    async def strike(self, identifier: str, **change: Any) -> None:
        """Change an instance behind everybody's back: `status=`, `vanish=`, `replace=`, `set=`."""
        await self.control("POST", f"instances/{identifier}", change)

    async def instances(self) -> list[JsonObject]:
        """Return every instance of every account, with the fields of the wire."""
        instances: list[JsonObject] = await self.control("GET", "instances")
        return instances

    async def instance(self, identifier: str) -> JsonObject | None:
        """Return the instance of that identifier as the simulator has it, without lag."""
        return next(
            (instance for instance in await self.instances() if instance["DBInstanceIdentifier"] == identifier), None
        )

    # A person with a key of his own

    async def person(self, operation: str, /, *, service: str = "rds", **parameters: Any) -> JsonObject:
        """Call AWS as a person at the console does: boto3's name of an operation, and its parameters."""

        def call() -> JsonObject:
            client = boto3.client(
                service,
                region_name=REGION,
                endpoint_url=self.url,
                verify=self.verify or None,
                aws_access_key_id=_PERSON_KEY,
                aws_secret_access_key=self.person_key,
                config=botocore.config.Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=30),
            )
            try:
                answer: JsonObject = getattr(client, operation)(**parameters)
            finally:
                client.close()
            return answer

        return await asyncio.to_thread(call)

    async def admit_person(self) -> None:
        """Give the person a key without a policy."""
        key = {"access_key_id": _PERSON_KEY, "secret_access_key": self.person_key, "account": ACCOUNT}
        await self.control("POST", "keys", {**key, "principal": PERSON, "policy": None})

    # Objects

    def config(self, name: str = "default", **changes: Any) -> JsonObject:
        """Return a ProviderConfig for this simulator, open to every namespace; None leaves a field out."""
        spec = {
            "region": REGION,
            "accountID": ACCOUNT,
            "endpoint": self.url,
            "credentials": {"source": "Secret", "secretRef": {"name": KEY_SECRET}},
            "caBundleRef": {"name": CA_SECRET, "key": "ca.crt"},
            "allowedNamespaces": {"selector": {}},
            # The destroy rate limit has tests of its own; here it would stop the fourth test that deletes.
            "limits": {"destroysPerHour": 10_000},
            **changes,
        }
        return AWS_CONFIG.new("", name, spec={key: value for key, value in spec.items() if value is not None})

    async def instance_of(self, namespace: str, claim_name: str) -> JsonObject:
        """Return the RDSInstance that a claim became."""
        return await self.child(namespace, claim_name, RDS_INSTANCE.kind)

    async def until(
        self, identifier: str, holds: Callable[[Mapping[str, Any]], bool], *, limit_s: float = 60.0
    ) -> JsonObject:
        """Wait until the simulator's instance is in a state; return it."""

        async def met() -> JsonObject | None:
            instance = await self.instance(identifier)
            return instance if instance is not None and holds(instance) else None

        return await eventually(met, f"DB instance {identifier}", limit_s=limit_s)


def instance(namespace: str, name: str, *, config: str = "default", **spec: Any) -> JsonObject:
    """Return an RDSInstance that no claim stands behind; its deletion deletes it. `forProvider` is merged."""
    parameters = {
        "engineVersion": "16",
        "dbInstanceClass": "db.t4g.micro",
        "allocatedStorage": 20,
        "masterUsername": "boss",
        "dbName": "app",
        **spec.pop("forProvider", {}),
    }
    whole = {
        "forProvider": {key: value for key, value in parameters.items() if value is not None},
        "providerConfigRef": {"name": config},
        "deletionPolicy": "Delete",
        **spec,
    }
    return RDS_INSTANCE.new(namespace, name, spec=whole)


@asynccontextmanager
async def simulated_rds(system: System, *, real: bool = True) -> AsyncIterator[Aws]:
    """Run a simulator on a rig's addresses and write its address into the cluster; no provider runs yet.

    `real` gives its instances databases, and itself a memory beyond its process.
    """
    place, secret_key = place_beside(system, "aws"), secrets.token_urlsafe(30)
    authority = authority_in(place.databases, "rds-ca").pem.decode()
    (place.folder / "key").write_text(secret_key)
    own = (f"--account={ACCOUNT}", f"--access-key={ACCESS_KEY}", f"--secret-key-file={place.folder / 'key'}")
    simulator = place.program("aws", *own, real=real)
    async with running(system, place, simulator) as session:
        aws = Aws(
            system=system,
            url=place.url,
            session=session,
            simulator=simulator,
            control_token=place.control_token,
            secret_key=secret_key,
            person_key=secrets.token_urlsafe(30),
            verify=str(place.tls / f"{AUTHORITY}.crt") if place.tls else "",
        )
        await aws.admit_person()
        await _publish(aws, authority)
        yield aws


async def _publish(aws: Aws, authority: str) -> None:
    """Install AWS's roles and what its ProviderConfig names, as a platform team does."""
    system = aws.system
    await system.install_cloud("aws")
    key = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": aws.secret_key}
    await system.apply(SECRET, SECRET.new(NAMESPACE, KEY_SECRET, stringData=key))
    await system.apply(SECRET, SECRET.new(NAMESPACE, CA_SECRET, stringData={"ca.crt": authority}))
    networks = {"subnetIds": ",".join(SUBNETS), "securityGroupIds": SECURITY_GROUP}
    await system.apply(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "aws", data=networks))
    await system.apply(AWS_CONFIG, aws.config())


async def at_work(aws: Aws) -> None:
    """Start composer and provider, and wait until the account was met."""
    await asyncio.gather(aws.system.start_composer(), aws.start_provider())
    await aws.system.until(AWS_CONFIG, "", "default", is_ready)
