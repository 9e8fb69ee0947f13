"""A resource and the lists of its account, by the one clock of the simulated RDS; every call on the wire is counted."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from tests.providers import listed_paced as paced
from tests.providers.aws.rds_world import RdsPaced
from tests.support.simulator_control import control

_CALM = timedelta(minutes=4)


class ListedPaced(paced.ListedPaced, RdsPaced):
    """Passes of one resource, with the lists that its provider makes, at the simulated RDS."""

    async def settle(self, *, most: int = 500) -> None:
        """Make passes and lists until the resource is Ready, converged and its next pass minutes away, or gone."""
        for _ in range(most):
            if not await self.step():
                return
            next_at = self.passes_at()
            calm = next_at is None or next_at - self.world.now > _CALM
            if calm and (self.world.reason("Ready"), self.world.reason()) == ("Available", "InSync"):
                return
        raise AssertionError(f"not settled after {most} steps: {self.world.reason()}: {self.world.get(self.key.name)}")

    def counts(self) -> Counter[str]:
        """Return how often each action of RDS was called since the last `forget`; a look by name apart from a list."""
        counts: Counter[str] = Counter()
        for call in control(self.rds, "GET", "audit?since=0"):
            if call["action"] == "GetCallerIdentity":
                # Of STS, which has rates of its own.
                continue
            single = call["action"] == "DescribeDBInstances" and call["identifier"]
            counts[f"{call['action']} of one" if single else call["action"]] += 1
        return counts
