"""The master user's one password: when a new one takes the former one's place, and who keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcloud.aws.lifecycle.master_password import RESET_S, reset
from devcloud.simulator.work import SetPassword
from tests.devcloud.aws.conftest import Cloud, refusal
from tests.devcloud.recorded import Recorded

RESETTING = "resetting-master-credentials"
DB = {"DBInstanceIdentifier": "db-1"}
NEW = "Another-word-1"


@given(st.floats(min_value=0, max_value=RESET_S))
def test_a_reset_changes_the_password_once_at_its_moment_and_takes_as_long_as_ever(after_s: float) -> None:
    steps = reset(NEW, after_s=after_s, secret=None)

    jobs = [index for index, step in enumerate(steps) if step.work is not None]
    assert [steps[index].work for index in jobs] == [SetPassword(NEW)]
    assert sum(step.seconds for step in steps[: jobs[0]]) == pytest.approx(after_s)
    assert sum(step.seconds for step in steps) == pytest.approx(RESET_S)
    assert [step.status for step in steps] == sorted((step.status for step in steps), key=lambda status: status or "")
    assert [bool(step.ended) for step in steps] == [*[False] * (len(steps) - 1), True]


@pytest.mark.parametrize(
    ("after_s", "status"),
    [(0, "available"), (4, "available"), (5, RESETTING), (15, RESETTING), (RESET_S, RESETTING)],
)
def test_the_moment_is_chosen_from_the_request_to_the_resets_end(
    after_s: float, status: str, rig: Cloud, databases: Recorded
) -> None:
    rig.created()
    rig.at_real_length()
    rig.control("POST", "behaviour", {"password_after_s": after_s})
    line = f"password db-1 {NEW}"

    reply = rig.rds.modify_db_instance(**DB, MasterUserPassword=NEW)["DBInstance"]
    assert (reply["DBInstanceStatus"], reply["PendingModifiedValues"]) == ("available", {"MasterUserPassword": "****"})
    if after_s:
        rig.advance(after_s - 1)
        rig.look()
        assert line not in databases.calls
        rig.advance(1)
    rig.until(lambda _: line in databases.calls)
    assert rig.look()["DBInstanceStatus"] in {status, "available" if after_s == RESET_S else status}
    rig.advance(RESET_S)
    after = rig.rest()
    assert (after["PendingModifiedValues"], databases.calls.count(line)) == ({}, 1)


@pytest.mark.parametrize("after_s", [-1, RESET_S + 1])
def test_a_moment_outside_the_reset_is_refused(after_s: float, cloud: Cloud) -> None:
    with pytest.raises(Exception, match="400"):
        cloud.control("POST", "behaviour", {"password_after_s": after_s})


def _secret(shown: dict[str, Any]) -> str | None:
    secret = shown.get("MasterUserSecret")
    return None if secret is None else str(secret["SecretStatus"])


def test_a_secret_is_created_with_its_instance_and_rotates(cloud: Cloud) -> None:
    # The statuses are those of MasterUserSecret in the API Reference.
    first = cloud.create(ManageMasterUserPassword=True, MasterUserPassword=None)
    assert _secret(first) == "creating"
    shown = cloud.rest()
    assert _secret(shown) == "active"
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds!"
    assert shown["MasterUserSecret"]["SecretArn"].startswith(arn)

    cloud.at_real_length()
    rotated = cloud.rds.modify_db_instance(**DB, RotateMasterUserPassword=True, ApplyImmediately=True)["DBInstance"]
    assert (_secret(rotated), rotated["PendingModifiedValues"]) == ("rotating", {"MasterUserPassword": "****"})
    cloud.advance(6)
    assert cloud.look()["DBInstanceStatus"] == RESETTING

    def is_active(shown: dict[str, Any]) -> bool:
        # What follows the databases' work begins when somebody looks.
        cloud.advance(RESET_S)
        return _secret(shown) == "active"

    assert cloud.until(is_active)["DBInstanceStatus"] == "available"


def test_a_password_is_handed_to_secrets_manager_and_taken_back(rig: Cloud, databases: Recorded) -> None:
    rig.created()
    managed = rig.rds.modify_db_instance(**DB, ManageMasterUserPassword=True)["DBInstance"]
    assert (_secret(managed), managed["PendingModifiedValues"]) == ("creating", {"MasterUserPassword": "****"})
    rig.until(lambda shown: _secret(shown) == "active")
    # The user's own password is dead from here on.
    assert [line.startswith("password db-1 ") and NEW not in line for line in databases.calls][-1]

    assert refusal(lambda: rig.rds.modify_db_instance(**DB, MasterUserPassword=NEW))[0] == "InvalidParameterCombination"
    alone = refusal(lambda: rig.rds.modify_db_instance(**DB, ManageMasterUserPassword=False))
    assert alone == ("InvalidParameterCombination", 400)
    own = rig.rds.modify_db_instance(**DB, ManageMasterUserPassword=False, MasterUserPassword=NEW)["DBInstance"]
    assert _secret(own) is None
    after = rig.until(lambda shown: shown["PendingModifiedValues"] == {})
    assert (_secret(after), databases.calls[-1]) == (None, f"password db-1 {NEW}")
