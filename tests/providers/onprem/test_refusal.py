"""What a server cannot serve, or does not promise, is refused before anything is made, with the next step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from providers.external.config import SecretReference
from providers.onprem.models import Offerings, PostgresDatabaseParameters, ProviderConfigSpec
from providers.onprem.refusal import refusal_of
from providers.onprem.statements import SETTABLE


def spec(**fields: object) -> PostgresDatabaseParameters:
    return msgspec.convert({"databaseName": "orders", "username": "app", **fields}, PostgresDatabaseParameters)


def config(**fields: object) -> ProviderConfigSpec:
    offerings = msgspec.convert(fields, Offerings)
    return ProviderConfigSpec(
        host="db.example", admin_secret_ref=SecretReference("a"), extensions=("vector",), offerings=offerings
    )


@pytest.mark.parametrize(
    ("fields", "reason", "word"),
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
def test_spec_that_the_server_cannot_serve_is_refused(fields: dict[str, object], reason: str, word: str) -> None:
    refusal = refusal_of(spec(**fields), 16, config())

    assert (refusal[0] if refusal else "") == reason
    assert word in (refusal[1] if refusal else "")


def test_refusal_names_all_causes_at_once() -> None:
    fields = spec(
        version="17",
        extensions=["vector", "pg_trgm", "hstore"],
        parameters={"search_path": "x", "work_mem": "1MB", "port": "1"},
        requirements={"storageGiB": 600, "backupRetentionDays": 7},
    )
    refusal = refusal_of(fields, 16, config(storageGiB=500))

    assert refusal is not None
    assert refusal[0] == "UnsupportedVersion"
    for text in (
        "runs PostgreSQL 16, not 17",
        "extensions hstore, pg_trgm are not allowed here; allowed: vector",
        "ask the platform team to add it to `extensions` of the ProviderConfig",
        "parameters port, search_path are not to be set here",
        "backup.retentionDays 7",
        "storageGiB 600",
    ):
        assert text in refusal[1]
    assert "work_mem" not in refusal[1]


def test_settable_parameters_are_those_of_the_page() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "onprem.md").read_text(encoding="utf-8")

    assert [name for name in sorted(SETTABLE) if f"`{name}`" not in page] == []


def test_misspelt_parameter_has_its_near_names() -> None:
    refusal = refusal_of(spec(parameters={"work_men": "1MB"}), 16, config())

    assert refusal is not None
    assert "work_mem" in refusal[1]
    assert len(refusal[1]) <= 400


@dataclass(frozen=True)
class Promise:
    """Requirements, what the server offers, and words of the refusal; none where it is met."""

    required: dict[str, object]
    offerings: dict[str, object]
    says: tuple[str, ...] = ()


PROMISES: dict[str, Promise] = {
    "nothing required": Promise({}, {}),
    "what a claim has by default": Promise({"highAvailability": False, "publicAccess": False}, {}),
    "a standby that is not offered": Promise({"highAvailability": True}, {}, ("highAvailability", "leave it out")),
    "a standby": Promise({"highAvailability": True}, {"highAvailability": True}),
    "backups that are not offered": Promise(
        {"backupRetentionDays": 14}, {}, ("backup.retentionDays 14: the ProviderConfig offers no backups;",)
    ),
    "backups for longer": Promise(
        {"backupRetentionDays": 14}, {"backupRetentionDays": 7}, ("offers backups of 7 days",)
    ),
    "backups for as long": Promise({"backupRetentionDays": 14}, {"backupRetentionDays": 14}),
    "an hour that is not named": Promise(
        {"backupStartTime": "02:30"}, {}, ("at an hour that offers.backupStartTime does not name",)
    ),
    "another hour": Promise({"backupStartTime": "02:30"}, {"backupStartTime": "04:00"}, ("at 04:00",)),
    "the server's hour": Promise({"backupStartTime": "02:30"}, {"backupStartTime": "02:30"}),
    "storage that nobody bounds": Promise({"storageGiB": 100}, {}),
    "storage that fits": Promise({"storageGiB": 100}, {"storageGiB": 100}),
    "storage beyond the disk": Promise({"storageGiB": 101}, {"storageGiB": 100}, ("storageGiB 101", "100 at most")),
    "the internet": Promise({"publicAccess": True}, {}, ("network.public", "publicAccess")),
    "a server on the internet": Promise({"publicAccess": True}, {"publicAccess": True}),
    "networks that are not named": Promise(
        {"allowedCIDRs": ["10.0.0.0/8"]}, {}, ("from networks that offers.allowedCIDRs does not name; leave it out",)
    ),
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
def test_requirement_that_the_server_does_not_offer_is_refused(case: Promise) -> None:
    refusal = refusal_of(spec(requirements=case.required), 16, config(**case.offerings))

    assert (refusal is None) == (not case.says)
    if refusal is not None:
        assert refusal[0] == "InvalidValue"
        assert [word for word in case.says if word not in refusal[1]] == []
