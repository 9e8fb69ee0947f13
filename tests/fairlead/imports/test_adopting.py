"""What a preview says to people, and what an agreement in a file is."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.exits import CommandError
from fairlead.imports.adopting import Agreement, agreements_in, is_ours, preview_of
from runtime.objects import Key, Object
from tests.composer.factories import DATABASES

ADOPTION = {
    "incarnation": "16434-ab",
    "hash": "3f9a",
    "ownership": [{"path": "tags.claim", "observed": "unset", "desired": "shop/orders"}],
    "changes": [{"path": "connectionLimit", "observed": "-1", "desired": "20", "when": "Window"}],
    "total": 2,
}


def _object(policy: str = "Manage", **status: Any) -> Object:
    meta = {"name": "orders", "namespace": "shop"}
    spec = {"managementPolicy": policy}
    return {
        "apiVersion": DATABASES.api_version,
        "kind": DATABASES.kind,
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def test_people_read_every_change_that_is_shown_how_many_more_there_are_and_the_command() -> None:
    assert list(preview_of(_object(adoption=ADOPTION)).lines()) == [
        "postgresdatabase/orders: 2 changes",
        "  connectionLimit: -1 -> 20 (Window)",
        "  and 1 more",
        "  whose it is: tags.claim: unset -> shop/orders",
        "  to agree: fairlead import adopt postgresdatabase/orders -n shop --agreed 3f9a",
    ]
    (_, *_), (nothing, *_) = ADOPTION, preview_of(_object(adoption={"hash": "1", "incarnation": "2"})).lines()
    assert nothing == "postgresdatabase/orders: nothing but whose it is"


def test_where_nothing_can_be_adopted_the_providers_sentence_is_shown() -> None:
    synced = {"type": "Synced", "status": "False", "message": "there is none"}

    assert list(preview_of(_object(conditions=[synced])).lines()) == [
        "postgresdatabase/orders: nothing to adopt: there is none"
    ]


@pytest.mark.parametrize(
    ("obj", "ours"),
    [
        (_object(), False),
        (_object(incarnation="16434-ab"), True),
        (_object(incarnation="16434-ab", adoption=ADOPTION), False),
        (_object("Observe", incarnation="16434-ab"), False),
    ],
)
def test_what_is_recorded_and_managed_is_ours(obj: Object, ours: bool) -> None:  # noqa: FBT001 - a row
    assert is_ours(obj) is ours


def test_all_that_is_in_a_file_of_previews_is_agreed_to_but_what_cannot_be_adopted() -> None:
    entry = {"kind": DATABASES.kind, "namespace": "shop", "name": "orders", "agreement": "3f9a"}
    kinds = {DATABASES.kind: DATABASES}

    agreements = agreements_in({"previews": [entry, {**entry, "agreement": ""}]}, kinds)

    assert agreements == [Agreement(DATABASES, Key("shop", "orders"), "3f9a")]
    wrongs: tuple[object, ...] = ([], {"previews": {}}, {"previews": [{**entry, "kind": "Other"}]}, {"previews": [1]})
    for wrong in wrongs:
        with pytest.raises(CommandError):
            agreements_in(wrong, kinds)
