"""What tests steer of a simulated cloud, and what they read: the clock, its conduct, faults, the log of its calls."""

import time
from typing import Generic

from devcloud.simulator.audit import Audit
from devcloud.simulator.behaviour import BehaviourT
from devcloud.simulator.clock import Clock
from devcloud.simulator.faults import Faults, Limiter


class Controls(Generic[BehaviourT]):
    """The same for every cloud, but for the fields of its conduct.

    Attributes:
        clock: The simulated time.
        behaviour: What tests choose of the cloud's conduct.
        faults: What goes wrong next.
        audit: What was called.
        limiter: The rate limit's tokens.
        changes: How often a call may have changed something.
    """

    def __init__(self, clock: Clock, behaviour: BehaviourT) -> None:
        self.clock = clock
        self.behaviour = behaviour
        self.faults = Faults()
        self.audit = Audit()
        self.limiter = Limiter(time.monotonic)
        self.changes = 0
        self._usual = behaviour
        self._robot_at = clock.now()

    def reset(self) -> None:
        """Drop faults, conduct and the log; the clock goes on as it does."""
        self.behaviour = self._usual
        self.faults = Faults()
        self.limiter = Limiter(time.monotonic)
        self.audit.clear()

    def robot_comes(self) -> bool:
        """Return whether it is time for the tag robot to go round, which it then has done."""
        robot, now = self.behaviour.tag_robot, self.clock.now()
        if robot is None or (now - self._robot_at).total_seconds() < robot.every_s:
            return False
        self._robot_at = now
        return True
