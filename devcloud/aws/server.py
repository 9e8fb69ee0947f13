"""The simulated RDS and STS as a server: `serving` within a program, `running` beside a test."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from devcloud.aws.api import sts
from devcloud.aws.api.wire import time_text
from devcloud.aws.iam.principals import ACCESS_KEY, ACCOUNT, ROLE, SECRET_KEY, Principals, default_world
from devcloud.aws.jobs import Jobs
from devcloud.aws.simulator import Simulator
from devcloud.simulator import server
from devcloud.simulator.clock import Clock
from devcloud.simulator.dataplane import DataPlane, NoDatabases
from devcloud.simulator.messages import Answer, json_answer
from devcloud.simulator.server import new_token
from devcloud.simulator.service import UnsignedRoute

_POD_CREDENTIALS_LIFE = timedelta(hours=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run it.

    Attributes:
        host: The loop-back address.
        port: The TCP port; 0 is a free one.
        account: The account of the first user.
        access_key_id: That user's key.
        secret_access_key: Its secret.
        durations: What the length of every operation is multiplied by.
        speed: How many simulated seconds pass in a real one.
        databases: What is behind the instances.
        tls: A folder with the authority of the API's certificate; None serves without TLS.
        state: A file that keeps everything beyond the process; None keeps nothing.
        control_token: What `/_control` asks for, a new one by default; empty closes it.
        pod_token: What `/_eks` asks for, as the token of a pod; likewise.
    """

    host: str = "127.0.0.1"
    port: int = 0
    account: str = ACCOUNT
    access_key_id: str = ACCESS_KEY
    secret_access_key: str = field(default=SECRET_KEY, repr=False)
    durations: float = 1.0
    speed: float = 1.0
    databases: DataPlane = field(default_factory=NoDatabases)
    tls: Path | None = None
    state: Path | None = None
    control_token: str = field(default_factory=new_token, repr=False)
    pod_token: str = field(default_factory=new_token, repr=False)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, its first user's key id and secret, the tokens of what is unsigned."""

    url: str
    credentials: tuple[str, str] = field(repr=False)
    control_token: str = field(repr=False)
    pod_token: str = field(repr=False)


@contextlib.asynccontextmanager
async def serving(options: Options) -> AsyncIterator[Served]:
    """Serve until the block ends.

    Raises:
        OSError: The port is taken.
        DevcloudError: The state file is none.
    """
    clock = Clock(durations=options.durations, speed=options.speed)
    principals = default_world(options.account, options.access_key_id, options.secret_access_key)
    pods = UnsignedRoute(
        path="/_eks/v1/credentials", token=options.pod_token, respond=lambda: _pod_credentials(principals, clock)
    )
    frame = server.Options(
        host=options.host,
        port=options.port,
        tls=options.tls,
        state=options.state,
        control_token=options.control_token,
        unsigned=(pods,),
    )
    async with server.serving(Simulator(clock, principals, Jobs(options.databases)), frame) as url:
        user = (options.access_key_id, options.secret_access_key)
        yield Served(url, user, options.control_token, options.pod_token)


@contextlib.contextmanager
def running(options: Options) -> Iterator[Served]:
    """Serve from a thread of its own until the block ends, for programs without an event loop."""
    with server.running(lambda: serving(options), name="aws simulator") as served:
        yield served


def _pod_credentials(principals: Principals, clock: Clock) -> Answer:
    """Return what EKS Pod Identity's agent answers (EKS User Guide): a pod's token gets the provider's role."""
    role = next((role for role in principals.roles.values() if role.name == ROLE), None)
    if role is None:
        return Answer(status=404, body=f"no role {ROLE}\n".encode(), content_type="text/plain")
    key = principals.session(role, "eks", clock.now() + _POD_CREDENTIALS_LIFE)
    credentials = sts.credentials(key)
    # The credentials of containers have names of their own for two of the fields.
    return json_answer(
        {
            "AccessKeyId": credentials["AccessKeyId"],
            "SecretAccessKey": credentials["SecretAccessKey"],
            "Token": credentials["SessionToken"],
            "AccountId": key.account,
            "Expiration": time_text(credentials["Expiration"]),
        }
    )
