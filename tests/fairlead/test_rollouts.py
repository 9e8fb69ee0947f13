"""What `fairlead rollout` makes of a Composition, its revisions and claims: its end, who waits, where undo leads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.exits import Exit
from fairlead.rollout_report import Report, report_of, target_of
from runtime.objects import Object

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
_FAILED = {"claim": "shop/a", "reason": "InvalidValue", "message": "no"}
_REFUSED = [{"type": "Ready", "status": "False", "reason": "SchemaMismatch", "message": "x", "observedGeneration": 1}]


def _claim(name: str, revision: str, **spec: Any) -> Object:
    meta = {"name": name, "namespace": "shop", "uid": name, "generation": 1}
    ready = {"type": "Ready", "status": "True", "reason": "Available", "message": ""}
    status = {"composition": {"name": "c", "revision": revision}, "conditions": [ready]}
    return {"kind": "Queue", "metadata": meta, "spec": spec, "status": status}


def _report(phases: tuple[str, ...], *claims: Object, observed: int = 1, conditions: Any = ()) -> Report:
    status = {"observedGeneration": observed, "conditions": list(conditions)}
    revisions = []
    for number, phase in enumerate(phases, start=1):
        state = {"revision": number, "phase": phase, "failed": 1, "failures": [_FAILED]} if phase else None
        spec = {"compositionName": "c", "revision": number, "composition": {"of": number}}
        revisions.append({"metadata": {"name": f"c-{number}"}, "spec": spec, "status": {"rollout": state}})
    composition = {"metadata": {"name": "c", "generation": 1}, "spec": {"of": len(phases)}, "status": status}
    return report_of(composition, revisions, claims, NOW)


OLD, NEW, PINNED = _claim("a", "c-1"), _claim("b", "c-2"), _claim("c", "c-1", compositionRevisionRef={"name": "c-1"})


@pytest.mark.parametrize(
    ("report", "exit_code", "waiting", "target"),
    [
        pytest.param(_report(("Finished", "Finished"), NEW, PINNED), Exit.DONE, ["pinned"], 1, id="all have it"),
        pytest.param(
            _report(("Finished", "Progressing"), OLD, NEW),
            Exit.NOT_READY,
            ["passed over: InvalidValue"],
            1,
            id="under way",
        ),
        pytest.param(
            _report(("Finished", "Halted", "Halted"), NEW), Exit.STALLED, ["not reached"], 1, id="stopped twice"
        ),
        pytest.param(_report(("", ""), OLD, NEW, PINNED), Exit.NOT_READY, ["about to take it"], 1, id="all at once"),
        pytest.param(_report(("", ""), NEW), Exit.DONE, [], 1, id="all at once, and done"),
        pytest.param(_report(("",), observed=0), Exit.NOT_READY, [], None, id="an edit that nobody has looked at"),
        pytest.param(_report(("", ""), NEW, conditions=_REFUSED), Exit.STALLED, [], 1, id="an edit that is refused"),
        pytest.param(_report(()), Exit.NOT_READY, [], None, id="no revision yet"),
    ],
)
def test_a_rollout_is_what_its_revisions_and_claims_say(
    report: Report, exit_code: Exit, waiting: list[str], target: int | None
) -> None:
    back = target_of(report, {"of": len(report.rows)})

    assert report.exit is exit_code
    assert list(report.waiting) == waiting
    assert (back.number if back else None) == target


def test_an_edit_that_is_refused_is_undone_by_the_revision_in_use() -> None:
    back = target_of(_report(("", ""), NEW, conditions=_REFUSED), {"of": 3})

    assert back is not None
    assert back.number == 2
