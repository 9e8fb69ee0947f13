"""Which logins an instance has, by its spec and by what was published, and which of them may log in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from providers.aws.instances import translate
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Target
from providers.external.ownership import Owner
from providers.external.sql.alternating import Wanted, names_of

NAMES = names_of("boss")


@dataclass(frozen=True)
class Having:
    logins: tuple[str, str]
    alternates: bool = True
    active: str = ""
    incarnation: str = ""
    version: str | None = "16"


ONE, TWO, MOVING = ("boss", "boss"), ("boss_a", "boss_b"), ("boss", "boss_a")
LOGINS = {
    "born with two": Having(TWO),
    "born of a version that is RDS's to choose": Having(TWO, version=None),
    "born with one": Having(ONE, alternates=False),
    "before PostgreSQL 16": Having(ONE, version="15.4"),
    "published with one, to move": Having(MOVING, active="boss", incarnation="db-1"),
    "published with one": Having(ONE, alternates=False, active="boss", incarnation="db-1"),
    "published with two": Having(TWO, active="boss_b", incarnation="db-1"),
    "two stay two": Having(TWO, alternates=False, active="boss_b", incarnation="db-1"),
    "two stay two whatever version is asked for": Having(TWO, active="boss_a", version="15"),
    "taken over, or its status is lost": Having(ONE, incarnation="db-1"),
    "a stranger's name counts for nothing": Having(ONE, active="eve", incarnation="db-1"),
}


@pytest.mark.parametrize("row", LOGINS.values(), ids=LOGINS.keys())
def test_logins_of_an_instance(row: Having) -> None:
    spec = RDSInstanceParameters(
        db_instance_class="x", allocated_storage=1, master_username="boss", engine_version=row.version
    )
    target = Target(
        "fl-x", spec, Owner("home", "uid", "claim"), "hash",
        active=row.active, incarnation=row.incarnation, alternates=row.alternates,
    )  # fmt: skip
    assert translate.logins(target) == row.logins


def test_working_logins() -> None:
    spec = RDSInstanceParameters(db_instance_class="x", allocated_storage=1, master_username="boss")
    target = Target("fl-x", spec, Owner("home", "uid", "claim"), "hash", active="boss_a", retiring="boss_b")
    assert translate.wanted_roles(target, "app") == Wanted(NAMES, "app", frozenset(NAMES.logins))
    moving = translate.wanted_roles(replace(target, active="boss", retiring=""), "app", setting="boss_a")
    assert moving == Wanted(NAMES, "app", frozenset({"boss_a"}), is_moving=True)
    stranger = translate.wanted_roles(replace(target, retiring="eve", coming="rdsadmin"), "app", setting="mallory")
    assert stranger.working == {"boss_a"}
