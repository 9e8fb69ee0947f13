"""Teardown words of this process, for claims whose schema refuses the status in which the words are written down.

A claim is remembered until it is gone. Nothing else depends on it: after a restart such a claim is held with words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from composer.claim.snapshot import View
from composer.inventory import Entry
from runtime.objects import Key


class NotedWords:
    """The words that the providers of a claim's children were told, by claim."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[Entry, ...]] = {}

    def note(self, key: Key, entries: Iterable[Entry]) -> None:
        """Note the entries of a claim that is being deleted, with the words that they carry."""
        self._entries[key] = tuple(entry for entry in entries if entry.outcome)

    def over(self, view: View) -> View:
        """Return the view with the noted words of the same objects, told by uid."""
        words = {entry.uid: entry for entry in self._entries.get(view.key, ()) if entry.uid}
        known = (replace(child, entry=words.get(child.entry.uid, child.entry)) for child in view.known)
        return replace(view, known=tuple(known)) if words else view

    def forget(self, key: Key) -> None:
        """Drop what is noted of a claim that is gone."""
        self._entries.pop(key, None)
