"""The actions of STS (AWS Security Token Service API Reference)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from devcloud.aws.api.wire import Tree
from devcloud.aws.iam.policies import Ask, refuse_denied
from devcloud.aws.iam.principals import Key, Principals, Role, subject_of, trusts_account, trusts_subject
from devcloud.aws.refusals import invalid_value
from devcloud.simulator.messages import Refusal

_SECONDS = range(900, 43_201)


@dataclass(frozen=True, slots=True)
class StsCall:
    """A request to STS; an unsigned one has no caller."""

    principals: Principals
    caller: Key | None
    parameters: Tree
    now: datetime


def answer(action: str, call: StsCall) -> Tree:
    """Carry out an action of STS.

    Raises:
        Refusal: It is not allowed, not trusted, not simulated.
    """
    if action == "AssumeRoleWithWebIdentity":
        return _assume_with_web_identity(call)
    if call.caller is None:
        raise Refusal("MissingAuthenticationToken", "Request is missing Authentication Token")
    match action:
        case "GetCallerIdentity":
            return {"UserId": call.caller.access_key_id, "Account": call.caller.account, "Arn": call.caller.arn}
        case "AssumeRole":
            return _assume(call, call.caller)
        case _:
            raise Refusal("InvalidAction", f"The action {action} is not simulated.")


def _assume(call: StsCall, caller: Key) -> Tree:
    arn = str(call.parameters["RoleArn"])
    if caller.policy is not None:
        refuse_denied(caller.policy, Ask(action="sts:AssumeRole", resource=arn), caller.arn)
    role = call.principals.roles.get(arn)
    if role is None or not trusts_account(role, caller, call.parameters.get("ExternalId")):
        raise Refusal(
            "AccessDenied", f"User: {caller.arn} is not authorized to perform: sts:AssumeRole on resource: {arn}"
        )
    return _session(call, role)


def _assume_with_web_identity(call: StsCall) -> Tree:
    subject = subject_of(str(call.parameters["WebIdentityToken"]), call.now)
    role = call.principals.roles.get(str(call.parameters["RoleArn"]))
    if role is None or not trusts_subject(role, subject):
        raise Refusal("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
    return {**_session(call, role), "SubjectFromWebIdentityToken": subject}


def _session(call: StsCall, role: Role) -> Tree:
    seconds = int(call.parameters.get("DurationSeconds", 3600))
    if seconds not in _SECONDS:
        raise invalid_value(f"Invalid DurationSeconds: {seconds}. Must be between 900 and 43200")
    name = str(call.parameters["RoleSessionName"])
    key = call.principals.session(role, name, call.now + timedelta(seconds=seconds))
    return {"Credentials": credentials(key), "AssumedRoleUser": {"AssumedRoleId": f"AROA:{name}", "Arn": key.arn}}


def credentials(key: Key) -> Tree:
    """Return temporary credentials as STS shows them."""
    return {
        "AccessKeyId": key.access_key_id,
        "SecretAccessKey": key.secret_access_key,
        "SessionToken": key.session_token,
        "Expiration": key.expires_at,
    }
