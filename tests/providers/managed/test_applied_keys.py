"""Tags that the spec set and names no more go; those of others stay, whatever crashes in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pytest

from providers.external.diff import Compare, compared, diff
from providers.external.observation import Keys
from tests.providers.toy import TOYS, Toy, ToyCloud
from tests.providers.world import World, settled


class Model(msgspec.Struct, frozen=True):
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None
    size: int | None = None


@dataclass(frozen=True)
class Case:
    name: str
    want: dict[str, str] | None
    have: dict[str, str]
    applied: Keys = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    changes: tuple[tuple[str, str | None], ...] = ()


CASES = (
    Case("a tag of others is nobody's business", {"a": "1"}, {"a": "1", "theirs": "x"}),
    Case("a tag that the spec set and names no more goes", {"a": "1"}, {"a": "1", "b": "2"}, {"tags": ("a", "b")},
         changes=(("tags.b", None),)),
    Case("what is gone already is no difference", {"a": "1"}, {"a": "1"}, {"tags": ("a", "b")}),
    Case("a spec without any tag takes all of its own away", None, {"a": "1", "theirs": "x"}, {"tags": ("a",)},
         changes=(("tags.a", None),)),
    Case("a spec without tags that never had any manages none", None, {"a": "1"}),
    Case("a tag that moved is set anew beside one that goes", {"c": "3"}, {"a": "1"}, {"tags": ("a",)},
         changes=(("tags.a", None), ("tags.c", "3"))),
    Case("what is ignored stays", {}, {"a": "1"}, {"tags": ("a",)}, ("tags",)),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_diff_of_shared_maps(case: Case) -> None:
    changes = diff(Model(tags=case.want), Model(tags=case.have), ignore=case.ignore, applied=case.applied)

    assert tuple((change.shown, change.want) for change in changes) == case.changes


def applied(world: World) -> Any:
    return world.status.get("appliedKeys")


def only(cloud: ToyCloud) -> Toy:
    (toy,) = cloud.toys.values()
    return toy


async def test_tag_goes_when_the_spec_drops_it_and_others_stay() -> None:
    world = await settled(cloud := ToyCloud(), tags={"team": "red", "cost": "1"})
    assert applied(world) == {"tags": ["cost", "team"]}
    only(cloud).tags["theirs"] = "x"

    world.ask(tags={"team": "blue"})
    await world.settle()
    assert (only(cloud).tags, applied(world)) == ({"team": "blue", "theirs": "x"}, {"tags": ["team"]})

    world.ask()
    await world.settle()
    assert (only(cloud).tags, applied(world)) == ({"theirs": "x"}, None)

    # What a person sets afterwards is a person's.
    only(cloud).tags["team"] = "green"
    await world.settle()
    assert only(cloud).tags == {"theirs": "x", "team": "green"}
    assert [call for call in cloud.calls if call.startswith("update")] == [
        "update ['tags.cost', 'tags.team']", "update ['tags.team']",
    ]  # fmt: skip


async def test_tags_stay_where_the_status_is_lost() -> None:
    world = await settled(cloud := ToyCloud(), tags={"team": "red"})
    world.kube.store(TOYS, {**world.ask(tags={}), "status": {}})
    await world.settle()

    assert only(cloud).tags == {"team": "red"}
