"""When each change of a preview is made, and what its hash stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from providers.external.client import Target
from providers.external.consent import Consent
from providers.external.observation import Change, Class, ExternalRef, Observed, Phase, Present
from providers.external.spec import Envelope
from providers.managed.decisions.adoption import with_preview
from providers.managed.decisions.plan import Preview
from providers.managed.inputs import Inputs
from tests.providers.managed.test_decide import CONVERGED, NOW, OURS
from tests.providers.toy import ToyCloud, ToyParameters, kind_of

_REPLACED = {"external_ref": ExternalRef("db", "oid-0", "account-1", CONVERGED), "spec_hash": "spec-1"}


def _preview(kind: Class = Class.RESTART, veto: tuple[str, str] | None = None, **changed: Any) -> Preview:
    """Return the preview of a foreign database, of which one field differs by a change of that class."""

    def classify(change: Change, _observed: Observed[ToyParameters, Any]) -> Change:
        return replace(change, kind=kind, veto=veto)

    toys = replace(kind_of(ToyCloud()), classify=classify, logins=None)
    target = Target("db", ToyParameters(size=5), OURS, "hash")
    seen = Observed("db", "oid-1", None, Phase.READY, ToyParameters(size=3), None, {})
    whole: dict[str, Any] = {"external_ref": ExternalRef(), "spec_hash": "spec-2", "adoption": True, **changed}
    inputs = Inputs(target, Present(seen), now=NOW, envelope=Envelope(for_provider=target.spec), **whole)
    preview = with_preview(toys, inputs).preview
    assert preview is not None
    assert [change.shown for change in preview.all] == ["owner", "size"]
    return preview


@pytest.mark.parametrize(
    ("when", "changed"),
    [
        pytest.param("Now", {"kind": Class.ONLINE}, id="online"),
        pytest.param("Window", {}, id="a restart"),
        pytest.param("Now", {"apply_now": True}, id="a restart that shall not wait"),
        pytest.param("Now", {"window_at": NOW}, id="a restart in the window"),
        pytest.param("Consent", {"kind": Class.LOSS}, id="a loss"),
        pytest.param("Now", {"kind": Class.LOSS, "consent": Consent((("size", "5"),))}, id="a loss that was agreed to"),
        pytest.param("Refused", {"veto": ("InvalidValue", "no")}, id="what cannot be sent"),
        pytest.param("Refused", {"refusal": ("LimitReached", "no")}, id="what a limit forbids"),
        pytest.param("Window", {"apply_now": True, **_REPLACED}, id="drift of what has the place of ours"),
        pytest.param("Now", {"correct_drift": True, **_REPLACED}, id="the same, where drift is put back at once"),
    ],
)
def test_change_of_a_preview_says_when_it_is_made(when: str, changed: dict[str, Any]) -> None:
    ((change, shown),) = _preview(**changed).changes
    assert (change.shown, shown) == ("size", when)
