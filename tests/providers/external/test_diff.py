"""What differs, by fields of every kind; the oracle knows the four ways to compare and none of our code."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from providers.external.diff import Compare, compared, diff
from providers.external.observation import digest


class Model(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    plain_number: int | None = None
    set_at_creation: Annotated[str, compared(Compare.CREATE_ONLY)] | None = None
    members: Annotated[tuple[str, ...], compared(Compare.CONTAINS)] | None = None
    settings: Annotated[dict[str, str], compared(Compare.WHOLE_MAP)] | None = None


WORDS = st.sampled_from(["a", "b", "c"])
MODELS = st.builds(
    Model,
    plain_number=st.none() | st.integers(0, 3),
    set_at_creation=st.none() | WORDS,
    members=st.none() | st.lists(WORDS, unique=True).map(tuple),
    settings=st.none() | st.dictionaries(WORDS, WORDS),
)


@given(MODELS, MODELS)
def test_diff_finds_every_difference_and_no_other(want: Model, have: Model) -> None:
    expected: set[tuple[str, Any, Any]] = set()
    if want.plain_number is not None and want.plain_number != have.plain_number:
        expected.add(("plainNumber", want.plain_number, have.plain_number))
    for member in set(want.members or ()) - set(have.members or ()):
        expected.add((f"members.{member}", "present", "absent"))
    if want.settings is not None:
        there = have.settings or {}
        for key in set(want.settings) | set(there):
            if want.settings.get(key) != there.get(key):
                expected.add((f"settings.{key}", want.settings.get(key), there.get(key)))

    assert {(change.shown, change.want, change.have) for change in diff(want, have)} == expected


@given(MODELS)
def test_diff_of_equal_models_is_empty(model: Model) -> None:
    assert diff(model, model) == ()


@given(MODELS, MODELS)
def test_diff_leaves_out_what_is_ignored(want: Model, have: Model) -> None:
    changes = diff(want, have, ignore=["settings", "members.a"])

    assert not [change for change in changes if change.path[0] == "settings" or change.path == ("members", "a")]
    assert {*changes} <= {*diff(want, have)}


@given(MODELS, MODELS)
def test_digests_are_equal_for_equal_values_alone(model: Model, other: Model) -> None:
    assert (digest(model) == digest(other)) == (model == other)
