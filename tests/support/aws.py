"""A simulated RDS beside a rig: the simulator as a process, its control, a person's own calls, the AWS provider.

Facts come from the simulator's audit log and state, from PostgreSQL behind it, and from the API server.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import boto3
import botocore.config

from devcloud.aws.platform import ACCESS_KEY, ACCOUNT, REGION, SECURITY_GROUP, SUBNETS
from devcloud.certificates import authority_in
from devcloud.simulator.databases import discard
from tests.support.api import JsonObject
from tests.support.kinds import CONFIG_MAP, SECRET, Kind, is_ready
from tests.support.processes import Program
from tests.support.rds_control import headers_of
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
_ROOT = Path(__file__).resolve().parents[2]
_PORT = 8000
_PERSON_KEY = "AKIAALICEATTHECONSOLE"
DURATIONS = 0.005
"""What takes four minutes at AWS takes 1.2 seconds here."""
QUICK = ("--sweep=1", "--grace=3", "--settle=2", "--resync=600")
"""Flags of a provider that looks often."""


@dataclass(slots=True, kw_only=True)
class Aws:
    """A simulated RDS and what its judges do to it.

    Attributes:
        system: The rig beside which it runs.
        url: Its one endpoint, for RDS and STS.
        simulator: Its process.
    """

    system: System
    url: str
    session: aiohttp.ClientSession
    simulator: Program
    control_token: str = field(repr=False)
    secret_key: str = field(repr=False)
    person_key: str = field(repr=False)

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    # Its control

    async def control(self, method: str, path: str, body: object = None) -> Any:
        """Call the simulator's control API, e.g. `("POST", "instances/fl-x", {"vanish": True})`; return its JSON."""
        headers = headers_of(self.control_token)
        async with self.session.request(method, f"{self.url}/_control/{path}", json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status < 400, f"{method} {path}: {answer.status} {text}"
            return await answer.json(content_type=None) if text else None

    async def clock(self, **settings: float) -> JsonObject:
        """Set `advance_s`, `speed` or `durations`."""
        clock: JsonObject = await self.control("POST", "clock", settings)
        return clock

    async def fault(self, action: str, kind: str = "error", **settings: Any) -> None:
        """Have calls of an action fail: `error`, `drop`, `hang` or `delay`."""
        await self.control("POST", "faults", {"action": action, "kind": kind, **settings})

    async def heal(self) -> None:
        """End all faults."""
        await self.control("DELETE", "faults")

    async def behave(self, **settings: Any) -> None:
        """Change how the cloud behaves: lags, throttling, robots, quotas."""
        await self.control("POST", "behaviour", settings)

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

    # Who called what

    async def mark(self) -> int:
        """Return the number of the last call so far, for `calls` and `changes`."""
        return max((int(call["seq"]) for call in await self.control("GET", "audit?since=0")), default=0)

    async def calls(self, since: int = 0, *, action: str = "", by: str = "") -> list[JsonObject]:
        """Return the calls after a mark, in order: of an action, by a principal whose ARN ends so."""
        calls: list[JsonObject] = await self.control("GET", f"audit?since={since}")
        return [
            call
            for call in calls
            if int(call["seq"]) > since and action in {"", call["action"]} and call["principal"].endswith(by)
        ]

    async def changes(self, since: int = 0) -> list[JsonObject]:
        """Return the mutating calls after a mark but the person's, whatever became of them."""
        return [call for call in await self.calls(since) if call["mutating"] and not call["principal"].endswith(PERSON)]

    # A person with a key of his own

    async def person(self, operation: str, /, *, service: str = "rds", **parameters: Any) -> JsonObject:
        """Call AWS as a person at the console does: boto3's name of an operation, and its parameters."""

        def call() -> JsonObject:
            client = boto3.client(
                service,
                region_name=REGION,
                endpoint_url=self.url,
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

    # Processes

    async def start_provider(self, *flags: str, name: str = "provider-aws", wait: bool = True) -> Program:
        """Start the AWS provider under its own ServiceAccount; it may speak to this simulator alone."""
        arguments = (f"--endpoint-override={self.host}", *(flags or QUICK))
        return await self.system.start_provider_of("aws", *arguments, name=name, wait=wait)

    async def restart_simulator(self) -> None:
        """Kill the simulator and start it again on what it had written down."""
        await self.simulator.kill9()
        self.simulator.log.unlink(missing_ok=True)
        await _serve(self.simulator)
        await self._admit_person()

    async def _admit_person(self) -> None:
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

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[str]:
        """Have a namespace whose claims go to AWS."""
        async with self.system.namespace(cloud="aws") as name:
            yield name

    async def child(self, namespace: str, claim_name: str) -> JsonObject:
        """Return the RDSInstance that a claim became."""
        resources = [
            child for child in await self.system.children(namespace, claim_name) if child["kind"] == RDS_INSTANCE.kind
        ]
        assert len(resources) == 1, f"{claim_name} has {len(resources)} RDSInstances"

        return resources[0]

    async def until(
        self, identifier: str, holds: Callable[[Mapping[str, Any]], bool], *, limit_s: float = 60.0
    ) -> JsonObject:
        """Wait until the simulator's instance is in a state; return it."""

        async def met() -> JsonObject | None:
            instance = await self.instance(identifier)
            return instance if instance is not None and holds(instance) else None

        return await eventually(met, f"DB instance {identifier}", limit_s=limit_s)

    async def until_gone(self, identifier: str, *, limit_s: float = 60.0) -> None:
        """Wait until no instance has that identifier."""

        async def gone() -> bool:
            return await self.instance(identifier) is None

        await eventually(gone, f"DB instance {identifier} is gone", limit_s=limit_s)


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
    folder = system.folder / "aws"
    folder.mkdir(mode=0o700)
    secret_key, host = secrets.token_urlsafe(30), system.lease.address(2)
    databases = folder / "databases"
    databases.mkdir(mode=0o700)
    authority = authority_in(databases, "rds-ca").pem.decode()
    (folder / "key").write_text(secret_key)
    control_token = secrets.token_urlsafe(30)
    (folder / "control-token").write_text(control_token)
    arguments = (
        *("devcloud.aws", f"--listen={host}:{_PORT}", f"--account={ACCOUNT}", f"--access-key={ACCESS_KEY}"),
        *(f"--secret-key-file={folder / 'key'}", f"--durations={DURATIONS:g}"),
        f"--control-token-file={folder / 'control-token'}",
    )
    kept = (f"--state={folder / 'state.json'}", f"--databases={databases}", f"--octet={system.lease.octet}")
    simulator = Program((*arguments, *(kept if real else ())), log=folder / "simulator.log")
    await _serve(simulator)
    system.started.append(simulator)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        aws = Aws(
            system=system,
            url=f"http://{host}:{_PORT}",
            session=session,
            simulator=simulator,
            control_token=control_token,
            secret_key=secret_key,
            person_key=secrets.token_urlsafe(30),
        )
        await aws._admit_person()
        await _publish(aws, authority)
        try:
            yield aws
        finally:
            # Not killed: its databases end with it, and their shared memory is given back.
            if simulator.is_running:
                await simulator.terminate()
            discard(databases)


async def _serve(simulator: Program) -> None:
    await simulator.start()
    await simulator.until_log("listening on")


async def _publish(aws: Aws, authority: str) -> None:
    """Install AWS's roles and what its ProviderConfig names, as a platform team does."""
    system = aws.system
    await system.kubectl.run(
        "apply", "--server-side", "--kustomize", str(_ROOT / "deploy" / "kustomize" / "clouds" / "aws")
    )
    system.clouds.append("aws")
    key = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": aws.secret_key}
    await system.create(SECRET, SECRET.new(NAMESPACE, KEY_SECRET, stringData=key))
    await system.create(SECRET, SECRET.new(NAMESPACE, CA_SECRET, stringData={"ca.crt": authority}))
    networks = {"subnetIds": ",".join(SUBNETS), "securityGroupIds": SECURITY_GROUP}
    await system.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "aws", data=networks))
    await system.create(AWS_CONFIG, aws.config())


async def at_work(aws: Aws) -> None:
    """Start composer and provider, and wait until the account was met."""
    await asyncio.gather(aws.system.start_composer(), aws.start_provider())
    await aws.system.until(AWS_CONFIG, "", "default", is_ready)
