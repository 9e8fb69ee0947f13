"""The major versions of PostgreSQL of which there are servers here. Pure."""

from typing import Final, Literal, get_args

Major = Literal[16, 17, 18]
MAJORS: Final[tuple[Major, ...]] = get_args(Major)


def major_for(version: str) -> Major:
    """Return the version of the server behind an instance of `17.6` or `17`: the same, and 16 for those before it."""
    wanted = int(version.partition(".")[0])
    return max((major for major in MAJORS if major <= wanted), default=MAJORS[0])
