"""A run through the ways to lose things, on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support import losses
from tests.support.foreign import ForeignApi, operating
from tests.support.grants import allow_composer
from tests.support.loss_sides import Foreign, OnPrem, Side
from tests.support.loss_ways import suffer
from tests.support.losses import WAYS, Case, Outcome, Way, cases
from tests.support.staff import Staff


async def run(
    staff: Staff, ways: Sequence[Way] = WAYS, chosen: Callable[[Case], bool] = lambda _case: True
) -> list[Outcome]:
    """Suffer these ways on both sides under each policy, or the chosen cases of them."""
    system = staff.system
    await allow_composer(system, "", "configmaps")
    # What concerns a whole kind hits no claim of another way.
    of_a_kind = {losses.CRD_LABEL: "labelled", losses.NOT_SERVED: "unserved", losses.CRD_BACK: "returning"}
    kinds = {way: name for way, name in of_a_kind.items() if way in ways}
    plain = {name: ForeignApi(f"{name}.example.org", by_crd=name == "labelled") for name in ("shared", *kinds.values())}
    late = {name: ForeignApi(f"late-{name}.example.org", by_crd=True, late=True) for name in plain}
    async with operating(system, *plain.values(), *late.values()) as operators:
        foreign = {operator.api: Foreign(operator) for operator in operators}
        ours = OnPrem(system)

        def sides(way: Way, policy: str) -> tuple[Side, ...]:
            apis = late if policy == "Snapshot" else plain
            return ours, foreign[apis[kinds.get(way, "shared")]]

        return await suffer(staff, [case for case in cases(ways, sides) if chosen(case)])
