"""Every row of the decision about a password, and what passwords must be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.credentials.passwords import (
    Await,
    Confirm,
    Delivery,
    Introduce,
    Keep,
    Kept,
    Missing,
    PasswordInputs,
    PasswordStep,
    PutBack,
    Restore,
    Retire,
    decide_password,
    delivery_of,
    former_login,
    keyed_hash,
    refuse_password,
)
from providers.external.credential import Login

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LOGINS = ("app_a", "app_b")
KEPT = Kept(current="secret-1", username="app_a")
INPUTS = PasswordInputs(LOGINS, KEPT, published=True, login=Login.OK, token="t1", done_token="t1")


ALONE = ("boss", "boss")
SETTLED, SENT = Kept("secret-1", "", "boss"), Kept("secret-1", "secret-2", "boss")


@dataclass(frozen=True)
class Row:
    inputs: PasswordInputs
    step: PasswordStep


def row(step: PasswordStep, **changed: Any) -> Row:
    """Return the step that follows from the usual inputs with some changed."""
    return Row(replace(INPUTS, **changed), step)


def alone(step: PasswordStep, **changed: Any) -> Row:
    """Return a row of a cloud with one login."""
    return row(step, logins=ALONE, **changed)


def adopted(step: PasswordStep, delivery: Delivery) -> Row:
    """Return a row of what was taken over with its login, whose password a user gives."""
    return alone(step, kept=None, user_password="own-1", taken_over=True, user_delivery=delivery)


ROWS: dict[str, Row] = {
    "what the cloud accepted is waited for": alone(Await(), kept=SENT, delivery=Delivery.UNDER_WAY),
    "only the login that is required is missing": alone(Await(unproven=True), kept=SENT, delivery=Delivery.UNPROVEN),
    "another password is given while no login proves the former": alone(
        Introduce("boss", "secret-3", "boss"), kept=SENT, user_password="secret-3", delivery=Delivery.UNPROVEN
    ),
    "what the cloud accepted and shows as settled is published": alone(
        Confirm("boss", "secret-2", "boss"), kept=SENT, delivery=Delivery.PROVEN
    ),
    "a new one is made where nothing shows which one counts": alone(
        Introduce("boss", "", "boss"), kept=SETTLED, is_either=True
    ),
    "what was never sent is sent": alone(Introduce("boss", "secret-2", "boss"), kept=SENT),
    "what the cloud accepted and every login refuses is reported": alone(
        Missing(refused=True), kept=Kept("", "secret-2", "boss"), delivery=Delivery.REFUSED
    ),
    "a user's other password takes the place of the one that is refused": alone(
        Introduce("boss", "own-2"), kept=Kept("", "own-1", "boss"), user_password="own-2", delivery=Delivery.REFUSED
    ),
    "a user's refused password is not sent for ever": alone(
        Missing(refused=True), kept=Kept("", "own-1", "boss"), user_password="own-1", delivery=Delivery.REFUSED
    ),
    "another token tries another password": alone(
        Introduce("boss", ""), kept=Kept("", "secret-2", "boss"), token="t2", delivery=Delivery.REFUSED
    ),
    "the administrator's password is not set back": alone(Missing(refused=True), kept=SETTLED, login=Login.REFUSED),
    "nor while it is the first of two": row(
        Missing(refused=True), logins=("boss", "boss_a"), administrator="boss", kept=SETTLED, login=Login.REFUSED
    ),
    "an administrator gives way to a login of the application's own": row(
        Introduce("boss_a", "", "boss"), logins=("boss", "boss_a"), administrator="boss", kept=SETTLED, token="t2"
    ),
    "the administrator's former password ends after its grace": row(
        Retire("boss"),
        logins=("boss_a", "boss_b"),
        administrator="boss",
        kept=Kept("secret-1", "", "boss_a"),
        retiring="boss",
        retire_at=NOW,
    ),
    "nobody else's ever does": row(Keep(), administrator="boss", retiring="eve", retire_at=NOW),
    "a new password for the other login is confirmed where the published one was lost": row(
        Confirm("app_b", "secret-2", "app_a"),
        kept=Kept("", "secret-2", "app_b"),
        published_login="app_a",
        delivery=Delivery.PROVEN,
        login=Login.OK,
    ),
    "a working password is kept": row(Keep()),
    "an untried password is kept": row(Keep(), login=Login.NOT_TRIED),
    "a login that cannot be tried changes nothing": row(Keep(), login=Login.UNKNOWN),
    "a first password is made for the first login": row(Introduce("app_a", ""), kept=None, published=False),
    "a user's own password is taken": row(
        Introduce("app_a", "own-password"), kept=None, published=False, user_password="own-password"
    ),
    "a pending first password is used again after a crash": row(
        Introduce("app_a", "secret-0"), kept=Kept(pending="secret-0", username="app_a"), published=False
    ),
    "a refused login gets the published password back": row(PutBack("app_a", "secret-1"), login=Login.REFUSED),
    "a new token rotates to the other login": row(Introduce("app_b", "", "app_a"), token="t2"),
    "a token is not a rotation when none was recorded": row(Keep(), token="t2", done_token=None),
    "a first token after the create rotates": row(Introduce("app_b", "", "app_a"), token="t1", done_token=""),
    "a removed token rotates nothing": row(Keep(), token="", done_token="t1"),
    "a rotation goes on after a crash with the same password": row(
        Introduce("app_b", "secret-2", "app_a"), token="t2", kept=replace(KEPT, pending="secret-2")
    ),
    "a rotation goes before a refused login": row(Introduce("app_b", "", "app_a"), token="t2", login=Login.REFUSED),
    "a user's new content rotates": row(Introduce("app_b", "own-2", "app_a"), user_password="own-2"),
    "a user's unchanged content rotates nothing": row(Keep(), user_password="secret-1"),
    "a token rotates nothing where the user gives the password": row(Keep(), user_password="secret-1", token="t2"),
    "the second login rotates back to the first": row(
        Introduce("app_a", "", "app_b"), kept=replace(KEPT, username="app_b"), token="t2"
    ),
    "a former login works within its grace": row(Keep(), retiring="app_b", retire_at=NOW + timedelta(seconds=1)),
    "a former login ends after its grace": row(Retire("app_b"), retiring="app_b", retire_at=NOW),
    "a lost Secret is taken back": row(
        Restore("app_b", "secret-1"), kept=None, recovered="secret-1", published_login="app_b"
    ),
    "a lost password is nobody's": row(Missing(), kept=None),
    "an emptied Secret is a lost one": row(Missing(), kept=Kept(username="app_a")),
    "a lost password is reset by the token": row(
        Introduce("app_b", "", "app_a"), kept=None, token="t2", published_login="app_a"
    ),
    "a lost password is reset by the token where the status was lost too": row(
        Introduce("app_a", ""), kept=None, token="t2", done_token=None
    ),
    "a lost password is replaced by the user's own": row(
        Introduce("app_b", "own-1", "app_a"), kept=None, user_password="own-1", published_login="app_a"
    ),
    "the present password of what was taken over is published": adopted(Restore("boss", "own-1"), Delivery.PROVEN),
    "another one than the present one is not": adopted(Missing(refused=True), Delivery.REFUSED),
    "one that is to be proven waits for a login": adopted(Await(unproven=True), Delivery.UNPROVEN),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_decide_password_returns_the_step_of_each_row(case: Row) -> None:
    assert decide_password(case.inputs, NOW) == case.step


@given(
    st.builds(
        PasswordInputs,
        logins=st.just(LOGINS),
        kept=st.none()
        | st.builds(
            Kept,
            current=st.sampled_from(["", "c"]),
            pending=st.sampled_from(["", "p"]),
            username=st.sampled_from(["", *LOGINS]),
        ),
        published=st.booleans(),
        login=st.sampled_from(Login),
        token=st.sampled_from(["", "t1", "t2"]),
        done_token=st.sampled_from([None, "", "t1"]),
        user_password=st.sampled_from(["", "c", "own"]),
        retiring=st.sampled_from(["", *LOGINS]),
        retire_at=st.sampled_from([None, NOW, NOW + timedelta(hours=1)]),
    )
)
def test_published_login_never_gets_another_password(inputs: PasswordInputs) -> None:
    step = decide_password(inputs, NOW)

    if (
        inputs.kept is not None
        and inputs.kept.current
        and inputs.kept.username
        and isinstance(step, Introduce | PutBack)
    ):
        assert step.username != inputs.kept.username or step.password == inputs.kept.current


@pytest.mark.parametrize("password", ["short-1", "x" * 129, "with a space 1", "umlaut-ä-12345", "tab\there-123", ""])
def test_unusable_passwords_are_named_by_their_rule_alone(password: str) -> None:
    rule = refuse_password(password)

    assert rule
    assert password == "" or password not in rule


@pytest.mark.parametrize("password", ["12345678", "x" * 128, "we/ird@:%?&#'\"\\-1"])
def test_usable_passwords_pass(password: str) -> None:
    assert refuse_password(password) == ""


def test_keyed_hash_depends_on_key_and_password() -> None:
    assert keyed_hash(b"key", "one") == keyed_hash(b"key", "one")
    assert len({keyed_hash(b"key", "one"), keyed_hash(b"key", "two"), keyed_hash(b"other", "one")}) == 3


@pytest.mark.parametrize(
    ("published", "kept", "expected"),
    [
        ("app_a", Kept("new", "", "app_b"), "app_a"),
        ("app_a", Kept("old", "new", "app_a"), ""),
        ("app_a", Kept("old", "", "app_a"), ""),
        ("", Kept("old", "", "app_a"), ""),
        ("app_a", None, ""),
    ],
    ids=["a crash kept the switch from being reported", "not proven yet", "at rest", "never published", "no Secret"],
)
def test_rotation_that_was_not_reported_names_the_login_that_retires(
    published: str, kept: Kept | None, expected: str
) -> None:
    assert former_login(published, kept) == expected


@pytest.mark.parametrize(
    ("answer", "sent", "settled", "again", "required", "delivery"),
    [
        (Login.OK, False, False, True, False, Delivery.PROVEN),
        (Login.REFUSED, False, False, True, False, Delivery.NONE),
        (Login.REFUSED, True, False, False, False, Delivery.UNDER_WAY),
        (Login.REFUSED, True, True, False, False, Delivery.REFUSED),
        (Login.REFUSED, True, True, True, False, Delivery.NONE),
        (Login.UNKNOWN, False, False, True, False, Delivery.NONE),
        (Login.UNKNOWN, True, False, True, False, Delivery.UNDER_WAY),
        (Login.UNKNOWN, True, True, False, False, Delivery.PROVEN),
        (Login.UNKNOWN, True, True, False, True, Delivery.UNPROVEN),
        (Login.UNKNOWN, True, False, False, True, Delivery.UNDER_WAY),
        (Login.OK, True, True, False, True, Delivery.PROVEN),
    ],
)
def test_delivery_of_a_pending_password(
    answer: Login, *, sent: bool, settled: bool, again: bool, required: bool, delivery: Delivery
) -> None:
    assert delivery_of(answer, sent=sent, settled=settled, again=again, required=required) is delivery
