"""What is the same in all clouds of a kind that holds no data: groups, rules, settings."""

from __future__ import annotations

from typing import Generic

from providers.external.client import SpecT_contra
from providers.external.observation import Predecessor
from providers.external.ownership import Owner


class WithoutData(Generic[SpecT_contra]):
    """The part of an Account that a kind without data need not write: it is made anew, whoever had one before."""

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """Return none: nothing would be lost."""
        del owner
        return ()

    def refusal(self, spec: SpecT_contra) -> tuple[str, str] | None:
        """Return nothing: the limits of a ProviderConfig are those of databases."""
        del spec
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return nothing: what is to be reported of an account is reported by its databases."""
        return ()
