"""What RDS, STS and the SDK raise, as the five failure classes.

Codes: the error lists of the operations in the RDS API reference 2014-10-31 ("Common Errors" too) and of the STS API
reference 2011-06-15; the throttling codes are those that botocore's standard retry mode knows. A code stands on the
wire with or without `Fault` behind it, so both spellings mean one thing here.

Impure: it reads the SDK's exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from botocore import exceptions as sdk

from providers.external.cloud_api.refusals import (
    AlreadyThere,
    NotThere,
    clean,
    failure_by_code,
    pause_of,
    sentence,
)
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient

_log = structlog.get_logger("providers.aws.errors")

THROTTLING = frozenset({
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestThrottled",
    "RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "PriorRequestNotComplete",
    "BandwidthLimitExceeded", "LimitExceededException", "EC2ThrottledException",
})  # fmt: skip
INVALID = frozenset({
    "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "ValidationError",
    "MalformedQueryString", "InvalidQueryParameter", "StorageTypeNotSupported",
    "NetworkTypeNotSupported", "DBUpgradeDependencyFailure", "InvalidSubnet", "SubnetAlreadyInUse",
    "DBSubnetGroupDoesNotCoverEnoughAZs", "InvalidVPCNetworkState", "InvalidRestore", "PointInTimeRestoreNotEnabled",
    "VpcEncryptionControlViolationException", "InvalidAction",
})  # fmt: skip
BUSY = frozenset({
    "InvalidDBInstanceState", "InvalidDBSnapshotState", "InvalidDBSubnetGroupState", "InvalidDBSubnetState",
    "InvalidDBParameterGroupState", "InvalidDBInstanceAutomatedBackupState", "InvalidDBClusterState",
})  # fmt: skip
QUOTA = frozenset({
    "InstanceQuotaExceeded", "StorageQuotaExceeded", "DBSubnetGroupQuotaExceeded", "DBSubnetQuotaExceeded",
    "DBParameterGroupQuotaExceeded", "InsufficientDBInstanceCapacity",
    "ProvisionedIopsNotAvailableInAZ", "DBInstanceAutomatedBackupQuotaExceeded", "InsufficientStorageClusterCapacity",
})  # fmt: skip
DENIED = frozenset({
    "AccessDenied", "AccessDeniedException", "NotAuthorized", "OptInRequired",
    "RegionDisabledException", "KMSKeyNotAccessible", "AuthorizationNotFound",
})  # fmt: skip
CREDENTIALS = frozenset({
    "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
    "MissingAuthenticationToken", "InvalidIdentityToken", "IDPRejectedClaim", "RequestExpired",
})  # fmt: skip
_BLOCKED = dict.fromkeys(BUSY, "CloudBusy") | dict.fromkeys(QUOTA, "QuotaExceeded") | {
    "SnapshotQuotaExceeded": "BackupImpossible"
}  # fmt: skip
_TERMINAL = dict.fromkeys(CREDENTIALS, "CredentialsInvalid") | dict.fromkeys(DENIED, "AccessDenied")

_REMEDIES = {
    "InsufficientDBInstanceCapacity": "AWS has none left of this class in the zone; wait, or choose another class",
    "ExpiredToken": "the session is over; renew the credentials",
    "ExpiredTokenException": "the session or the projected token is over; renew the credentials",
    "RequestExpired": "the clocks of this machine and of AWS differ too much",
    "SignatureDoesNotMatch": "the secret access key is not the one of this access key, or the clocks differ",
    "InvalidClientTokenId": "AWS does not know this access key; renew the credentials",
    "InvalidIdentityToken": "AWS does not trust this cluster's tokens; check the account's OpenID Connect provider",
    "SnapshotQuotaExceeded": "delete manual snapshots of the region or have the quota raised; or choose another policy",
    "KMSKeyNotAccessible": "the key is off, gone or closed to this account, or the credentials lack kms:DescribeKey and"
    " kms:CreateGrant on it (deploy/iam/aws/optional)",
}
_ROLE_REMEDY = (
    "the account lacks the role that RDS makes at its first use: allow iam:CreateServiceLinkedRole for"
    " rds.amazonaws.com, as deploy/iam/aws does, or run"
    " `aws iam create-service-linked-role --aws-service-name rds.amazonaws.com`"
)
_ROLE = re.compile(r"service[- ]linked role|ServiceLinkedRoles", re.IGNORECASE)
# Of a group, whichever code says it.
_USED = re.compile(r"are still members of|is still using it", re.IGNORECASE)
_PROTECTED = re.compile(r"deletion ?protection|protected DB ?instance", re.IGNORECASE)
_OPTIMIZED = re.compile(r"storage.{0,80}being optimi[sz]ed|storage-optimization", re.IGNORECASE)
_PASSWORD = re.compile(r"MasterUserPassword|master (user )?password", re.IGNORECASE)
_VERSION = re.compile(r"cannot find version|cannot upgrade .* (from|to) ", re.IGNORECASE)
_NO_ANSWER = (
    sdk.EndpointConnectionError,
    sdk.ConnectionError,
    sdk.HTTPClientError,
    sdk.ConnectTimeoutError,
    sdk.ReadTimeoutError,
    sdk.ConnectionClosedError,
    sdk.IncompleteReadError,
    sdk.ResponseStreamingError,
    sdk.MetadataRetrievalError,
    sdk.CredentialRetrievalError,
)  # fmt: skip
# The connection could not be made or broke, and nobody waited for a time-out.
_BROKEN = (
    sdk.EndpointConnectionError,
    sdk.ConnectionClosedError,
    sdk.IncompleteReadError,
    sdk.ResponseStreamingError,
)
_SERVER_ERROR = 500
_NO_CREDENTIALS = (sdk.NoCredentialsError, sdk.PartialCredentialsError, sdk.TokenRetrievalError)


def bare(code: str) -> str:
    """Return a code as it is compared: RDS ends some in `Fault`, others not, and not always the same way."""
    return code.removesuffix("Fault")


def failure_of(error: Exception, action: str, *, hide: Iterable[str] = ()) -> Failure:
    """Return the failure class of what the SDK raised; `action` says what was tried, `hide` are secret values.

    A Failure (a closed fence, which botocore hands through) is returned as it is.
    """
    if isinstance(error, Failure):
        return error
    if isinstance(error, sdk.ClientError):
        return _refused(error.response, action, hide)
    if isinstance(error, _NO_CREDENTIALS):
        return Terminal("CredentialsInvalid", f"cannot {action}: there are no whole credentials; renew them")
    if isinstance(error, sdk.ParamValidationError | sdk.NoRegionError | sdk.InvalidRegionError):
        return Terminal("InvalidValue", f"cannot {action}: {clean(str(error), hide)}")
    if isinstance(error, _NO_ANSWER):
        text = f"cannot {action}: no answer ({type(error).__name__})"
        return Transient(text, is_momentary=isinstance(error, _BROKEN))
    # What a broken answer or a renewal of credentials raises has no class of its own in the SDK.
    return Transient(f"cannot {action}: {clean(str(error), hide)} ({type(error).__name__})")


def _refused(response: Mapping[str, Any], action: str, hide: Iterable[str]) -> Failure:
    error, meta = response.get("Error") or {}, response.get("ResponseMetadata") or {}
    code = str(error.get("Code", ""))
    said, known = clean(str(error.get("Message", "")), hide), bare(code)
    text = sentence(action, said, code)
    # Of each call its own: in a condition it would be news of what is none.
    _log.info("refused by AWS", call=action, code=code, request=str(meta.get("RequestId", "")))
    if known in THROTTLING:
        headers = meta.get("HTTPHeaders") or {}
        return Throttled(text, after=pause_of(headers.get("retry-after", "")))
    if known.endswith("AlreadyExists"):
        return AlreadyThere(text, code=code)
    if known.endswith("NotFound") and known not in DENIED:
        return NotThere(text, code=code)
    if known in INVALID:
        return _invalid(said, text)
    if _USED.search(said):
        return Blocked("DeleteBlocked", text)
    text = f"{text}; {_REMEDIES[known]}" if known in _REMEDIES else text
    is_server_error = int(meta.get("HTTPStatusCode") or 0) >= _SERVER_ERROR
    return failure_by_code(known, text, blocked=_BLOCKED, terminal=_TERMINAL, is_server_error=is_server_error)


def _invalid(said: str, text: str) -> Failure:
    """Return the class of what RDS says with one code for all: only its sentence names the cause."""
    if _ROLE.search(said):
        return Terminal("AccessDenied", f"{text}; {_ROLE_REMEDY}")
    if _PROTECTED.search(said):
        return Blocked("DeleteBlocked", f"{text}; turn deletionProtection off first")
    if _OPTIMIZED.search(said):
        return Blocked("CloudBusy", text)
    if _PASSWORD.search(said):
        return Terminal("InvalidPassword", text)
    if _VERSION.search(said):
        return Terminal("UnsupportedVersion", text)
    return Terminal("InvalidValue", text)
