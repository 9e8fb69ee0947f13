"""How ARM and the resource provider say no: a code, a sentence, an HTTP status.

The sentences of ARM's own refusals are near those that it gives ("Resolve common Azure deployment errors" of the Azure
Resource Manager documentation); those of a missing resource are the recorded ones. Pure.
"""

from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Refusal

SERVERS = "Microsoft.DBforPostgreSQL/flexibleServers"
_MORE = "For more details please go to https://aka.ms/ARMResourceNotFoundFix"


COMMON_STATUS = {
    "AllocationFailed": 409,
    "AnotherOperationInProgress": 409,
    "AuthorizationFailed": 403,
    "Conflict": 409,
    "InvalidTemplate": 400,
    "LocationIsOfferRestricted": 400,
    "MethodNotAllowed": 405,
    "NotFound": 404,
    "OverconstrainedAllocationRequest": 409,
    "ParameterOutOfRange": 400,
    "ParentResourceNotFound": 404,
    "QuotaExceeded": 409,
    "RegionIsOfferRestricted": 400,
    "RequestDisallowedByPolicy": 403,
    "ResourceQuotaExceeded": 409,
    "ServerBusy": 409,
    "ServerGroupDropping": 409,
    "SkuNotAvailable": 409,
    "SubscriptionNotRegistered": 409,
    "ZonalAllocationFailed": 409,
}
"""The HTTP status of what ARM and the service refuse for causes that are not simulated; of any other code it is 500.

"Resolve common Azure deployment errors"; LocationIsOfferRestricted and ParameterOutOfRange are quoted of flexible
servers (adamdost-0/linux-update-cds 14, terraform-provider-azurerm 21757), ServerBusy and ServerGroupDropping too
(terraform-provider-azurerm 28298 and 16622, bicep-registry-modules 4451). Azure Service Operator names
AnotherOperationInProgress, Conflict, InvalidTemplate, MethodNotAllowed, RegionIsOfferRestricted, ResourceQuotaExceeded.
"""


class AzureFault(Fault, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that answers, unless a test says otherwise, what Azure answers of its own errors."""

    code: str = "InternalServerError"
    message: str = "An unexpected error occurred while processing the request."


class GatewayRefusal(Refusal):
    """A refusal by ARM itself, before the resource provider is asked (`x-ms-failure-cause: gateway`)."""


class Throttled(Refusal):
    """Too many requests.

    Attributes:
        retry_after_s: When there is a token again.
    """

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__("SubscriptionRequestsThrottled", message, status=429)
        self.retry_after_s = retry_after_s


class Unauthenticated(Refusal):
    """No token, or one that does not count: ARM answers with where to get another (RFC 6750)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, status=401)


def bad_request(code: str, message: str) -> Refusal:
    """Return the refusal of a request that can never be carried out as it is."""
    return Refusal(code, message, status=400)


def invalid_value(parameter: str) -> Refusal:
    """Return the refusal of a value, as the resource provider words it."""
    message = f"Invalid value given for parameter {parameter}. Specify a valid parameter value."
    return bad_request("InvalidParameterValue", message)


def missing_value(parameter: str) -> Refusal:
    """Return the refusal of a request that lacks a value."""
    return bad_request("MissingRequiredParameter", f"The required parameter {parameter} is missing.")


def unchangeable(path: str) -> Refusal:
    """Return the refusal of an edit of what is chosen at creation."""
    return bad_request("PropertyChangeNotAllowed", f"Changing property '{path}' is not allowed.")


def group_not_found(group: str) -> Refusal:
    """Return the refusal of a call in a resource group that does not exist."""
    return GatewayRefusal("ResourceGroupNotFound", f"Resource group '{group}' could not be found.", status=404)


def server_not_found(server: str, group: str) -> Refusal:
    """Return the refusal by ARM, which keeps a list of servers of its own (recorded, 2021-06-01 and 2022-12-01)."""
    message = f"The Resource '{SERVERS}/{server}' under resource group '{group}' was not found. {_MORE}"
    return GatewayRefusal("ResourceNotFound", message, status=404)


def child_not_found(kind: str, name: str) -> Refusal:
    """Return the refusal of a call to a child that does not exist (recorded, 2022-12-01, for databases)."""
    message = f"The requested resource of type '{SERVERS}/{kind}' with name '{name}' was not found."
    return Refusal("ResourceNotFound", message, status=404)


def rule_not_found(name: str, api_version: str) -> Refusal:
    """Return the same for a firewall rule, which has sentences of its own (recorded, 2021-06-01 and 2022-12-01)."""
    if api_version < "2022":
        return Refusal("ResourceNotFound", f"The specified resource {name} was not found.", status=404)
    message = f"The requested resource of type '{SERVERS}' with name '{name}' was not found."
    return Refusal("ResourceNotFound", message, status=404)


def name_taken() -> Refusal:
    """Return the refusal of a server's name that somebody has, anywhere in Azure."""
    return Refusal("ServerNameAlreadyExists", "Specified server name is already used.", status=409)


def busy_sentence(server: str) -> str:
    """Return what Azure says of a server that another operation works on."""
    return f"Cannot complete operation while server '{server}' is busy processing another operation. Try again later."


def busy(server: str) -> Refusal:
    """Return the refusal of a second operation of a server."""
    return Refusal("ServerIsBusy", busy_sentence(server), status=409)


def not_ready(server: str, state: str) -> Refusal:
    """Return the refusal of a change to a server that does not run."""
    message = f"Operations on server '{server}' in state '{state}' are not allowed."
    return Refusal("ServerIsNotReady", message, status=409)


def locked(scope: str, verb: str, locks: list[str]) -> Refusal:
    """Return the refusal of a write or a delete below a lock."""
    names = ",".join(f"'{name}'" for name in locks)
    message = (
        f"The scope '{scope}' cannot perform {verb} operation because following scope(s) are locked: {names}. "
        "Please remove the lock and try again."
    )
    return GatewayRefusal("ScopeLocked", message, status=409)
