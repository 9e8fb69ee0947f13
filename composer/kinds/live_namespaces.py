"""Reads a namespace live for the first choice of a claim: its labels may decide, and the choice lasts.

The watch of namespaces may be behind that of claims, so that a claim is seen before its namespace, or before a label
that the namespace had when the claim was created. A read that begins after the claim was seen has all of that. One
answer serves all claims of the namespace that were seen before its read began and are undecided, each once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.cache import Informer
from runtime.errors import Conflict, NotFound
from runtime.objects import NAMESPACES, Key, Object, key_of, uid_of, version_of
from runtime.record import newer
from runtime.shared_reads import SharedReads

UNDECIDED = "undecided"
"""The index of claims that have no revision, by the Composition that they use: empty for none."""


@dataclass(slots=True)
class _Answer:
    """A namespace's metadata, and the uids of the claims that it still serves."""

    namespace: Object
    claims: set[str]


@dataclass(frozen=True, slots=True)
class LiveNamespaces:
    """The namespaces of undecided claims of one kind."""

    claims: Informer
    namespaces: Informer
    reads: SharedReads
    _answers: dict[str, _Answer] = field(default_factory=dict)

    async def of(self, claim: Object) -> Object:
        """Return the metadata of a claim's namespace, no older than the claim; callers must not change it.

        Raises Conflict where the namespace is gone, and any other ApiError of the read.
        """
        uid, key = uid_of(claim), Key("", key_of(claim).namespace)
        answer = self._answers.get(key.name)
        if answer is None or uid not in answer.claims:
            seen = self._undecided(key.name)
            try:
                answer = _Answer(await self.reads.get(NAMESPACES, key), seen)
            except NotFound as error:
                raise Conflict(f"namespace {key.name} is gone") from error
            self._answers[key.name] = answer
        answer.claims.discard(uid)
        if not answer.claims and self._answers.get(key.name) is answer:
            del self._answers[key.name]
        # A claim that was paused meanwhile: the watch may have overtaken an answer that was kept for it.
        watched = self.namespaces.store.version(key)
        is_overtaken = watched is not None and newer(watched, version_of(answer.namespace))
        return (self.namespaces.store.get(key) if is_overtaken else None) or answer.namespace

    def _undecided(self, namespace: str) -> set[str]:
        """Return the uids of the claims of a namespace that are seen by now and have no Composition."""
        store = self.claims.store
        keys = (key for key in store.by_index(UNDECIDED, "") if key.namespace == namespace)
        return {uid for key in keys if (uid := store.uid(key))}
