"""The simulated RDS as a part of `fairlead up`: a process at a loop-back address, its databases at others beside it.

The one account has one region that people use and a key that only this platform's files hold.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcloud.addresses import Lease
from devcloud.aws.databases import AUTHORITY
from devcloud.aws.story import STORY
from devcloud.certificates import authority_in
from devcloud.clouds import Cloud, RunningCloud
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder
from devcloud.programs import Program
from devcloud.simulator import launch
from devcloud.simulator.launch import Simulation

ACCOUNT = "123456789012"
REGION = "eu-central-1"
ACCESS_KEY = "AKIAFAIRLEADDEVCLOUD"
SUBNETS = ("subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b", "subnet-0a1b2c3d4e5f6000c")
SECURITY_GROUP = "sg-0a1b2c3d4e5f60001"
_DURATIONS = 0.02  # four minutes of creation take five seconds
_NAMESPACE = "fairlead-aws"
_KEY_SECRET = "aws-key"  # noqa: S105 - a Secret's name
_CA_SECRET = "aws-ca"  # noqa: S105 - a Secret's name
SIMULATION = Simulation(cloud="aws", title="simulated RDS", name="simulated-rds")


async def _start(folder: Path, lease: Lease) -> RunningCloud:
    if importlib.util.find_spec("botocore") is None:
        raise DevcloudError("the simulated RDS needs boto3, which is not installed: install fairlead[cli,devcloud,aws]")
    private_folder(folder)
    # Here and not there: whoever is given it need not wait for who uses it.
    authority_in(private_folder(launch.databases_in(folder)), AUTHORITY)
    own = (f"--account={ACCOUNT}", f"--access-key={ACCESS_KEY}", f"--secret-key-file={_secret_file(folder)}")
    await SIMULATION.start(folder, lease, *own, f"--durations={_DURATIONS:g}")
    return _describe(folder, lease.octet)


def _find(folder: Path, octet: int) -> RunningCloud | None:
    return _describe(folder, octet) if launch.is_running(folder) else None


def _secret_file(folder: Path) -> Path:
    return launch.secret_in(folder, "secret-key")


def _describe(folder: Path, octet: int) -> RunningCloud:
    location = launch.location_of(octet)
    url = f"http://{location}"
    secret_key = _secret_file(folder).read_text()
    return RunningCloud(
        says=f"aws: simulated RDS at {url}, account {ACCOUNT}, {REGION}, for namespaces labelled cloud=aws",
        objects=_objects(url, secret_key, authority_in(launch.databases_in(folder), AUTHORITY).pem.decode()),
        logs={"simulated-rds": launch.log_of(folder)},
        flags=(f"--endpoint-override={location}",),
        variables={
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        },
    )


def _objects(url: str, secret_key: str, authority: str) -> tuple[Mapping[str, Any], ...]:
    key = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": secret_key}
    networks = {"subnetIds": ",".join(SUBNETS), "securityGroupIds": SECURITY_GROUP}
    config = {
        "apiVersion": "aws.fairlead.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "default"},
        "spec": {
            "region": REGION,
            "accountID": ACCOUNT,
            "endpoint": url,
            "credentials": {"source": "Secret", "secretRef": {"name": _KEY_SECRET}},
            "caBundleRef": {"name": _CA_SECRET, "key": "ca.crt"},
            "allowedNamespaces": {"selector": {}},
        },
    }
    return (
        _secret(_KEY_SECRET, key),
        _secret(_CA_SECRET, {"ca.crt": authority}),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "aws", "namespace": "fairlead-system"},
            "data": networks,
        },
        config,
    )


def _secret(name: str, data: dict[str, str]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "stringData": data,
    }


CLOUD = Cloud(
    name="aws",
    story=STORY,
    # What takes minutes there takes seconds here, so it is looked at more often.
    program=Program(
        "provider-aws",
        ("providers", "aws", "--sweep=5", "--grace=15", "--settle=10"),
        _NAMESPACE,
        "fairlead-provider-aws",
    ),
    start=_start,
    find=_find,
    stop=launch.stop,
    erase=launch.erase,
)
