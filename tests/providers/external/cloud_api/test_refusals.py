"""The sentence, pause and class of a refusal; a create that meets an object of its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from providers.external.client import ExternalClient, Target
from providers.external.cloud_api.creates import created
from providers.external.cloud_api.refusals import (
    LONGEST,
    AlreadyThere,
    clean,
    failure_by_code,
    pause_of,
    sentence,
)
from providers.external.observation import Absent, Observed, Phase, Present
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal, Transient
from tests.support.toy_shelves import ShelfParameters


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


OWNER = Owner("home", "uid-1", "0123456789abcdef")
TARGET = Target("fl-a", ShelfParameters(book_ids=()), OWNER, "hash")


@dataclass
class Cloud:
    """Answers every observation with one owner; None for an object that is not shown."""

    owner: Owner | None

    async def observe(self, target: Target[ShelfParameters]) -> Present[ShelfParameters, None] | Absent:
        if self.owner is None:
            return Absent()
        return Present(Observed(target.name, "id-1", self.owner, Phase.READY, target.spec, None, {}))

    def client(self) -> ExternalClient[ShelfParameters, None]:
        return cast("ExternalClient[ShelfParameters, None]", self)


async def _refused() -> Any:
    raise AlreadyThere("fl-a is taken", code="409")


async def test_create_that_met_an_object_is_ours_anothers_or_waited_for() -> None:
    stranger = replace(OWNER, identity="uid-2")

    assert await created(_refused(), Cloud(OWNER).client(), TARGET, "shelf fl-a") is None
    with pytest.raises(AlreadyThere, match="fl-a is taken"):
        await created(_refused(), Cloud(stranger).client(), TARGET, "shelf fl-a")
    with pytest.raises(Transient, match="shelf fl-a is there and not shown yet"):
        await created(_refused(), Cloud(None).client(), TARGET, "shelf fl-a")
