"""What a list of instances says of each: enough to see that it changed, and to find whose it is. Pure.

A whole answer takes a hundred times the memory of what is kept here, and an account may hold thousands of instances.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from providers.aws.names import decoded_tags, owner_from
from providers.external.ownership import Owner

Answer = Mapping[str, Any]
_VOLATILE = frozenset({"LatestRestorableTime", "TagList", "ResponseMetadata"})


@dataclass(frozen=True, slots=True)
class Listed:
    """One instance of a list; `owner` is None as well where the list held no tags, which `tagged` says.

    `answer` is what RDS answered, encoded; empty without an owner: nothing of ours needs it.
    """

    name: str
    incarnation: str
    arn: str
    owner: Owner | None
    tagged: bool
    answer: bytes = field(default=b"", repr=False)


def listed(answer: Answer) -> Listed:
    """Return what a search needs of one member of DescribeDBInstances."""
    members = answer.get("TagList")
    owner = owner_from(decoded_tags(members or ()))
    arn = str(answer.get("DBInstanceArn", ""))
    encoded = encoded_answer(answer) if owner is not None else b""
    name, incarnation = str(answer["DBInstanceIdentifier"]), str(answer["DbiResourceId"])
    return Listed(name, incarnation, arn, owner, members is not None, encoded)


def encoded_answer(answer: Answer) -> bytes:
    """Return an answer about one instance, with its tags, as it is kept: a tenth of the size of what the SDK made."""
    return msgspec.msgpack.encode(answer)


def decoded_answer(encoded: bytes) -> Answer:
    """Return what `encoded_answer` kept; its times are `datetime` again."""
    answer: dict[str, Any] = msgspec.msgpack.decode(encoded)
    return answer


def digest_of(answer: Answer) -> str:
    """Return what changes when anything about an instance does, its tags apart."""
    kept = {key: value for key, value in answer.items() if key not in _VOLATILE}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()[:16]


def tags_digest(answer: Answer) -> str | None:
    """Return what changes when a tag does; None when the answer holds no list of tags, which is not an empty one."""
    if "TagList" not in answer:
        return None
    return digest_of_tags(decoded_tags(answer["TagList"]))


def digest_of_tags(tags: Mapping[str, str]) -> str:
    """Return what changes when one of all the tags does."""
    return hashlib.sha256(json.dumps(dict(tags), sort_keys=True).encode()).hexdigest()[:16]
