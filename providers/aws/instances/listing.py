"""What a list of instances says of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.aws.tag_lists import decoded_tags
from providers.external.cloud_api import listed as generic
from providers.external.cloud_api.listed import ListedObject, owner_in

Answer = Mapping[str, Any]
_VOLATILE = frozenset({"LatestRestorableTime", "TagList", "ResponseMetadata"})


def listed(answer: Answer) -> ListedObject:
    """Return what is kept of one member of DescribeDBInstances."""
    return ListedObject(
        name=str(answer["DBInstanceIdentifier"]),
        incarnation=str(answer["DbiResourceId"]),
        digest=digest_of(answer),
        tags_digest=tags_digest(answer),
        owner=owner_in(_tags_in(answer)),
        reference=str(answer.get("DBInstanceArn", "")),
    )


def digest_of(answer: Answer) -> str:
    """Return what changes when anything about an instance does, its tags apart."""
    return generic.digest_of(answer, _VOLATILE)


def tags_digest(answer: Answer) -> str | None:
    """Return what changes when a tag does; None when the answer holds no list of tags, which is not an empty one."""
    return generic.tags_digest(_tags_in(answer))


def _tags_in(answer: Answer) -> dict[str, str] | None:
    members = answer.get("TagList")
    return None if members is None else decoded_tags(members)
