"""The names of the Secrets with the passwords that a Composition asks for: all that a template sees of one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apis.identity import Identity, child_name
from composer.models import Expressions
from composer.render.values import Named, Pending
from runtime.objects import Object


def secret_name(identity: Identity, password: str, token: str) -> str:
    """Return the name of a password's Secret: another one for each rotation token, and for no other claim.

    A resource's name has no dash, so no child of the claim has this name.
    """
    return child_name(identity, f"password-{password}", token)


def token_of(claim: Object) -> str:
    """Return the claim's rotation token, empty for none."""
    return str(((claim.get("spec") or {}).get("passwordRotation") or {}).get("token") or "")


def secret_names(composition: Expressions, identity: Identity, claim: Object) -> dict[str, str]:
    """Return the names of the Secrets by the passwords of a Composition's spec, as the controller makes them."""
    declared = (password["name"] for password in composition.get("passwords") or ())
    return {name: secret_name(identity, name, token_of(claim)) for name in declared}


class Passwords(Named):
    """The passwords that a Composition declares, as expressions see them: each with the name of its Secret.

    That of a Secret that is not recorded yet is still to come.
    """

    def __init__(self, composition: Expressions, names: Mapping[str, str]) -> None:
        self._names = {
            name: names.get(name) or Pending(obj=f"passwords.{name}", name=f"passwords.{name}.name")
            for name in (password["name"] for password in composition.get("passwords") or ())
        }

    def __getitem__(self, password: str) -> Mapping[str, Any]:
        return {"name": self._names[password]}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
