"""Every row of what counts of a credentials Secret that its tenant may write."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.credentials.passwords import Kept, keyed_hash, refuse_password
from providers.credentials.secret_check import Recorded, Unproven, check, coming_hash, still_coming

KEY = b"the provider's own key"
LOGINS = ("app_hash_a", "app_hash_b")
A, B = LOGINS
ALONE = ("boss", "boss")
OURS, NEXT, THEIRS = "published-1", "introduced-2", "written-by-a-tenant"
PUBLISHED = Recorded(A, keyed_hash(KEY, OURS), is_made=True)
ROTATING = replace(PUBLISHED, coming=coming_hash(KEY, B, NEXT))
CREATING = Recorded(coming=coming_hash(KEY, A, NEXT))
LOST_STATUS = Recorded(is_made=True)
SENT = Recorded("boss", keyed_hash(KEY, OURS), sent=keyed_hash(KEY, NEXT), is_made=True)


@dataclass(frozen=True)
class Row:
    """A Secret's content, what the status records, and what counts of it."""

    kept: Kept
    recorded: Recorded
    counts: Kept
    foreign: tuple[str, ...] = ()
    unproven: Unproven | None = None
    logins: tuple[str, str] = LOGINS


ROWS: dict[str, Row] = {
    # What Fairlead wrote
    "the published password": Row(Kept(OURS, "", A), PUBLISHED, Kept(OURS, "", A)),
    "a certificate beside it": Row(Kept(OURS, "", A, "pem"), PUBLISHED, Kept(OURS, "", A, "pem")),
    "a rotation that a crash cut off before its proof": Row(Kept(OURS, NEXT, A), ROTATING, Kept(OURS, NEXT, A)),
    "a rotation that a crash kept from being reported": Row(Kept(NEXT, "", B), ROTATING, Kept(NEXT, "", B)),
    "a first password that is pending": Row(Kept("", NEXT, A), CREATING, Kept("", NEXT, A)),
    "a first password that a crash kept from being reported": Row(Kept(NEXT, "", A), CREATING, Kept(NEXT, "", A)),
    "a password that a slow cloud has taken": Row(
        Kept(OURS, NEXT, "boss"), SENT, Kept(OURS, NEXT, "boss"), logins=ALONE
    ),
    "a slow cloud's password that a crash kept from being reported": Row(
        Kept(NEXT, "", "boss"), SENT, Kept(NEXT, "", "boss"), logins=ALONE
    ),
    "a Secret of a restored cluster, whose statuses are lost": Row(Kept(OURS, "", B), LOST_STATUS, Kept(OURS, "", B)),
    "an empty Secret": Row(Kept(), PUBLISHED, Kept()),
    # The login
    "another's login": Row(Kept(OURS, "", "their_hash_b"), PUBLISHED, Kept(OURS, "", A), ("username",)),
    "another's login without a password": Row(Kept("", "", "their_hash_b"), PUBLISHED, Kept(), ("username",)),
    "an attribute behind a login": Row(Kept(OURS, "", f"{A}.createrole"), PUBLISHED, Kept(OURS, "", A), ("username",)),
    "the other of its own logins": Row(Kept(OURS, "", B), PUBLISHED, Kept(OURS, "", A), ("username",)),
    "no login": Row(Kept(OURS), PUBLISHED, Kept(OURS, "", A), ("username",)),
    "another's login with a password for it": Row(Kept("", THEIRS, "their_hash_b"), PUBLISHED, Kept(), ("username",)),
    "another's login before anything was made": Row(
        Kept("", THEIRS, "their_hash_b"), Recorded(), Kept(), ("username", "pending")
    ),
    "another's login where the status is lost": Row(
        Kept(OURS, "", "their_hash_b"), LOST_STATUS, Kept(), ("username", "current")
    ),
    # The password
    "another password": Row(
        Kept(THEIRS, "", A), PUBLISHED, Kept("", "", A), ("current",), Unproven("current", A, THEIRS)
    ),
    "another password of the other login": Row(
        Kept(THEIRS, "", B), PUBLISHED, Kept("", "", A), ("current",), Unproven("current", B, THEIRS)
    ),
    "another password of another's login": Row(
        Kept(THEIRS, "", "their_hash_b"),
        PUBLISHED,
        Kept("", "", A),
        ("username", "current"),
        Unproven("current", A, THEIRS),
    ),
    "the next password under the published login": Row(Kept(NEXT, "", A), ROTATING, Kept(NEXT, "", B)),
    "a password before anything was made": Row(Kept(THEIRS, "", A), Recorded(), Kept(), ("current",)),
    "a pending password that nobody asked for": Row(Kept(OURS, THEIRS, A), PUBLISHED, Kept(OURS, "", A), ("pending",)),
    "another pending password": Row(Kept(OURS, THEIRS, A), ROTATING, Kept(OURS, "", A), ("pending",)),
    "a pending password for the wrong login": Row(
        Kept("", NEXT, A), replace(ROTATING, username="", published=""), Kept("", "", A), ("pending",)
    ),
    "a pending password beside none that is published": Row(Kept("", NEXT, A), ROTATING, Kept("", "", A)),
    "what was sent beside none that is published, whosever the Secret says it is": Row(
        Kept("", NEXT, A), replace(PUBLISHED, sent=keyed_hash(KEY, NEXT)), Kept("", NEXT, B)
    ),
    "a pending password of a slow cloud that the status forgot": Row(
        Kept(OURS, NEXT, "boss"),
        replace(SENT, sent=""),
        Kept(OURS, "", "boss"),
        ("pending",),
        Unproven("pending", "boss", NEXT),
        ALONE,
    ),
    "a password with letters that no verifier takes": Row(
        Kept("pässwörter", "", A), LOST_STATUS, Kept("", "", A), ("current",)
    ),
    "a password that is too short": Row(Kept("short", "x", A), LOST_STATUS, Kept("", "", A), ("current", "pending")),
    "a password with a zero byte": Row(Kept(OURS, "zero\0byte", A), PUBLISHED, Kept(OURS, "", A), ("pending",)),
    "a password with quotes": Row(Kept(OURS, "';DROP--\"\\x", A), PUBLISHED, Kept(OURS, "", A), ("pending",)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_check_returns_what_counts_of_each_row(row: Row) -> None:
    checked = check(row.kept, row.recorded, row.logins, KEY)

    assert (checked.kept, checked.foreign, checked.unproven) == (row.counts, row.foreign, row.unproven)


def test_password_that_a_login_proves_counts() -> None:
    current = check(Kept(THEIRS, "", B), PUBLISHED, LOGINS, KEY).proven()
    pending = check(Kept(OURS, NEXT, "boss"), replace(SENT, sent=""), ALONE, KEY).proven()

    assert (current.kept, current.foreign) == (Kept(THEIRS, "", B), ())
    assert (pending.kept, pending.foreign) == (Kept(OURS, NEXT, "boss"), ())


TEXTS = st.one_of(st.sampled_from([OURS, NEXT, THEIRS, A, B, "", "their_hash_b", f"{B}.login"]), st.text(max_size=20))


@given(
    st.builds(Kept, TEXTS, TEXTS, TEXTS, st.just("")),
    st.sampled_from([PUBLISHED, ROTATING, CREATING, LOST_STATUS, Recorded()]),
)
def test_check_accepts_what_is_derived_or_recorded_whatever_the_secret_holds(kept: Kept, recorded: Recorded) -> None:
    checked = check(kept, recorded, LOGINS, KEY)

    assert checked.kept.username in {*LOGINS, ""}
    assert checked.unproven is None or checked.unproven.username in LOGINS
    assert not any(text and refuse_password(text) for text in (checked.kept.current, checked.kept.pending))
    if recorded.published:
        assert checked.kept.current in {"", OURS, NEXT}
    if recorded is not LOST_STATUS:
        assert checked.kept.pending in {"", NEXT}


def test_unpublished_password_is_recorded_by_login_and_password() -> None:
    connection = {"passwordRef": {"hash": keyed_hash(KEY, OURS)}}

    assert still_coming(KEY, LOGINS, Kept(OURS, "", A), connection) == ""
    assert still_coming(KEY, LOGINS, Kept(), connection) == ""
    assert still_coming(KEY, LOGINS, Kept(OURS, NEXT, A), connection) == coming_hash(KEY, B, NEXT)
    assert still_coming(KEY, LOGINS, Kept(NEXT, "", B), connection) == coming_hash(KEY, B, NEXT)
    assert still_coming(KEY, LOGINS, Kept("", NEXT, A), {}) == coming_hash(KEY, A, NEXT)
