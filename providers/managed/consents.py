"""Which consents were used up by what they allowed. Pure.

A consent is given once for one act. What was used stands in the status, in the same write that begins or reports the
act, and counts no more until the annotation drops the entry; the annotation is its author's, and is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from providers.external.observation import Present, describe
from providers.managed.plan import Scene

ADOPT = "adopt"
Entry = tuple[str, str]
_BEGINNINGS = frozenset({"recreate", "restoreFrom", "restore"})


def used_by_create(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return what the intent of a create uses up: from then on the act itself is on record."""
    return tuple(entry for entry in entries if entry[0] in {"recreate", "restore"})


def used_now(scene: Scene[Any], entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries whose act is done, as far as the database shows it."""
    match scene.observation:
        case Present(observed=observed):
            known, ours = scene.marks.incarnation, scene.desired.owner.owns(observed.owner)
        case _:
            return ()
    if not ours or known not in {"", observed.incarnation}:
        return ()
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(observed.spec)}
    differing = {change.shown for change in scene.changes} | set(observed.pending)
    done = []
    for path, value in entries:
        if path in _BEGINNINGS:
            done.append((path, value))
        elif path == ADOPT:
            done += [(path, value)] if value == known else []
        elif path in fields and path not in differing and describe(getattr(observed.spec, fields[path])) == value:
            done.append((path, value))
    return tuple(done)
