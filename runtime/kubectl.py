"""Commands of kubectl that a message offers, to be typed as they stand. Pure.

Source: kubectl's reference, "annotate": TYPE/NAME, and --overwrite where the annotation has another value already.
"""

from __future__ import annotations

import shlex

from runtime.objects import Key


def address_of(kind: str, key: Key) -> str:
    """Return an object as kubectl takes it: `rdsinstance/orders -n shop`."""
    return f"{kind.lower()}/{key.name}" + (f" -n {key.namespace}" if key.namespace else "")


def annotate(address: str, name: str, value: str, *, overwrites: bool = False) -> str:
    """Return the command that sets an annotation, quoted for a shell, between backticks.

    `overwrites`: the object has the annotation with another value, which kubectl replaces only with `--overwrite`.
    """
    option = " --overwrite" if overwrites else ""
    return f"`kubectl annotate{option} {address} {shlex.quote(f'{name}={value}')}`"
