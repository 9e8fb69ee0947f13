"""Certificates of an authority: under a key of a Secret, or in a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcloud.certificates import authority_in
from providers.external import authority
from providers.external.config import CaReference
from runtime.errors import Blocked, Terminal

REFERENCE = CaReference("ca", "bundle.pem")
REMEDY = "put the bundle there"


def test_certificates_are_read_from_a_key(tmp_path: Path) -> None:
    pem = authority_in(tmp_path, "test").pem.decode()

    assert authority.authority_in({"ca": {"bundle.pem": pem}}, REFERENCE, remedy=REMEDY) == pem
    # While an authority is replaced both are there.
    assert authority.certificates(pem + pem, "caBundle", remedy=REMEDY) == pem + pem


def test_a_missing_key_is_named() -> None:
    with pytest.raises(Blocked, match=r"there is no key bundle\.pem of Secret ca") as missing:
        authority.authority_in({"ca": {"ca.crt": "x"}}, REFERENCE, remedy=REMEDY)
    assert missing.value.reason == "CredentialsMissing"


def test_a_text_without_a_certificate_is_refused_and_not_shown() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nhunter-2\n-----END PRIVATE KEY-----\n"
    with pytest.raises(Terminal, match=r"bundle\.pem of Secret ca holds no PEM certificate; put the bundle") as refused:
        authority.authority_in({"ca": {"bundle.pem": pem}}, REFERENCE, remedy=REMEDY)
    assert refused.value.reason == "CredentialsInvalid"
    assert "hunter-2" not in str(refused.value)


def test_an_empty_text_stands_for_the_systems_roots() -> None:
    assert authority.certificates("", "caBundle", remedy=REMEDY) == ""
