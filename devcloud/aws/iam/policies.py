"""Whether a policy allows a call. Pure.

After "Policy evaluation logic" and "IAM JSON policy elements" of the IAM User Guide, cut to what database calls meet:
Effect, Action, NotAction, Resource, and conditions on tags and on the service that a role is for.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from devcloud.simulator.messages import Refusal

ALLOW_ALL: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A call as policies see it.

    Attributes:
        action: `rds:CreateDBInstance`.
        resource: The ARN that it concerns, `*` for none.
        resource_tags: The tags of what it concerns.
        request_tags: The tags that it brings.
        context: Other keys of conditions, in lower case, such as `iam:awsservicename`.
    """

    action: str
    resource: str
    resource_tags: Mapping[str, str] = {}
    request_tags: Mapping[str, str] = {}
    context: Mapping[str, str] = {}


def refuse_denied(policy: Mapping[str, Any], ask: Ask, principal_arn: str) -> None:
    """Refuse what no statement allows or one denies.

    Raises:
        Refusal: `AccessDenied`.
    """
    effects = {statement.get("Effect") for statement in _listed(policy.get("Statement")) if _applies(statement, ask)}
    if "Deny" in effects:
        reason = "with an explicit deny in an identity-based policy"
    elif "Allow" in effects:
        return
    else:
        reason = f"because no identity-based policy allows the {ask.action} action"
    raise Refusal(
        "AccessDenied",
        f"User: {principal_arn} is not authorized to perform: {ask.action} on resource: {ask.resource} {reason}",
    )


def _applies(statement: Mapping[str, Any], ask: Ask) -> bool:
    if "NotAction" in statement:
        acts = not _any_matches(statement["NotAction"], ask.action, fold=True)
    else:
        acts = _any_matches(statement.get("Action", ()), ask.action, fold=True)
    if not acts or not _any_matches(statement.get("Resource", "*"), ask.resource):
        return False
    conditions = statement.get("Condition", {})
    return all(
        _holds(operator, key, _listed(wanted), ask)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _holds(operator: str, key: str, wanted: list[Any], ask: Ask) -> bool:
    values = _values(key, ask)
    negated = operator.endswith(("NotEquals", "NotLike"))
    if operator == "Null":
        return (not values) == (str(wanted[0]).lower() == "true")
    if operator.startswith("ForAllValues:"):
        return all(_matches_one(wanted, value, operator) for value in values)
    if not values:
        # A negated operator holds for a key that is not there; a plain one does not.
        return negated
    matches = any(_matches_one(wanted, value, operator) for value in values)
    return not matches if negated else matches


def _matches_one(wanted: list[Any], value: str, operator: str) -> bool:
    if "Like" in operator or "Arn" in operator:
        return _any_matches(wanted, value)
    return value in wanted


def _values(key: str, ask: Ask) -> list[str]:
    head, _, tag = key.partition("/")
    match head.lower():
        case "aws:resourcetag" | "rds:db-tag":
            return [ask.resource_tags[tag]] if tag in ask.resource_tags else []
        case "aws:requesttag" | "rds:req-tag":
            return [ask.request_tags[tag]] if tag in ask.request_tags else []
        case "aws:tagkeys":
            return sorted(ask.request_tags)
        case word:
            return [ask.context[word]] if word in ask.context else []


def _any_matches(patterns: Any, value: str, *, fold: bool = False) -> bool:
    if fold:
        return any(fnmatchcase(value.lower(), str(pattern).lower()) for pattern in _listed(patterns))
    return any(fnmatchcase(value, str(pattern)) for pattern in _listed(patterns))


def _listed(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [content]
