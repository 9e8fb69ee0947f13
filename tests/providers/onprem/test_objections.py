"""What a server cannot serve, or does not promise, is refused before anything is made, with the next step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from providers.onprem.models import Offers, PostgresDatabaseParameters, ProviderConfigSpec, SecretReference
from providers.onprem.objections import objection
from providers.onprem.statements import SETTABLE


def spec(**fields: object) -> PostgresDatabaseParameters:
    return msgspec.convert({"databaseName": "orders", "username": "app", **fields}, PostgresDatabaseParameters)


def config(**offers: object) -> ProviderConfigSpec:
    given = msgspec.convert(offers, Offers)
    return ProviderConfigSpec(
        host="db.example", admin_secret_ref=SecretReference("a"), extensions=("vector",), offers=given
    )


@pytest.mark.parametrize(
    ("asked", "reason", "word"),
    [
        ({"version": "16"}, "", ""),
        ({"version": "17"}, "UnsupportedVersion", "16"),
        ({"extensions": ["vector"]}, "", ""),
        ({"extensions": ["plpython3u"]}, "InvalidValue", "plpython3u"),
        ({"parameters": {"work_mem": "1MB"}}, "", ""),
        ({"parameters": {"search_path": "x"}}, "InvalidValue", "search_path"),
        ({"parameters": {"session_preload_libraries": "x"}}, "InvalidValue", "session_preload_libraries"),
    ],
)
def test_what_a_server_cannot_serve_is_named(asked: dict[str, object], reason: str, word: str) -> None:
    found = objection(spec(**asked), 16, config())

    assert (found[0] if found else "") == reason
    assert word in (found[1] if found else "")


def test_all_that_a_server_cannot_serve_is_said_at_once() -> None:
    asked = spec(
        version="17",
        extensions=["vector", "pg_trgm", "hstore"],
        parameters={"search_path": "x", "work_mem": "1MB", "port": "1"},
        requirements={"storageGiB": 600, "backupRetentionDays": 7},
    )
    found = objection(asked, 16, config(storageGiB=500))

    assert found is not None
    assert found[0] == "UnsupportedVersion"
    for text in (
        "runs PostgreSQL 16, not 17",
        "extensions hstore, pg_trgm are not allowed here; allowed: vector",
        "ask the platform team to add it to `extensions` of the ProviderConfig",
        "parameters port, search_path are not to be set here",
        "backup.retentionDays 7",
        "storageGiB 600",
    ):
        assert text in found[1]
    assert "work_mem" not in found[1]


def test_the_page_lists_what_may_be_set() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "onprem.md").read_text(encoding="utf-8")

    assert [name for name in sorted(SETTABLE) if f"`{name}`" not in page] == []


def test_a_misspelt_parameter_has_its_near_names() -> None:
    found = objection(spec(parameters={"work_men": "1MB"}), 16, config())

    assert found is not None
    assert "work_mem" in found[1]
    assert len(found[1]) <= 400


@dataclass(frozen=True)
class Promise:
    """Requirements, what the server offers, and words of the refusal; none where it is met."""

    required: dict[str, object]
    offers: dict[str, object]
    says: tuple[str, ...] = ()


PROMISES: dict[str, Promise] = {
    "nothing required": Promise({}, {}),
    "what a claim has by default": Promise({"highAvailability": False, "publicAccess": False}, {}),
    "a standby that nobody told of": Promise({"highAvailability": True}, {}, ("highAvailability", "leave it out")),
    "a standby": Promise({"highAvailability": True}, {"highAvailability": True}),
    "backups that nobody told of": Promise({"backupRetentionDays": 14}, {}, ("backup.retentionDays 14", "no backups")),
    "backups for longer": Promise({"backupRetentionDays": 14}, {"backupRetentionDays": 7}, ("7 days",)),
    "backups for as long": Promise({"backupRetentionDays": 14}, {"backupRetentionDays": 14}),
    "an hour that nobody told of": Promise({"backupStartTime": "02:30"}, {}, ("backup.startTime 02:30",)),
    "another hour": Promise({"backupStartTime": "02:30"}, {"backupStartTime": "04:00"}, ("at 04:00",)),
    "the server's hour": Promise({"backupStartTime": "02:30"}, {"backupStartTime": "02:30"}),
    "storage that nobody bounds": Promise({"storageGiB": 100}, {}),
    "storage that fits": Promise({"storageGiB": 100}, {"storageGiB": 100}),
    "storage beyond the disk": Promise({"storageGiB": 101}, {"storageGiB": 100}, ("storageGiB 101", "100 at most")),
    "the internet": Promise({"publicAccess": True}, {}, ("network.public", "publicAccess")),
    "a server on the internet": Promise({"publicAccess": True}, {"publicAccess": True}),
    "networks that nobody told of": Promise({"allowedCIDRs": ["10.0.0.0/8"]}, {}, ("network.allowedCIDRs",)),
    "fewer networks than it is open to": Promise(
        {"allowedCIDRs": ["10.0.0.0/8"]}, {"allowedCIDRs": ("10.0.0.0/8", "192.168.0.0/16")}, ("192.168.0.0/16",)
    ),
    "no network at all": Promise({"allowedCIDRs": []}, {"allowedCIDRs": ("10.0.0.0/8",)}, ("10.0.0.0/8",)),
    "its own networks": Promise(
        {"allowedCIDRs": ["192.168.0.0/16", "10.0.0.0/8"]}, {"allowedCIDRs": ("10.0.0.0/8", "192.168.0.0/16")}
    ),
    "a backup to start from": Promise({"restoreFrom": "orders-before"}, {}, ("orders-before", "fairlead.dev/adopt")),
    "several at once": Promise(
        {"highAvailability": True, "backupRetentionDays": 7}, {}, ("highAvailability", "; nor backup.retentionDays")
    ),
}


@pytest.mark.parametrize("case", PROMISES.values(), ids=PROMISES.keys())
def test_what_the_server_does_not_offer_is_refused_and_never_looks_granted(case: Promise) -> None:
    found = objection(spec(requirements=case.required), 16, config(**case.offers))

    assert (found is None) == (not case.says)
    if found is not None:
        assert found[0] == "InvalidValue"
        assert [word for word in case.says if word not in found[1]] == []
