"""Who may write which of our names, refused or let through by the real API server's admission."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.apiserver.policies.actors import (
    CHILD,
    CLAIM,
    COMPOSER,
    CONFIG,
    DEVELOPER,
    IDENTITY,
    MARKS,
    ONPREM,
    OTHER_CLOUD,
    PLATFORM,
    PREFIX,
    UID,
    WORD,
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
    Case("a developer speaks no teardown word", DEVELOPER, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("the platform speaks none either", PLATFORM, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("a provider speaks none either", ONPREM, CHILD, {**WORD}, refused="the composer's word alone"),
    Case("the composer speaks it", COMPOSER, CHILD, {**WORD}),
    Case("the composer changes it", COMPOSER, CHILD, {**WORD}, before={"teardown": f"{UID}/Detach"}),
    Case("a provider marks its resource", ONPREM, CHILD, {**MARKS}),
    Case("the composer gives a reborn child its marks", COMPOSER, CHILD, {**MARKS}),
    Case("the platform adopts by name", PLATFORM, CHILD, {**MARKS}),
    Case("a developer forges no mark", DEVELOPER, CHILD, {**MARKS}, refused="written by the provider"),
    Case("another cloud's provider marks nothing here", OTHER_CLOUD, CHILD, {**MARKS}, refused=""),
    Case("a developer moves no mark", DEVELOPER, CHILD, {"incarnation": "2"}, before=MARKS, refused="incarnation"),
    Case(
        "a developer consents to no loss on a child", DEVELOPER, CHILD, {"consent": "recreate=16384"}, refused="consent"
    ),
    Case("the platform consents on a child", PLATFORM, CHILD, {"consent": "recreate=16384"}),
    Case("a provider consents to nothing", ONPREM, CHILD, {"consent": "recreate=16384"}, refused="consent"),
    Case("the composer copies `adopt: none`", COMPOSER, CHILD, {"adopt": "none"}),
    Case("the composer adopts nothing", COMPOSER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("a developer adopts nothing", DEVELOPER, CHILD, {"adopt": "16384"}, refused="adopt"),
    Case("the platform adopts", PLATFORM, CHILD, {"adopt": "16384"}),
    Case("a developer passes no object off as a child", DEVELOPER, CHILD, {"claim-name": "x"}, refused="claim-name"),
    Case(
        "the composer names the claim",
        COMPOSER,
        CHILD,
        {"claim-name": "x", "resource": "db", "key": "", "composition": "c"},
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
    Case("the platform releases a brake", PLATFORM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}),
    Case(
        "a developer releases none",
        DEVELOPER,
        CONFIG,
        {"brake-released": "2026-11-21T00:00:00Z"},
        refused="brake-released",
    ),
    Case(
        "a provider releases none", ONPREM, CONFIG, {"brake-released": "2026-11-21T00:00:00Z"}, refused="brake-released"
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_name_is_written_by_its_writer_alone(guarded: str, api: Api, case: Case) -> None:
    collection, path = paths(case.on, guarded)
    await api.create(collection, body_of(case.on, guarded, case.before))
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
