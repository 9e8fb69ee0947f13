"""The simulated RDS as a part of `fairlead up`: a process at a loop-back address, its databases at others beside it.

The one account has one region that people use and a key that only this platform's files hold.
"""

import asyncio
import importlib.util
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcloud import addresses, daemons
from devcloud.addresses import Lease, address_in
from devcloud.aws.databases import discard
from devcloud.certificates import authority_in
from devcloud.clouds import Cloud, RunningCloud
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.programs import Program

ACCOUNT = "123456789012"
REGION = "eu-central-1"
ACCESS_KEY = "AKIAFAIRLEADDEVCLOUD"
SUBNETS = ("subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b", "subnet-0a1b2c3d4e5f6000c")
SECURITY_GROUP = "sg-0a1b2c3d4e5f60001"
_PORT = 8000
_DURATIONS = 0.02  # four minutes of creation take five seconds
_NAMESPACE = "fairlead-aws"
_KEY_SECRET = "aws-key"  # noqa: S105 - a Secret's name
_CA_SECRET = "aws-ca"  # noqa: S105 - a Secret's name
_READY_LIMIT_S = 60.0
_POLL_S = 0.05


async def _start(folder: Path, lease: Lease) -> RunningCloud:
    if importlib.util.find_spec("botocore") is None:
        raise DevcloudError("the simulated RDS needs boto3, which is not installed: install fairlead[cli,devcloud,aws]")
    private_folder(folder)
    host = lease.address(1)
    # Here and not there: whoever is given it need not wait for who uses it.
    authority_in(private_folder(_databases(folder)), "rds-ca")
    await _until_listening(_launch(folder, lease), host)
    return _describe(folder, host)


def _find(folder: Path, octet: int) -> RunningCloud | None:
    identity = daemons.load(_pid_file(folder))
    if identity is None or not daemons.is_alive(identity):
        return None
    return _describe(folder, address_in(octet, 1))


async def _stop(folder: Path) -> None:
    identity = daemons.load(_pid_file(folder))
    if identity is not None:
        await daemons.stop(identity, number=signal.SIGTERM, grace_s=20.0)
    _pid_file(folder).unlink(missing_ok=True)


def _erase(folder: Path) -> None:
    discard(_databases(folder))
    remove_tree(folder)


def _launch(folder: Path, lease: Lease) -> Daemon:
    log = folder / "simulator.log"
    # Only this start's words say when it listens; those of a process that died are kept beside them.
    daemons.set_aside(log)
    arguments = daemons.python(
        *("-m", "devcloud.aws", f"--listen={lease.address(1)}:{_PORT}", f"--account={ACCOUNT}"),
        *(f"--access-key={ACCESS_KEY}", f"--secret-key-file={_secret_file(folder)}"),
        *(f"--durations={_DURATIONS:g}", f"--state={folder / 'state.json'}"),
        f"--control-token-file={_token_file(folder)}",
        *(f"--databases={_databases(folder)}", f"--octet={lease.octet}", "--durable"),
    )
    # It inherits the lease: the addresses stay ours for as long as it listens.
    command = Command(name="simulated-rds", arguments=arguments, log=log, descriptors=(lease.descriptor,))
    daemon = daemons.launch(command, Lifetime.DETACHED)
    daemons.save(_pid_file(folder), daemon)
    return daemon


async def _until_listening(daemon: Daemon, host: str) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while not (daemon.log.exists() and "listening on" in daemon.log.read_text(errors="replace")):
        if not daemons.is_alive(daemon.identity):
            tail = daemons.log_tail(daemon.log)
            if "address already in use" in tail:
                holder = addresses.holder_of(host, _PORT)
                raise DevcloudError(f"{host}:{_PORT} is taken by {holder}: stop it, try again")
            raise DevcloudError(f"the simulated RDS ended: {tail}; see {daemon.log}")
        if loop.time() > deadline:
            raise DevcloudError(f"the simulated RDS is not ready after {_READY_LIMIT_S:g} s: see {daemon.log}")
        await asyncio.sleep(_POLL_S)


def _describe(folder: Path, host: str) -> RunningCloud:
    url = f"http://{host}:{_PORT}"
    secret_key = _secret_file(folder).read_text()
    return RunningCloud(
        says=f"aws: simulated RDS at {url}, account {ACCOUNT}, {REGION}, for namespaces labelled cloud=aws",
        objects=_objects(url, secret_key, authority_in(_databases(folder), "rds-ca").pem.decode()),
        logs={"simulated-rds": folder / "simulator.log"},
        flags=(f"--endpoint-override={host}:{_PORT}",),
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


def _databases(folder: Path) -> Path:
    return folder / "databases"


def _secret_file(folder: Path) -> Path:
    return _made_once(folder / "secret-key")


def _token_file(folder: Path) -> Path:
    return _made_once(folder / "control-token")


def _made_once(path: Path) -> Path:
    if not path.exists():
        write_private(path, secrets.token_urlsafe(30))
    return path


def _pid_file(folder: Path) -> Path:
    return folder / "simulator.pid.json"


CLOUD = Cloud(
    name="aws",
    # What takes minutes there takes seconds here, so it is looked at more often.
    program=Program(
        "provider-aws",
        ("providers", "aws", "--sweep=5", "--grace=15", "--settle=10"),
        _NAMESPACE,
        "fairlead-provider-aws",
    ),
    start=_start,
    find=_find,
    stop=_stop,
    erase=_erase,
)
