"""Certificates of an authority and keys of a credentials Secret: missing, strange, broken."""

from __future__ import annotations

import pytest

from providers.external import authority
from providers.external.config import CaReference
from providers.external.secret_keys import refuse_other_keys, refuse_white_space, required
from runtime.errors import Blocked, Terminal

REFERENCE = CaReference("ca", "bundle.pem")
REMEDY = "put the bundle there"


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


KEYS = ("clientID", "clientSecret")


def test_a_key_is_read_or_missed_by_name() -> None:
    assert required("azure", {"clientID": "a"}, "clientID") == "a"
    for secret in ({}, {"clientSecret": ""}):
        with pytest.raises(Blocked, match="Secret azure has no key clientSecret") as missing:
            required("azure", secret, "clientSecret")
        assert missing.value.reason == "CredentialsMissing"


def test_other_keys_are_refused() -> None:
    refuse_other_keys("azure", {"clientID": "a"}, KEYS)

    with pytest.raises(Terminal, match="Secret azure has key config; only clientID, clientSecret are read") as refused:
        refuse_other_keys("azure", {"clientID": "a", "config": "[profile]", "profile": "x"}, KEYS)
    assert refused.value.reason == "CredentialsForbidden"
    assert "[profile]" not in str(refused.value)


@pytest.mark.parametrize("value", ["hunter-2\n", " hunter-2", "hunter\t2", "hunter-2\u00e9", "hunter\0"])
def test_a_value_with_white_space_is_refused(value: str) -> None:
    refuse_white_space("azure", {"clientSecret": "hunter-2~!"}, KEYS)

    with pytest.raises(Terminal, match="key clientSecret of Secret azure holds white space") as refused:
        refuse_white_space("azure", {"clientSecret": value}, KEYS)
    assert refused.value.reason == "CredentialsInvalid"
    assert "hunter" not in str(refused.value)
