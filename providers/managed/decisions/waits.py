"""For how long the cloud and other processes are waited for. Pure."""

from __future__ import annotations

from datetime import timedelta

from providers.external.observation import SpecT
from providers.managed.decisions.plan import Plan, Refuse, Wait
from providers.managed.inputs import Inputs

SOON = timedelta(seconds=5)
LATER = timedelta(minutes=1)
AT_LAST = timedelta(minutes=10)
"""What lists show is reconciled when they show something else; this is the net below."""


def open_intent(inputs: Inputs[SpecT]) -> Plan | None:
    """Wait for an operation under way, or for an intent that another process may still carry out."""
    if inputs.intent_unknown:
        return Refuse("NewerProvider", inputs.intent_unknown)
    if inputs.operating:
        reason = {"Create": "Creating", "Delete": "Deleting"}.get(inputs.operating, "CloudBusy")
        return Wait(reason, "the cloud is carrying out what was asked for", SOON)
    if inputs.intent_until is not None and inputs.now < inputs.intent_until:
        left = inputs.intent_until - inputs.now
        return Wait("CloudBusy", "another process may still be at work on it until its time is over", left, quiet=True)
    return None
