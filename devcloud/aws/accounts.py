"""What every account has in every region, and who can call."""

from devcloud.aws.api.views import InstanceXml
from devcloud.aws.iam.principals import Principals
from devcloud.aws.jobs import Jobs
from devcloud.aws.region import Region
from devcloud.simulator.clock import Clock


class Accounts:
    """All of it.

    Attributes:
        clock: The simulated time.
        principals: Who can call.
        jobs: The work on the databases.
        regions: What is there, by account and region.
        xml: The answers' cache.
    """

    def __init__(self, clock: Clock, principals: Principals, jobs: Jobs) -> None:
        self.clock = clock
        self.principals = principals
        self.jobs = jobs
        self.regions: dict[tuple[str, str], Region] = {}
        self.xml = InstanceXml()

    def region(self, account: str, name: str) -> Region:
        """Return the state of an account in a region."""
        key = (account, name)
        if key not in self.regions:
            self.regions[key] = Region(account, name, self.clock, self.jobs, self.xml)
        return self.regions[key]

    def settle(self) -> None:
        """Move every instance whose time has come."""
        for region in self.regions.values():
            region.settle()
