"""Who may write which of our names, refused or let through by the real API server's admission."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.apiserver.policies.actors import (
    CHILD,
    CLAIM,
    COMPOSER,
    CONFIG,
    DEVELOPER,
    EXTERNAL_REFERENCE,
    IDENTITY,
    INSTRUCTION,
    ONPREM,
    OTHER_CLOUD,
    PLATFORM,
    PREFIX,
    UID,
    As,
    body_of,
    paths,
    prefixed,
)
from tests.support.api import Api, ApiError


@dataclass(frozen=True)
class Case:
    """`who` sets `annotations` (and `labels`) on an object that has `before`; `refused` is a part of the answer."""

    id: str
    who: str
    on: str
    annotations: dict[str, str | None] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    refused: str = ""


PAUSE = {"paused": "true", "paused-reason": "moving house"}
OF_A_CLAIM = {"claim-name": "orders"}
CASES = (
    Case("a developer forges no identity", DEVELOPER, CLAIM, {**IDENTITY}, refused="written by the composer only"),
    Case("the composer writes the identity", COMPOSER, CLAIM, {**IDENTITY}),
    Case("a backup tool restores the identity", PLATFORM, CLAIM, {**IDENTITY}),
    Case("a provider writes nothing on claims", ONPREM, CLAIM, {**IDENTITY}, refused="written by the composer only"),
    Case(
        "a developer switches no composition by annotation",
        DEVELOPER,
        CLAIM,
        {"composition": "other"},
        refused="composition",
    ),
    Case("a developer hides no kinds", DEVELOPER, CLAIM, {"kinds": ""}, before={"kinds": "A.b"}, refused="kinds"),
    Case("a removal is let through, since it is put back", DEVELOPER, CLAIM, {"identity": None}, before=IDENTITY),
    Case("an unchanged value is let through", DEVELOPER, CLAIM, {**IDENTITY, "paused": "true"}, before=IDENTITY),
    Case("a developer pauses", DEVELOPER, CLAIM, {"paused": "true", "paused-reason": "moving house"}),
    Case("a developer asks for a reconcile", DEVELOPER, CLAIM, {"reconcile-requested-at": "now"}),
    Case("a developer does not consent to a loss", DEVELOPER, CLAIM, {"consent": f"db={UID}"}, refused="consent"),
    Case("the composer does not consent either", COMPOSER, CLAIM, {"consent": f"db={UID}"}, refused="consent"),
    Case("the platform consents", PLATFORM, CLAIM, {"consent": f"db={UID}"}),
    Case("a developer starts beside the predecessor", DEVELOPER, CLAIM, {"adopt": "none"}),
    Case("a developer adopts no stranger", DEVELOPER, CLAIM, {"adopt": "16384"}, refused="adopt"),
    Case(
        "a developer writes no teardown instruction",
        DEVELOPER,
        CHILD,
        {**INSTRUCTION},
        refused="teardown is written by the composer only",
    ),
    Case(
        "the platform writes none either",
        PLATFORM,
        CHILD,
        {**INSTRUCTION},
        refused="teardown is written by the composer only",
    ),
    Case(
        "a provider writes none either",
        ONPREM,
        CHILD,
        {**INSTRUCTION},
        refused="teardown is written by the composer only",
    ),
    Case("the composer writes it", COMPOSER, CHILD, {**INSTRUCTION}),
    Case("the composer changes it", COMPOSER, CHILD, {**INSTRUCTION}, before={"teardown": f"{UID}/Detach"}),
    Case("a provider writes its resource's external reference", ONPREM, CHILD, {**EXTERNAL_REFERENCE}),
    Case("the composer gives a recreated child its external reference", COMPOSER, CHILD, {**EXTERNAL_REFERENCE}),
    Case("the platform adopts by name", PLATFORM, CHILD, {**EXTERNAL_REFERENCE}),
    Case(
        "a developer forges no external reference",
        DEVELOPER,
        CHILD,
        {**EXTERNAL_REFERENCE},
        refused="written by the provider",
    ),
    Case("another cloud's provider writes none here", OTHER_CLOUD, CHILD, {**EXTERNAL_REFERENCE}, refused=""),
    Case(
        "a developer moves no external reference",
        DEVELOPER,
        CHILD,
        {"incarnation": "2"},
        before=EXTERNAL_REFERENCE,
        refused="incarnation",
    ),
    Case(
        "a developer consents to no loss on a child", DEVELOPER, CHILD, {"consent": "recreate=16384"}, refused="consent"
    ),
    Case("the platform consents on a child", PLATFORM, CHILD, {"consent": "recreate=16384"}),
    Case("a provider consents to nothing", ONPREM, CHILD, {"consent": "recreate=16384"}, refused="consent"),
    Case("the composer copies `adopt: none`", COMPOSER, CHILD, {"adopt": "none"}),
    Case("the composer adopts nothing", COMPOSER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("a developer adopts nothing", DEVELOPER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("the platform adopts", PLATFORM, CHILD, {"adopt": "16384"}),
    Case(
        "a developer passes no object off as a child",
        DEVELOPER,
        CHILD,
        {
            "claim-name": "x",
            "resource": "db",
            "key": "a",
            "composition": "c",
            "stateful": "false",
            "depends-on": "x",
            "connection-secret": "x",
        },
        refused="composition, fairlead.dev/claim-name, fairlead.dev/resource, fairlead.dev/key, fairlead.dev/stateful,"
        " fairlead.dev/depends-on, fairlead.dev/connection-secret",
    ),
    Case(
        "the composer names the claim",
        COMPOSER,
        CHILD,
        {
            "claim-name": "x",
            "resource": "db",
            "key": "",
            "composition": "c",
            "stateful": "true",
            "depends-on": "x",
            "connection-secret": "x",
        },
    ),
    Case(
        "a developer changes no claim label",
        DEVELOPER,
        CHILD,
        labels={"claim": UID},
        refused="label fairlead.dev/claim",
    ),
    Case("the composer labels its child", COMPOSER, CHILD, labels={"claim": UID}),
    Case("a provider labels a resource without a claim", ONPREM, CHILD, labels={"claim": UID}),
    Case("the composer records its choice and the kinds", COMPOSER, CLAIM, {"composition": "c", "kinds": "A.b"}),
    Case("the composer copies a pause", COMPOSER, CHILD, {**PAUSE}, before=OF_A_CLAIM),
    Case(
        "a developer pauses the claim and not its child",
        DEVELOPER,
        CHILD,
        {**PAUSE},
        before=OF_A_CLAIM,
        refused="paused, fairlead.dev/paused-reason of a child",
    ),
    Case("a provider pauses nothing", ONPREM, CHILD, {"paused": "true"}, before=OF_A_CLAIM, refused="of a child"),
    Case("a developer has a child looked at", DEVELOPER, CHILD, {"reconcile-requested-at": "now"}, before=OF_A_CLAIM),
    Case("a developer pauses a resource without a claim", DEVELOPER, CHILD, {**PAUSE}),
    Case("a developer pauses a ProviderConfig", DEVELOPER, CONFIG, {**PAUSE}),
    Case("the platform names an account anew", PLATFORM, CONFIG, {"consent": "account=pg-7"}),
    Case("a developer names no account anew", DEVELOPER, CONFIG, {"consent": "account=pg-7"}, refused="consent"),
    Case("the platform lifts the destroy rate limit", PLATFORM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}),
    Case(
        "a developer releases none",
        DEVELOPER,
        CONFIG,
        {"brake-released": "2026-11-21T00:00:00Z"},
        refused="brake-released",
    ),
    Case("a provider lifts none", ONPREM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}, refused="brake-released"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_name_is_written_by_its_writer_alone(policed: str, api: Api, case: Case) -> None:
    collection, path = paths(case.on, policed)
    await api.create(collection, body_of(case.on, policed, case.before))
    change = {
        "annotations": {PREFIX + name: value for name, value in case.annotations.items()},
        "labels": prefixed(case.labels),
    }

    try:
        await As(api, case.who).merge(path, {"metadata": change})
        refusal = ""
    except ApiError as error:
        refusal = str(error)
    if case.on == CONFIG:
        await api.delete(path)

    if case.who == OTHER_CLOUD:
        assert "cannot patch" in refusal  # RBAC comes first: that account has no right here at all
    elif case.refused:
        assert "ValidatingAdmissionPolicy" in refusal
        assert case.refused in refusal
    else:
        assert refusal == ""


# What docs/names.md calls the objects, and whether the case is about such a one.
OBJECTS: dict[str, Callable[[Case], bool]] = {
    "claim": lambda case: case.on == CLAIM,
    "child": lambda case: case.on == CHILD,
    "child (copy)": lambda case: case.on == CHILD and case.before == OF_A_CLAIM,
    "managed resource": lambda case: case.on == CHILD,
    "managed resource with a claim": lambda case: case.on == CHILD,
    "managed resource without a claim": lambda case: case.on == CHILD and not case.before,
    "ProviderConfig": lambda case: case.on == CONFIG,
    "all our kinds": lambda case: case.on in (CLAIM, CHILD),
}
FREE = {("paused", "claim"), ("paused", "managed resource without a claim"), ("paused", "ProviderConfig")}
FREE |= {("paused-reason", on) for _, on in FREE} | {("reconcile-requested-at", "all our kinds")}
"""What anybody may write who may edit the object."""


def _promised() -> list[tuple[str, str]]:
    """Return each annotation of the page with each object that it is on."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "names.md").read_text(encoding="utf-8")
    section = page.split("\n## 4. ", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `fairlead\.dev/([a-z-]+)` \| ([^|]+?) \|", section, re.MULTILINE)
    objects = dict(rows)
    promised = []
    for name, on in rows:
        as_another = re.match(r"as `fairlead\.dev/([a-z-]+)`", on)
        where = objects[as_another[1]] if as_another else on
        promised += [(name, obj) for obj in re.split(r"[,;] ", where)]
    return promised


@pytest.mark.parametrize(("name", "on"), _promised())
def test_each_annotation_of_the_page_is_tried_by_its_writer_and_by_another(name: str, on: str) -> None:
    about = [case for case in CASES if name in case.annotations and OBJECTS[on](case) and case.who != OTHER_CLOUD]

    assert [case.id for case in about if not case.refused] != []
    assert ([case.id for case in about if case.refused] == []) == ((name, on) in FREE)
