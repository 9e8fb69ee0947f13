"""What a list of instances says of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from providers.aws.tag_lists import decoded_tags
from providers.external.cloud_api import listed as generic
from providers.external.cloud_api.listed import ListedObject, owner_in

Answer = Mapping[str, Any]
_VOLATILE = frozenset({"LatestRestorableTime", "TagList", "ResponseMetadata"})


def listed(answer: Answer) -> ListedObject:
    """Return what is kept of one member of DescribeDBInstances."""
    owner = owner_in(_tags_in(answer))
    return ListedObject(
        name=str(answer["DBInstanceIdentifier"]),
        incarnation=str(answer["DbiResourceId"]),
        digest=digest_of(answer),
        tags_digest=tags_digest(answer),
        owner=owner,
        reference=str(answer.get("DBInstanceArn", "")),
        # Nothing of ours needs what has no owner.
        answer=encoded_answer(answer) if owner is not None else b"",
        tags=generic.tags_kept(_tags_in(answer), owner),
    )


def encoded_answer(answer: Answer) -> bytes:
    """Return an answer about one instance, with its tags, as it is kept: a tenth of the size of what the SDK made."""
    return msgspec.msgpack.encode(answer)


def decoded_answer(encoded: bytes) -> Answer:
    """Return what `encoded_answer` kept; its times are `datetime` again."""
    answer: dict[str, Any] = msgspec.msgpack.decode(encoded)
    return answer


def digest_of(answer: Answer) -> str:
    """Return what changes when anything about an instance does, its tags apart."""
    return generic.digest_of(answer, _VOLATILE)


def tags_digest(answer: Answer) -> str | None:
    """Return what changes when a tag does; None when the answer holds no list of tags, which is not an empty one."""
    return generic.tags_digest(_tags_in(answer))


def _tags_in(answer: Answer) -> dict[str, str] | None:
    members = answer.get("TagList")
    return None if members is None else decoded_tags(members)
