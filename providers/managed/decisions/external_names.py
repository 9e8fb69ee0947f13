"""What is to be said where somebody wrote another name of the cloud over the one that is recorded. Pure."""

from __future__ import annotations

from apis.names import EXTERNAL_NAME
from providers.external.observation import Present, SpecT
from providers.managed.decisions.plan import Refuse
from providers.managed.inputs import Inputs
from runtime import kubectl


def refuse_other_name(inputs: Inputs[SpecT]) -> Refuse | None:
    """Refuse a name under which the recorded incarnation is not: nothing was lost, nothing is made or deleted."""
    external_ref, observation = inputs.external_ref, inputs.observation
    if not external_ref.former_name:
        return None
    if isinstance(observation, Present) and observation.observed.is_recorded_as(external_ref.incarnation):
        return None
    put_back = kubectl.annotate(inputs.target.address, EXTERNAL_NAME, external_ref.former_name, overwrites=True)
    return Refuse(
        "ImmutableField",
        f"{EXTERNAL_NAME} was changed to {external_ref.external_name}, which is not the database that is recorded"
        f" (incarnation {external_ref.incarnation}, seen as {external_ref.former_name}); nothing is made, changed or"
        f" deleted under either name. Put it back: {put_back}",
    )
