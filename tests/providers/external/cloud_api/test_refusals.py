"""The sentence, the pause and the class of a refusal, whatever the wire that it came by."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.external.cloud_api.refusals import (
    LONGEST,
    AlreadyThere,
    NotThere,
    clean,
    failure_by_code,
    pause_of,
    sentence,
)
from runtime.errors import Blocked, Terminal, Transient


def test_a_text_is_cleaned_of_secrets_and_line_ends_and_cut() -> None:
    assert clean("the password\n  hunter-2 is\tweak", ["hunter-2", ""]) == "the password [redacted] is weak"
    assert len(clean("x" * (LONGEST + 1))) == LONGEST


def test_a_secret_is_hidden_before_the_text_is_cut() -> None:
    text = "x" * (LONGEST - 3) + "hunter-2"

    assert "hun" not in clean(text, ["hunter-2"])


def test_a_sentence_has_the_action_the_cause_and_the_code() -> None:
    assert sentence("create instance x", "It is taken.", "Taken") == "cannot create instance x: It is taken (Taken)"
    assert sentence("create instance x", "", "Taken") == "cannot create instance x: it was refused (Taken)"


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("", 5),
        ("0", 5),
        ("-1", 5),
        ("17", 17),
        ("17.5", 17.5),
        ("300", 300),
        ("86400", 300),
        ("inf", 5),
        ("nan", 5),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 5),
    ],
)
def test_a_pause_is_as_long_as_the_cloud_says_within_bounds(retry_after: str, seconds: float) -> None:
    assert pause_of(retry_after) == timedelta(seconds=seconds)


def test_a_code_has_its_class() -> None:
    blocked, terminal = {"operationInProgress": "CloudBusy"}, {"notAuthorized": "AccessDenied"}

    busy = failure_by_code("operationInProgress", "x", blocked=blocked, terminal=terminal, is_server_error=False)
    assert (type(busy), getattr(busy, "reason", "")) == (Blocked, "CloudBusy")
    denied = failure_by_code("notAuthorized", "x", blocked=blocked, terminal=terminal, is_server_error=False)
    assert (type(denied), getattr(denied, "reason", "")) == (Terminal, "AccessDenied")
    for is_server_error in (True, False):
        other = failure_by_code("other", "x", blocked=blocked, terminal=terminal, is_server_error=is_server_error)
        assert isinstance(other, Transient)
        assert other.is_momentary is is_server_error


def test_what_is_not_there_and_what_is_there_already_have_reason_and_code() -> None:
    absent, taken = NotThere("gone", code="404"), AlreadyThere("taken", code="409")

    assert (absent.reason, absent.code, str(absent)) == ("ReferenceNotFound", "404", "gone")
    assert (taken.reason, taken.code, str(taken)) == ("NameTaken", "409", "taken")
