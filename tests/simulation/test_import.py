"""What somebody made by hand is taken over on every cloud: no call but the agreed ones, no login refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from fairlead.account_lists import Search
from fairlead.exits import Exit
from fairlead.imports import agreeing, unmanaged, writing
from fairlead.kube_options import USUAL
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS
from runtime.conditions import find
from runtime.objects import status_of
from tests.simulation.history import TEAM
from tests.simulation.takeover import CONFIG, ENOUGH_S, on_the_server, team_of

pytestmark = pytest.mark.slow

_MANY: Final = 24
_PAGE: Final = 1_000
_OF_DATA: Final = ("servers", "databases")


@pytest.mark.parametrize("cloud", clouds.NAMES)
def test_what_was_made_by_hand_is_managed_by_its_owners_tags_alone(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_time.run(f"import {cloud}", lambda: _managed(cloud, monkeypatch))


async def _managed(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of(cloud, monkeypatch)
    await team.begin(cloud)
    before = team.changes()
    tags = {} if cloud == "onprem" else {"costs": "77"}
    (account,) = await unmanaged.find(CONFIG, Search(tags=tags), USUAL)
    (nothing,) = await unmanaged.find(CONFIG, Search(tags={"costs": "78"}), USUAL)
    options = writing.Options(CONFIG, ("shop*",), TEAM, USUAL, password_secret="" if cloud == "gcp" else "of-before")
    (shown,) = await writing.show(options)
    (written,) = await writing.write(options)
    resource, key = await team.apply(written.text)
    (preview,) = await agreeing.previews([], TEAM, USUAL)
    await asyncio.sleep(ENOUGH_S)
    untouched = team.changes()
    wrong = await agreeing.adopt(agreeing.Request(preview.called, "0" * 16, None, TEAM, USUAL))
    (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
    await asyncio.sleep(ENOUGH_S)
    obj = team.object(resource, key)
    await team.end()

    assert ([thing.name for thing in account.things], nothing.things) == ([team.hand_made.name], ())
    assert len(shown["forProvider"]) > 5
    assert untouched == before
    assert (wrong[0].exit, adopted.exit) == (Exit.REFUSED, Exit.DONE)
    # On premises a login of its own is made beside those that there are, which the preview says.
    assert (preview.total > 0) == (cloud == "onprem")
    assert team.changes()[len(before) :] == [f"provider {'databases' if cloud == 'onprem' else 'servers'}.change"]
    assert (find(obj, "Ready") or {})["status"] == "True", status_of(obj)["conditions"]
    assert not [entry for entry in status_of(obj).get("drift") or () if entry["action"] != "Tolerated"]
    assert (team.refused, team.logins > 500) == (0, True)


@pytest.mark.parametrize("cloud", ["aws", "azure", "onprem"])
def test_a_claim_takes_it_over_and_what_it_leaves_comes_back(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_time.run(f"import {cloud}", lambda: _claimed(cloud, monkeypatch))


async def _claimed(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of(cloud, monkeypatch)
    await team.begin(cloud)
    secret = "" if cloud == "onprem" else "of-before"
    inside = ("database=databases/shop-prod/shop",) if cloud == "azure" else ()
    options = writing.Options(CONFIG, ("shop*",), TEAM, USUAL, as_claims=True, inside=inside, password_secret=secret)
    (written,) = await writing.write(options)
    before = team.changes(*_OF_DATA)
    _, key = await team.apply(written.text)
    await asyncio.sleep(ENOUGH_S)
    untouched = team.changes(*_OF_DATA)
    exits = []
    # What is inside of a server is looked at once the server is ours.
    for _ in range(2 if inside else 1):
        (preview,) = [shown for shown in await agreeing.previews([], TEAM, USUAL) if shown.agreement]
        (adopted,) = await agreeing.adopt(agreeing.Request(preview.called, preview.agreement, None, TEAM, USUAL))
        exits.append(adopted.exit)
        await asyncio.sleep(ENOUGH_S)
    claim, admitted = team.object(CLAIMS, key), (team.refused, team.logins > 500)
    made = {call.rpartition(".")[2] for call in team.changes(*_OF_DATA)[len(before) :]}
    policy = "Snapshot" if cloud == "onprem" else "Orphan"
    left = await team.left_and_found(key, policy)
    (again,) = [thing for thing in left if thing.kind in {"RDSInstance", "FlexibleServer", "PostgresDatabase"}]
    after = await team.adopted(again, secret)
    await team.end()

    assert untouched == before
    assert again.name.endswith("shop") if cloud == "onprem" else again.name == team.hand_made.name
    assert (find(after, "Ready") or {})["status"] == "True", [c["message"] for c in status_of(after)["conditions"]]
    assert written.remarks
    assert set(exits) == {Exit.DONE}
    assert (find(claim, "Ready") or {})["status"] == "True", status_of(claim)["conditions"]
    assert made == {"change"}
    assert admitted == (0, True)


def test_many_are_adopted_once_each_though_the_command_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual_time.run("import many", lambda: _many(tmp_path, monkeypatch))


async def _many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = team_of("onprem", monkeypatch)
    await team.begin("onprem")
    for number in range(_MANY):
        on_the_server(team.platform.cloud, f"many_{number}")
    # More than a page has.
    there: Any = team.platform.cloud
    for number in range(_PAGE):
        there.ask(f"CREATE DATABASE other_{number}")
    pages = list[str]()
    (account,) = await unmanaged.find(CONFIG, Search(progress=pages.append), USUAL)
    files = await writing.write(writing.Options(CONFIG, ("many_*",), TEAM, USUAL))
    for written in files:
        await team.apply(written.text)
    await asyncio.sleep(ENOUGH_S)
    previews = await agreeing.previews([], TEAM, USUAL)
    file = folder / "previews.json"
    file.write_bytes(msgspec.json.encode({"previews": msgspec.to_builtins(previews)}))
    before, kills = team.changes(), 0
    request = agreeing.Request("", "", file, TEAM, USUAL, wave=8)
    for seconds in (0.05, 0.2, 0.3, 0.4):
        task = asyncio.create_task(agreeing.adopt(request))
        await asyncio.sleep(seconds)
        kills += task.cancel()
        await asyncio.wait((task,))
    outcomes = await agreeing.adopt(request)
    await asyncio.sleep(ENOUGH_S)
    await team.end()

    assert (len(account.things), account.complete, len(pages)) == (_PAGE + _MANY + 1, True, 1)
    assert len(files) == len(previews) == len(outcomes) == _MANY
    assert {outcome.exit for outcome in outcomes} == {Exit.DONE}
    assert {outcome.text for outcome in outcomes} == {"adopted", "is managed already"}
    assert kills > 2
    assert team.changes()[len(before) :] == ["provider databases.change"] * _MANY
    assert team.refused == 0
