"""What is written down of a life for its judges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.simulation.calls import Made

TEAM: Final = "team"
OTHER: Final = "other"
PERSON: Final = "kubectl"
"""Who writes what people write."""
FORCED: Final = "example.org/forced"
"""The label of what a person forces away."""
CONNECTION: Final = "servicebinding.io/postgresql"
"""The type of the Secrets by which applications log in."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A claim or a resource at one time: what it says, and what its cloud has.

    Attributes:
        at: Seconds of the life.
        name: Kind, namespace, name and uid.
        external: Its name in the cloud, empty for none yet; of a claim the login that its Secret has.
        ready: Whether it says Ready=True.
        serves: Whether what it stands for is there and takes logins.
        policy: What is to be done with the cloud's object at its deletion.
        leaving: Whether it is being deleted.
        incarnation: The number of the database behind it in the cloud, 0 for none.
        says: Its conditions in words.
        size: What its spec asks of its size, and what there is, where the two differ.
        role: What it stands for: `servers`, `databases`, `logins`, `rules`, `settings`, empty for a claim.
    """

    at: float
    name: str
    external: str
    ready: bool
    serves: bool
    policy: str
    leaving: bool
    incarnation: int
    says: str
    size: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A resource that was deleted: its last state."""

    at: float
    name: str
    external: str
    policy: str


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was there at one time: what it is about, and what was said of it."""

    at: float
    name: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach: the judge's rule, when, and about what."""

    rule: str
    at: float
    about: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.at:.0f} s: {self.about}"


@dataclass(slots=True)
class History:
    """All of a life.

    Attributes:
        samples: Of claims and resources, each minute.
        calls: Everything that was changed in the cloud.
        ended: Resources that are gone.
        warnings: Events of that type, by what they are about.
        left: What is in the cloud at the end, by name: `instance` or `instance/name`.
        dying: When the deletion of a resource began, by its name in the cloud; a name may come again.
        keepers: The uids of the objects whose people decide what becomes of data in the cloud, by its name there: of a
            claim, or of a resource without one; and of the resource itself, for a consent.
        claims: The deletion policies of claims that are gone, by uid; not of those that were forced away.
        given_up: When the people of an object gave its data up, by its uid: it was deleted under another policy than
            Orphan, or has a consent.
        writes: Every change of a claim, resource, Composition or Secret of people, with who made it.
        backwards: Objects whose status is of an earlier generation than before.
        rollouts: Compositions that say of a rollout that it goes on, each minute.
        going: Kinds that are being deleted, each minute, with what they wait for.
        exposed: Passwords that stood anywhere but in Secrets.
        overlaps: Effects of a process that did not lead while another did.
        unproven: Logins that were published while their server refused them, by `server/login`.
        calm_since: From when on nobody did anything and nothing failed.
        lasting_s: What lasts so long from then on is no transition.
        until: The end.
    """

    samples: list[Sample] = field(default_factory=list)
    calls: list[Made] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    warnings: list[tuple[float, str]] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    dying: dict[str, float] = field(default_factory=dict)
    keepers: dict[str, set[str]] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    given_up: dict[str, float] = field(default_factory=dict)
    writes: list[Statement] = field(default_factory=list)
    backwards: list[Statement] = field(default_factory=list)
    rollouts: list[Statement] = field(default_factory=list)
    going: list[Statement] = field(default_factory=list)
    exposed: list[Statement] = field(default_factory=list)
    overlaps: list[Statement] = field(default_factory=list)
    unproven: list[Statement] = field(default_factory=list)
    calm_since: float = 0.0
    lasting_s: float = 30 * 60.0
    until: float = 0.0
