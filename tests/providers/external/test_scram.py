"""SCRAM-SHA-256 against the example of RFC 7677, section 3, and against a server's part written from RFC 5802."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from providers.external.sql.scram import Exchange, ScramError, verifier

# RFC 7677, section 3: user "user", password "pencil". PostgreSQL ignores the name in the message and sends none.
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_verifier_holds_the_keys_of_the_rfcs_example() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    stored = hashlib.sha256(hmac.new(salted, b"Client Key", hashlib.sha256).digest()).digest()

    made = verifier("pencil", SALT)

    assert made.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert base64.b64encode(stored).decode() in made
    # StoredKey and ServerKey of that example, as several implementations publish them.
    assert made.endswith("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")


def test_proof_opens_the_stored_key() -> None:
    exchange = Exchange("pencil", "rOprNGfwEbeRWgbNEkqO")
    first = f"r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},s={base64.b64encode(SALT).decode()},i=4096".encode()

    final, expected = exchange.answer(first)

    bare, _, proof = final.rpartition(b",p=")
    signed = b",".join((exchange.first.removeprefix(b"n,,"), first, bare))
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    stored = hashlib.sha256(hmac.new(salted, b"Client Key", hashlib.sha256).digest()).digest()
    signature = hmac.new(stored, signed, hashlib.sha256).digest()
    client_key = bytes(left ^ right for left, right in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha256(client_key).digest() == stored
    server_key = hmac.new(salted, b"Server Key", hashlib.sha256).digest()
    assert expected == b"v=" + base64.b64encode(hmac.new(server_key, signed, hashlib.sha256).digest())


@pytest.mark.parametrize(
    "message",
    [b"", b"r=stranger,s=AAAA,i=4096", b"r=nonce,i=4096", b"r=nonce,s=AAAA,i=0", b"r=nonce,s=AAAA,i=99999999999"],
)
def test_server_that_proves_nothing_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError):
        Exchange("pencil", "nonce").answer(message)
