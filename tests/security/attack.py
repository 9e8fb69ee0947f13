"""What an attack on the API server is: a request that somebody may not make, by its number in the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.support.api import APPLY, JSON_PATCH, MERGE, Api, ApiError, JsonObject

FORBIDDEN: Final = frozenset({403})
"""By a right or an admission policy."""
INVALID: Final = frozenset({400, 422})
"""By the schema of its kind."""
ACCEPTED: Final = frozenset[int]()
"""By nobody: docs/security.md says that this stays possible, and why."""

_PATCHES = {"PATCH": MERGE, "APPLY": APPLY, "JSON_PATCH": JSON_PATCH}


@dataclass(frozen=True, slots=True)
class Attack:
    """One request, and how it is to be answered.

    Attributes:
        number: Its row in docs/dev/security-corpus.md.
        goal: What it is after, in words.
        who: Whose token it is sent with.
        method: HTTP's; PATCH merges, APPLY is a server-side apply by force, JSON_PATCH a patch of operations.
        path: With names in braces that the test fills in.
        body: What is sent, if anything.
        answer: The statuses that refuse it; ACCEPTED when it is carried out.
        query: Of the URL.
    """

    number: int
    goal: str
    who: str
    method: str
    path: str
    body: object = None
    answer: frozenset[int] = FORBIDDEN
    query: dict[str, str] | None = None

    async def send(self, api: Api, names: dict[str, str]) -> int:
        """Send it; return the status of the refusal, 0 when there is none."""
        query = dict(self.query or {})
        if self.method == "APPLY":
            query |= {"fieldManager": "attack", "force": "true"}
        try:
            await api.request(
                "PATCH" if self.method in _PATCHES else self.method,
                self.path.format(**names),
                self.body,
                content_type=_PATCHES.get(self.method, "application/json"),
                query=query,
            )
        except ApiError as error:
            return error.status
        return 0


def metadata(**annotations: str) -> JsonObject:
    """Return metadata with annotations of ours; `_` stands for `-`."""
    values = {f"fairlead.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"metadata": {"annotations": values}}


def labelled(label: str, value: str) -> JsonObject:
    """Return metadata with a label of ours."""
    return {"metadata": {"labels": {f"fairlead.dev/{label}": value}}}


def merged(body: JsonObject, more: JsonObject) -> JsonObject:
    """Return a body with more of its metadata."""
    whole: dict[str, Any] = {**body, **{name: value for name, value in more.items() if name != "metadata"}}
    return whole | {"metadata": {**body["metadata"], **more.get("metadata", {})}}
