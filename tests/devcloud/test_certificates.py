"""Authorities and certificates as strict verifiers want them."""

import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import verification

from devcloud.certificates import Subject, authority_in, new_authority, signing_keys_in
from devcloud.errors import DevcloudError


def test_a_server_certificate_verifies_for_its_hosts_under_a_strict_verifier() -> None:
    authority = new_authority("Test")
    pair = authority.issue(Subject("server", hosts=("127.7.0.1", "localhost")))
    leaf = x509.load_pem_x509_certificate(pair.certificate_pem)
    builder = verification.PolicyBuilder().store(verification.Store([authority.certificate]))

    for host in (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.7.0.1"))):
        assert builder.build_server_verifier(host).verify(leaf, [])
    with pytest.raises(verification.VerificationError):
        builder.build_server_verifier(x509.DNSName("elsewhere")).verify(leaf, [])


def test_another_authoritys_certificate_is_refused() -> None:
    leaf = x509.load_pem_x509_certificate(
        new_authority("One").issue(Subject("a", hosts=("localhost",))).certificate_pem
    )
    builder = verification.PolicyBuilder().store(verification.Store([new_authority("Two").certificate]))

    with pytest.raises(verification.VerificationError):
        builder.build_server_verifier(x509.DNSName("localhost")).verify(leaf, [])


def test_an_authority_is_made_once_and_private(tmp_path: Path) -> None:
    first, second = authority_in(tmp_path, "ca"), authority_in(tmp_path, "ca")

    assert first.pem == second.pem
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE KEY" not in repr(first.issue(Subject("x")))
    ssl.create_default_context(cadata=first.pem.decode())


def test_signing_keys_are_made_once(tmp_path: Path) -> None:
    private, public = signing_keys_in(tmp_path, "sa")
    before = private.read_bytes(), public.read_bytes()
    signing_keys_in(tmp_path, "sa")

    assert before == (private.read_bytes(), public.read_bytes())
    assert private.stat().st_mode & 0o777 == 0o600


def test_a_damaged_key_is_named_with_the_way_out(tmp_path: Path) -> None:
    authority_in(tmp_path, "ca")
    (tmp_path / "ca.key").write_text("not a key")

    with pytest.raises(DevcloudError, match=r"ca\.crt or its key is damaged: remove both"):
        authority_in(tmp_path, "ca")
