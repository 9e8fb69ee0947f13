"""A simulated RDS that is fast, and clients of it: boto3 itself, over loop-back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from devcloud.aws.server import Options, Served, running
from tests.support.refusing_databases import RefusingDatabases
from tests.support.simulator_control import control
from tests.support.waiting import seen

REGION = "eu-west-1"
PASSWORD = "Sufficient-1"
QUICK = 0.0001  # four minutes of creation take 24 ms
_LIMIT_S = 90.0
_WAIT = {"Delay": 0.02, "MaxAttempts": 3000}


@dataclass(frozen=True, slots=True)
class Cloud:
    """The simulator, clients of it, and the way to its control calls."""

    served: Served
    rds: Any

    def client(self, service: str = "rds", key: tuple[str, str] | None = None, **more: Any) -> Any:
        """Return a client without retries."""
        access_key, secret = key or self.served.credentials
        return boto3.client(
            service,
            region_name=more.pop("region", REGION),
            endpoint_url=self.served.url,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret,
            config=Config(retries={"total_max_attempts": 1}, **more.pop("config", {})),
            **more,
        )

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Make a control call."""
        return control(self.served, method, path, body)

    def create(self, name: str = "db-1", **changed: Any) -> dict[str, Any]:
        """Create an instance; a value of None leaves a parameter out."""
        parameters = {
            "DBInstanceIdentifier": name,
            "DBInstanceClass": "db.t4g.micro",
            "Engine": "postgres",
            "EngineVersion": "16.4",
            "MasterUsername": "app_admin",
            "MasterUserPassword": PASSWORD,
            "AllocatedStorage": 20,
            **changed,
        }
        reply = self.rds.create_db_instance(**{name: value for name, value in parameters.items() if value is not None})
        instance: dict[str, Any] = reply["DBInstance"]
        return instance

    def look(self, name: str = "db-1") -> dict[str, Any]:
        """Return an instance as it is shown."""
        instance: dict[str, Any] = self.rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]
        return instance

    def rest(self, name: str = "db-1") -> dict[str, Any]:
        """Wait with boto3's own waiter until an instance is available."""
        self.rds.get_waiter("db_instance_available").wait(DBInstanceIdentifier=name, WaiterConfig=_WAIT)
        return self.look(name)

    def until(self, holds: Callable[[dict[str, Any]], bool], name: str = "db-1") -> dict[str, Any]:
        """Wait until an instance shows something."""
        return seen(lambda: self.look(name), holds, limit_s=_LIMIT_S)

    def created(self, name: str = "db-1", **changed: Any) -> dict[str, Any]:
        """Create an instance and wait for it."""
        self.create(name, **changed)
        return self.rest(name)

    def advance(self, seconds: float) -> None:
        """Move the simulated time on."""
        self.control("POST", "clock", {"advance_s": seconds})

    def at_real_length(self) -> None:
        """Let operations take as long as RDS's from here on, so that only `advance` ends them."""
        self.control("POST", "clock", {"durations": 1.0})

    def gone(self, name: str = "db-1") -> None:
        """Wait with boto3's own waiter until an instance is deleted."""
        self.rds.get_waiter("db_instance_deleted").wait(DBInstanceIdentifier=name, WaiterConfig=_WAIT)


def refusal(call: Callable[[], object]) -> tuple[str, int]:
    """Return the code and the status of a call that must be refused."""
    with pytest.raises(ClientError) as error:
        call()
    response = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with running(Options(durations=QUICK, databases=RefusingDatabases())) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def client(served: Served) -> Any:
    return Cloud(served, None).client()


@pytest.fixture
def cloud(served: Served, client: Any) -> Cloud:
    cloud = Cloud(served, client)
    cloud.control("POST", "reset")
    cloud.control("POST", "clock", {"durations": QUICK, "speed": 1})
    return cloud
