"""Every row of the decision about a password, and what passwords must be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis.passwords import new_password
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


@dataclass(frozen=True)
class Row:
    inputs: PasswordInputs
    step: PasswordStep


ROWS: dict[str, Row] = {
    "what the cloud accepted is waited for": Row(
        replace(
            INPUTS, kept=Kept("secret-1", "secret-2", "boss"), logins=("boss", "boss"), delivery=Delivery.UNDER_WAY
        ),
        Await(),
    ),
    "only the login that is required is missing": Row(
        replace(INPUTS, kept=Kept("secret-1", "secret-2", "boss"), logins=("boss", "boss"), delivery=Delivery.UNPROVEN),
        Await(unproven=True),
    ),
    "another password is given while no login proves the former": Row(
        replace(
            INPUTS,
            kept=Kept("secret-1", "secret-2", "boss"),
            logins=("boss", "boss"),
            user_password="secret-3",
            delivery=Delivery.UNPROVEN,
        ),
        Introduce("boss", "secret-3", "boss"),
    ),
    "what the cloud accepted and shows as settled is published": Row(
        replace(INPUTS, kept=Kept("secret-1", "secret-2", "boss"), logins=("boss", "boss"), delivery=Delivery.PROVEN),
        Confirm("boss", "secret-2", "boss"),
    ),
    "what was never sent is sent": Row(
        replace(INPUTS, kept=Kept("secret-1", "secret-2", "boss"), logins=("boss", "boss")),
        Introduce("boss", "secret-2", "boss"),
    ),
    "what the cloud accepted and every login refuses is reported": Row(
        replace(INPUTS, kept=Kept("", "secret-2", "boss"), logins=("boss", "boss"), delivery=Delivery.REFUSED),
        Missing(refused=True),
    ),
    "a user's other password takes the place of the one that is refused": Row(
        replace(
            INPUTS,
            kept=Kept("", "own-1", "boss"),
            user_password="own-2",
            delivery=Delivery.REFUSED,
            logins=("boss", "boss"),
        ),
        Introduce("boss", "own-2"),
    ),
    "a user's refused password is not sent for ever": Row(
        replace(
            INPUTS,
            kept=Kept("", "own-1", "boss"),
            user_password="own-1",
            delivery=Delivery.REFUSED,
            logins=("boss", "boss"),
        ),
        Missing(refused=True),
    ),
    "another token tries another password": Row(
        replace(
            INPUTS, kept=Kept("", "secret-2", "boss"), token="t2", delivery=Delivery.REFUSED, logins=("boss", "boss")
        ),
        Introduce("boss", ""),
    ),
    "the administrator's password is not set back": Row(
        replace(INPUTS, logins=("boss", "boss"), kept=Kept("secret-1", "", "boss"), login=Login.REFUSED),
        Missing(refused=True),
    ),
    "nor while it is the first of two": Row(
        replace(
            INPUTS,
            logins=("boss", "boss_a"),
            administrator="boss",
            kept=Kept("secret-1", "", "boss"),
            login=Login.REFUSED,
        ),
        Missing(refused=True),
    ),
    "an administrator gives way to a login of the application's own": Row(
        replace(INPUTS, logins=("boss", "boss_a"), administrator="boss", kept=Kept("secret-1", "", "boss"), token="t2"),
        Introduce("boss_a", "", "boss"),
    ),
    "the administrator's former password ends after its grace": Row(
        replace(
            INPUTS,
            logins=("boss_a", "boss_b"),
            administrator="boss",
            kept=Kept("secret-1", "", "boss_a"),
            retiring="boss",
            retire_at=NOW,
        ),
        Retire("boss"),
    ),
    "nobody else's ever does": Row(replace(INPUTS, administrator="boss", retiring="eve", retire_at=NOW), Keep()),
    "a new password for the other login is confirmed where the published one was lost": Row(
        replace(
            INPUTS,
            kept=Kept("", "secret-2", "app_b"),
            published_login="app_a",
            delivery=Delivery.PROVEN,
            login=Login.OK,
        ),
        Confirm("app_b", "secret-2", "app_a"),
    ),
    "a working password is kept": Row(INPUTS, Keep()),
    "an untried password is kept": Row(replace(INPUTS, login=Login.NOT_TRIED), Keep()),
    "a login that cannot be tried changes nothing": Row(replace(INPUTS, login=Login.UNKNOWN), Keep()),
    "a first password is made for the first login": Row(
        replace(INPUTS, kept=None, published=False), Introduce("app_a", "")
    ),
    "a user's own password is taken": Row(
        replace(INPUTS, kept=None, published=False, user_password="own-password"), Introduce("app_a", "own-password")
    ),
    "a pending first password is used again after a crash": Row(
        replace(INPUTS, kept=Kept(pending="secret-0", username="app_a"), published=False),
        Introduce("app_a", "secret-0"),
    ),
    "a refused login gets the published password back": Row(
        replace(INPUTS, login=Login.REFUSED), PutBack("app_a", "secret-1")
    ),
    "a new token rotates to the other login": Row(replace(INPUTS, token="t2"), Introduce("app_b", "", "app_a")),
    "a token is not a rotation when none was recorded": Row(replace(INPUTS, token="t2", done_token=None), Keep()),
    "a first token after the create rotates": Row(
        replace(INPUTS, token="t1", done_token=""), Introduce("app_b", "", "app_a")
    ),
    "a removed token rotates nothing": Row(replace(INPUTS, token="", done_token="t1"), Keep()),
    "a rotation goes on after a crash with the same password": Row(
        replace(INPUTS, token="t2", kept=replace(KEPT, pending="secret-2")), Introduce("app_b", "secret-2", "app_a")
    ),
    "a rotation goes before a refused login": Row(
        replace(INPUTS, token="t2", login=Login.REFUSED), Introduce("app_b", "", "app_a")
    ),
    "a user's new content rotates": Row(replace(INPUTS, user_password="own-2"), Introduce("app_b", "own-2", "app_a")),
    "a user's unchanged content rotates nothing": Row(replace(INPUTS, user_password="secret-1"), Keep()),
    "a token rotates nothing where the user gives the password": Row(
        replace(INPUTS, user_password="secret-1", token="t2"), Keep()
    ),
    "the second login rotates back to the first": Row(
        replace(INPUTS, kept=replace(KEPT, username="app_b"), token="t2"), Introduce("app_a", "", "app_b")
    ),
    "a former login works within its grace": Row(
        replace(INPUTS, retiring="app_b", retire_at=NOW + timedelta(seconds=1)), Keep()
    ),
    "a former login ends after its grace": Row(replace(INPUTS, retiring="app_b", retire_at=NOW), Retire("app_b")),
    "a lost Secret is taken back": Row(
        replace(INPUTS, kept=None, recovered="secret-1", published_login="app_b"), Restore("app_b", "secret-1")
    ),
    "a lost password is nobody's": Row(replace(INPUTS, kept=None), Missing()),
    "an emptied Secret is a lost one": Row(replace(INPUTS, kept=Kept(username="app_a")), Missing()),
    "a lost password is reset by the token": Row(
        replace(INPUTS, kept=None, token="t2", published_login="app_a"), Introduce("app_b", "", "app_a")
    ),
    "a lost password is reset by the token where the status was lost too": Row(
        replace(INPUTS, kept=None, token="t2", done_token=None), Introduce("app_a", "")
    ),
    "a lost password is replaced by the user's own": Row(
        replace(INPUTS, kept=None, user_password="own-1", published_login="app_a"), Introduce("app_b", "own-1", "app_a")
    ),
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


def test_a_made_password_may_be_a_users_own() -> None:
    assert refuse_password(new_password()) == ""


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
