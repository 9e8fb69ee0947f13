"""What a plan of the composer reads as: changes of children, fields, and an exit code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from composer.causes import cause
from composer.claim.decide import Annotate, Apply, Create, Delete, Keep, Orphan, Plan, Step
from composer.inventory import Entry
from composer.render.render import Child, Rendered
from fairlead.exits import Exit
from fairlead.plan_clouds import Clouds
from fairlead.plan_diff import ClaimPlan, Renders, changes_of
from tests.composer.factories import DATABASE, SETTINGS

CLOUDS = Clouds(datetime(2026, 11, 28, tzinfo=UTC))
_ENTRY = Entry("settings", "v1", "ConfigMap", "orders-settings", uid="u")


def _object(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-settings"}, "data": data}


def _rendered(obj: dict[str, Any]) -> Rendered:
    return Rendered((Child("settings", "", obj, (), None, ready=True),), (), {}, {})


class Case(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...]
    says: tuple[str, ...]
    exit_code: Exit
    causes: tuple[Any, ...] = ()
    before: dict[str, Any] | None = None


_HELD = cause("HeldDeletion", "it holds data", resource="database")
_WAITS = cause("ResourcePending", "waits for the network", resource="database")
_LIVE = _object(a="1", b="2")
_TIER = {"properties": {"spec": {"properties": {"tier": {"type": "string", "pattern": "^db-"}}}}}
_LIMITED = msgspec.structs.replace(SETTINGS, schema=_TIER)
CASES = {
    "nothing": Case((Keep(_ENTRY),), (), Exit.DONE),
    "a new child": Case(
        (Create(_ENTRY, SETTINGS, _object()),), ("  + create settings (ConfigMap orders-settings)",), Exit.DIFFERENCES
    ),
    "a child that its kind does not allow": Case(
        (Create(_ENTRY, _LIMITED, {**_object(), "spec": {"tier": "X"}}),),
        (
            "  ! block settings (ConfigMap orders-settings)",
            "      the API server refuses it: spec.tier: 'X' does not match ^db- [SchemaMismatch]",
            "  + create settings (ConfigMap orders-settings)",
        ),
        Exit.INVALID_INPUT,
    ),
    "a field that changes": Case(
        (Apply(_ENTRY, SETTINGS, _object(a="9"), _LIVE),),
        ("  ~ update settings (ConfigMap orders-settings)", "      data.a: 1 → 9"),
        Exit.DIFFERENCES,
    ),
    "a field that is left out": Case(
        (Apply(_ENTRY, SETTINGS, _object(a="1"), _LIVE),),
        ("  ~ update settings (ConfigMap orders-settings)", "      data.b: 2 → (not set)"),
        Exit.DIFFERENCES,
        before=_LIVE,
    ),
    "an apply that changes nothing": Case((Apply(_ENTRY, SETTINGS, _object(a="1"), _LIVE),), (), Exit.DONE),
    "a child that goes": Case(
        (Delete(_ENTRY, SETTINGS, _LIVE, "", "it left the composition"),),
        ("  - delete settings (ConfigMap orders-settings)", "      it left the composition"),
        Exit.DESTROYS,
    ),
    "a child that goes with its database": Case(
        (Delete(_ENTRY, DATABASE, _LIVE, "u/Snapshot", "it left the composition"),),
        (
            "  - delete settings (ConfigMap orders-settings)",
            "      it left the composition; after a final backup",
        ),
        Exit.DESTROYS,
    ),
    "a child that goes without its database": Case(
        (Delete(_ENTRY, DATABASE, _LIVE, "u/Orphan", "it left the composition"),),
        (
            "  - release settings (ConfigMap orders-settings)",
            "      it left the composition; what it stands for in the cloud stays (Orphan)",
        ),
        Exit.DIFFERENCES,
    ),
    "a child that somebody deleted": Case(
        (Annotate(_ENTRY, DATABASE, _LIVE, {"fairlead.dev/teardown": "u/Detach"}),),
        (
            "  - release settings (ConfigMap orders-settings)",
            "      somebody deleted it; what it stands for in the cloud stays (Detach)",
        ),
        Exit.DIFFERENCES,
    ),
    "a child that is released": Case(
        (Orphan(_ENTRY, SETTINGS, _LIVE),),
        ("  - release settings (ConfigMap orders-settings)", "      it lives on without its claim"),
        Exit.DIFFERENCES,
    ),
    "another mark": Case((Annotate(_ENTRY, DATABASE, _LIVE, {"fairlead.dev/paused": "true"}),), (), Exit.DONE),
    "a child of another kind in the same place": Case(
        (Create(_ENTRY, DATABASE, _object()), Delete(_ENTRY, SETTINGS, _LIVE, "", "another kind")),
        ("  ± replace settings (ConfigMap orders-settings)",),
        Exit.DESTROYS,
    ),
    "data that are held": Case((), ("  ! hold database", "      it holds data [HeldDeletion]"), Exit.REFUSED, (_HELD,)),
    "a child that waits": Case(
        (), ("  … wait database", "      waits for the network [ResourcePending]"), Exit.DIFFERENCES, (_WAITS,)
    ),
    "a stranger in its place": Case(
        (), ("  ! block database", "      taken [NotOwned]"), Exit.INVALID_INPUT,
        (cause("NotOwned", "taken", resource="database"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_plan_reads_as(case: Case) -> None:
    after = next((step.object for step in case.steps if isinstance(step, Apply)), _object())
    renders = Renders(_rendered(after), _rendered(case.before) if case.before else None)
    plan = ClaimPlan("shop/orders", "c", changes_of(Plan(case.steps, case.causes), renders, CLOUDS))

    assert tuple(line for change in plan.changes for line in change.lines()) == case.says
    assert plan.exit_code == case.exit_code
