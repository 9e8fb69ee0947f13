"""How RDS and STS say no: a code, a sentence, an HTTP status.

The codes and their statuses are the service models' own (botocore, rds/2014-10-31 and sts/2011-06-15) and, for what
every AWS service answers, the page "Common Errors" of the RDS API Reference. Pure.
"""

from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Refusal

COMMON_STATUS = {
    "AccessDenied": 403,
    "AccessDeniedException": 400,
    "ExpiredToken": 403,
    "IncompleteSignature": 400,
    "InternalFailure": 500,
    "InvalidAction": 400,
    "InvalidClientTokenId": 403,
    "InvalidIdentityToken": 400,
    "ExpiredTokenException": 400,
    "InvalidParameterCombination": 400,
    "InvalidParameterValue": 400,
    "InvalidQueryParameter": 400,
    "MalformedQueryString": 404,
    "MissingAuthenticationToken": 403,
    "MissingParameter": 400,
    "NotAuthorized": 400,
    "OptInRequired": 403,
    "RequestExpired": 400,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "SignatureDoesNotMatch": 403,
    "Throttling": 400,
    "ThrottlingException": 400,
    "ValidationError": 400,
}


class AwsFault(Fault, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that answers, unless a test says otherwise, what AWS answers of its own errors."""

    code: str = "InternalFailure"
    message: str = "The request processing has failed because of an unknown error."


def invalid_value(message: str) -> Refusal:
    """Return the refusal of one value."""
    return Refusal("InvalidParameterValue", message)


def invalid_combination(message: str) -> Refusal:
    """Return the refusal of values that do not go together, or with the instance's present ones."""
    return Refusal("InvalidParameterCombination", message)


def missing(parameter: str) -> Refusal:
    """Return the refusal of a request that lacks a parameter."""
    return Refusal("MissingParameter", f"The request must contain the parameter {parameter}")
