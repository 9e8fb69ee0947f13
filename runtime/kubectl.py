"""Commands of kubectl that a message offers, to be typed as they stand. Pure.

Source: kubectl's reference, "annotate": TYPE/NAME, and --overwrite where the annotation has another value already;
"patch".
"""

from __future__ import annotations

import json
import shlex

from runtime.objects import Key


def address_of(kind: str, key: Key) -> str:
    """Return an object as kubectl takes it: `rdsinstance/orders -n shop`."""
    return f"{kind.lower()}/{key.name}" + (f" -n {key.namespace}" if key.namespace else "")


def annotate(address: str, name: str, value: str, *, overwrites: bool = False) -> str:
    """Return the command that sets an annotation, quoted for a shell, between backticks.

    `overwrites`: the object has the annotation with another value, which kubectl replaces only with `--overwrite`.
    """
    return _annotate(address, shlex.quote(f"{name}={value}"), overwrites=overwrites)


def label(address: str, name: str, value: str) -> str:
    """Return the command that sets a label that is not there yet, quoted for a shell, between backticks."""
    return f"`kubectl label {address} {shlex.quote(f'{name}={value}')}`"


def remove_finalizers(address: str) -> str:
    """Return the command that takes all finalizers from an object that is being deleted, between backticks."""
    return _patch(address, {"metadata": {"finalizers": None}})


def set_spec(address: str, fields: object) -> str:
    """Return the command that sets fields of `spec`, between backticks."""
    return _patch(address, {"spec": fields})


def annotate_until_next_hour(address: str, name: str, *, overwrites: bool = False) -> str:
    """Return the command that sets an annotation to the end (RFC 3339) of the hour in which it is typed.

    The text is the same at any time, as that of a condition has to be; POSIX's `date` knows no later time than now.
    """
    return _annotate(address, f'"{name}=$(date -u +%Y-%m-%dT%H:59:59Z)"', overwrites=overwrites)


def _annotate(address: str, quoted: str, *, overwrites: bool) -> str:
    option = " --overwrite" if overwrites else ""
    return f"`kubectl annotate{option} {address} {quoted}`"


def _patch(address: str, body: object) -> str:
    return f"`kubectl patch {address} --type=merge -p {shlex.quote(json.dumps(body, separators=(',', ':')))}`"
