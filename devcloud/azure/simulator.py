"""A request from its token to its answer: who calls what, whether they may, what comes of it.

In ARM's order: the token, the api-version, the subscription, the caller's rights, the token bucket, locks; then the
resource provider.
"""

import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from devcloud.azure import control, state_file
from devcloud.azure.api import activities, children, groups, polls, routes, servers
from devcloud.azure.api.calls import Call, Cloud, Handler
from devcloud.azure.api.linked import linked_rights
from devcloud.azure.api.routes import Matched, Rights
from devcloud.azure.behaviour import AzureBehaviour
from devcloud.azure.entra.directory import Directory
from devcloud.azure.entra.tokens import EntraRefusal, discovery_answer, metadata_answer, token_answer
from devcloud.azure.refusals import COMMON_STATUS, AzureFault, GatewayRefusal, Throttled, Unauthenticated, locked
from devcloud.azure.resources import Resources
from devcloud.azure.state.catalog import LOCATIONS
from devcloud.azure.state_file import AzureSaved
from devcloud.azure.throttling import Buckets, Verb, verb_of
from devcloud.simulator.audit import Entry, redacted
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Answer, Refusal, Request, json_answer
from devcloud.simulator.operations import Operations
from devcloud.simulator.rest import Grant, Tokens, json_object
from runtime.clock import monotonic

ACTIONS: dict[str, Handler] = {
    **servers.ACTIONS,
    **children.ACTIONS,
    **groups.ACTIONS,
    **polls.ACTIONS,
    **activities.ACTIONS,
}
SECRETS = frozenset({"administratorLoginPassword", "client_assertion", "client_secret", "access_token", "password"})
_METADATA = "metadata/identity/oauth2/token"
_TOKEN = "/oauth2/v2.0/token"  # noqa: S105 - a path
_DISCOVERY = "/v2.0/.well-known/openid-configuration"
# What a read-only lock stops: ARM counts POST among writes.
_LEVELS: dict[Verb, tuple[str, ...]] = {"read": (), "write": ("ReadOnly",), "delete": ("CanNotDelete", "ReadOnly")}


class Simulator:
    """ARM, Entra and the metadata service: a `devcloud.simulator.service.Service`.

    Attributes:
        cloud: What its actions act on.
    """

    name: str = "azure"
    title: str = "simulated Azure"
    routes: tuple[tuple[str, str], ...] = (("*", "/{path:.*}"),)
    fault_type: type[Fault] = AzureFault
    saved_type: type[AzureSaved] = AzureSaved

    def __init__(self, clock: Clock, directory: Directory, databases: DataPlane, *, scheme: str = "http") -> None:
        self.controls = Controls(clock, AzureBehaviour())
        self.databases = databases
        self.cloud = Cloud(Resources(clock, databases), directory, Tokens(), self.controls)
        self.operations: Operations | None = self.cloud.resources.operations
        self._scheme = scheme
        self._buckets = Buckets(monotonic)
        # What the request that is being answered left of its buckets: an answer is given without a pause.
        self._left: dict[str, str] = {}

    # From a request to its answer

    def admit(self, request: Request) -> Call:
        """Find out what is called and by whom.

        Raises:
            Refusal: No token, or one that does not count; a path that leads nowhere.
        """
        base_url = f"{self._scheme}://{request.headers.get('host', '')}"
        path = request.path.strip("/")
        identity = _identity_call(request, path, base_url)
        if identity is not None:
            return identity
        grant = self._authenticated(request)
        matched = routes.match(request.method, path)
        if matched is None:
            message = f"No HTTP resource was found that matches the request URI '{request.path}'."
            raise GatewayRefusal("InvalidResourceType", message, status=404)
        body = {} if request.method in {"GET", "DELETE"} else json_object(request.body, code="InvalidRequestContent")
        return Call(
            action=matched.action,
            method=request.method,
            path=request.path,
            names=matched.names,
            query={
                name.lower() if name.lower() == "api-version" else name: v for name, v in request.parameters.items()
            },
            headers=request.headers,
            body=body,
            grant=grant,
            base_url=base_url,
            correlation_id=request.headers.get("x-ms-correlation-request-id") or str(uuid.uuid4()),
        )

    def _authenticated(self, request: Request) -> Grant:
        header = request.headers.get("authorization", "")
        if not header:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise Unauthenticated("AuthenticationFailed", message)
        # Of real time: clients ask for a new token by their own clock.
        grant = self.cloud.tokens.holder(request.headers, datetime.now(UTC))
        if grant is not None:
            return grant
        if header.partition(" ")[2].strip() in self.cloud.tokens.grants:
            message = "The access token expiry UTC time is earlier than current UTC time."
            raise Unauthenticated("ExpiredAuthenticationToken", message)
        raise Unauthenticated("InvalidAuthenticationToken", "The access token is invalid.")

    def perform(self, call: Call) -> Answer:
        """Carry a request out.

        Raises:
            Refusal: Azure says no.
        """
        if call.grant is None:
            return self._identify(call)
        matched = routes.match(call.method, call.path.strip("/"))
        if matched is None or call.action not in ACTIONS:
            raise GatewayRefusal("InvalidResourceType", f"The action {call.action} is not simulated.", status=404)
        self.cloud.resources.tick()
        _refuse_version(call, matched.rights)
        self._refuse_caller(call, call.grant, matched)
        verb = verb_of(call.method)
        throttle = self.controls.behaviour.throttle
        self._left = self._buckets.take(throttle, call.subscription, call.grant.principal, verb)
        self._refuse_closed(call, verb)
        if verb != "read":
            self.controls.changes += 1
        answer = ACTIONS[call.action](self.cloud, call)
        if verb != "read":
            activities.record(self.cloud, call, answer, matched.rights.action)
        return msgspec.structs.replace(answer, headers={**_ids(call), **self._left, **answer.headers})

    def _identify(self, call: Call) -> Answer:
        cloud, now = self.cloud, datetime.now(UTC)
        match call.action:
            case "entra.token":
                return token_answer(call.body, call.names["tenant"], cloud.directory, cloud.tokens, now)
            case "entra.discovery":
                return discovery_answer(call.base_url, call.names["tenant"])
            case _:
                return metadata_answer(call.headers, call.query, cloud.directory, cloud.tokens, now)

    def _refuse_caller(self, call: Call, grant: Grant, matched: Matched) -> None:
        directory = self.cloud.directory
        tenant = directory.subscriptions.get(call.subscription.lower())
        if tenant is None:
            message = f"The subscription '{call.subscription}' could not be found."
            raise GatewayRefusal("SubscriptionNotFound", message, status=404)
        if tenant != grant.account:
            message = f"The access token is from the wrong issuer. It must match the tenant '{tenant}'."
            raise Unauthenticated("InvalidAuthenticationTokenTenant", message)
        scope = groups.scope_of(call)
        if not directory.allows(grant.principal, matched.rights.action, scope):
            message = (
                f"The client '{grant.principal}' with object id '{grant.principal}' does not have authorization to "
                f"perform action '{matched.rights.action}' over scope '{scope}' or the scope is invalid. If access was "
                "recently granted, please refresh your credentials."
            )
            raise GatewayRefusal("AuthorizationFailed", message, status=403)
        lacking = {
            action: linked
            for linked, action in linked_rights(call)
            if not directory.allows(grant.principal, action, linked)
        }
        if lacking:
            message = (
                f"The client '{grant.principal}' with object id '{grant.principal}' has permission to perform action "
                f"'{matched.rights.action}' on scope '{scope}'; however, it does not have permission to perform "
                f"action(s) '{','.join(lacking)}' on the linked scope(s) '{','.join(lacking.values())}' (respectively) "
                "or the linked scope(s) are invalid."
            )
            raise GatewayRefusal("LinkedAuthorizationFailed", message, status=403)

    def _refuse_closed(self, call: Call, verb: Verb) -> None:
        if self.controls.behaviour.subscription_disabled and verb != "read":
            message = f"The subscription '{call.subscription}' is disabled and therefore marked as read only."
            raise GatewayRefusal("ReadOnlyDisabledSubscription", message, status=409)
        is_of_provider = not call.action.startswith(("locks.", "resourceGroups.", "subscriptions."))
        if is_of_provider and verb != "read" and not self.controls.behaviour.is_registered:
            message = "The subscription is not registered to use namespace 'Microsoft.DBforPostgreSQL'."
            raise GatewayRefusal("MissingSubscriptionRegistration", message, status=409)
        if call.action.startswith("locks."):
            return
        scope = groups.scope_of(call)
        locks = self.cloud.resources.locks_above(scope, _LEVELS[verb])
        if call.action == "resourceGroups.delete":
            locks += self.cloud.resources.locks_below(scope)
        if locks and call.action != "checkNameAvailability.post":
            raise locked(scope, verb, locks)

    def refused(self, refusal: Refusal, call: Call | None) -> Answer:
        """Return the answer of a refusal."""
        if isinstance(refusal, EntraRefusal):
            oauth = {"error": refusal.code, "error_description": refusal.message}
            return json_answer(oauth, status=refusal.status or 400)
        headers = {"x-ms-request-id": str(uuid.uuid4())} if call is None else _ids(call)
        if isinstance(refusal, GatewayRefusal | Throttled | Unauthenticated):
            headers["x-ms-failure-cause"] = "gateway"
        elif call is not None:
            # The provider's own refusals say what is left, those of ARM do not (recorded, 2022-12-01).
            headers |= self._left
        if isinstance(refusal, Throttled):
            headers["Retry-After"] = str(refusal.retry_after_s)
        if isinstance(refusal, Unauthenticated):
            headers["WWW-Authenticate"] = (
                'Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token", '
                f'error_description="{refusal.message}"'
            )
        content = {"error": {"code": refusal.code, "message": refusal.message}}
        return json_answer(content, status=refusal.status or COMMON_STATUS.get(refusal.code, 500), headers=headers)

    def record(self, call: Call, outcome: str) -> None:
        """Write a call down in the log."""
        grant = call.grant
        self.controls.audit.add(
            Entry(
                at=self.controls.clock.now(),
                account=call.subscription,
                region=str(call.body.get("location", "")),
                principal=grant.principal if grant is not None else str(call.body.get("client_id", "")),
                action=call.action,
                identifier=call.identifier,
                params=redacted({**call.names, **_logged(call), **call.body}, SECRETS),
                request_id=call.request_id,
                outcome=outcome,
                mutating=grant is not None and call.method != "GET" and call.action != "checkNameAvailability.post",
            )
        )

    # What happens by itself, what tests steer, what is kept

    def tick(self) -> None:
        """Let happen whose time has come."""
        self.cloud.resources.tick()
        robot = self.controls.behaviour.tag_robot
        if robot is not None and self.controls.robot_comes():
            for server in list(self.cloud.resources.servers.values()):
                kept = {name: value for name, value in (server.tags or {}).items() if not robot.strips(name)}
                if server.tags is not None and kept != server.tags:
                    self.cloud.resources.keep(msgspec.structs.replace(server, tags=kept))

    def reset(self) -> None:
        """Drop all resources; who can call stays, and so do their tokens."""
        self.cloud.resources.reset()
        self._buckets = Buckets(monotonic)

    def control(self, method: str, path: tuple[str, ...], content: Any) -> Any:
        """Carry out a call of the control API: see `control`."""
        return control.answer(self.cloud, method, path, content)

    def versions(self) -> tuple[int, ...]:
        """Return counters that change with every resource, operation, principal and token."""
        cloud = self.cloud
        return (
            cloud.resources.changes,
            cloud.resources.operations.changes,
            cloud.directory.changes,
            len(cloud.tokens.grants),
        )

    def saved(self) -> AzureSaved:
        """Return what is kept beyond the process."""
        return state_file.saved(self.cloud)

    def restore(self, saved: AzureSaved) -> None:
        """Have what a former process kept, and go on with the work."""
        state_file.restore(self.cloud, saved)

    async def close(self) -> None:
        """End the jobs that are under way."""
        await self.cloud.resources.close()


def _identity_call(request: Request, path: str, base_url: str) -> Call | None:
    """Return the call of a path of Entra or of the metadata service, None for one of ARM."""
    common: dict[str, Any] = {"method": request.method, "path": request.path, "base_url": base_url}
    if request.method == "POST" and path.endswith(_TOKEN.strip("/")) and path.count("/") == _TOKEN.count("/"):
        form = dict(parse_qsl(request.body.decode(errors="replace")))
        return Call(action="entra.token", names={"tenant": path.partition("/")[0]}, body=form, **common)
    if request.method == "GET" and f"/{path}".endswith(_DISCOVERY):
        return Call(action="entra.discovery", names={"tenant": path.partition("/")[0]}, **common)
    if request.method == "GET" and path == _METADATA:
        parameters, headers = request.parameters, request.headers
        return Call(action="metadata.token", names={}, query=parameters, headers=headers, **common)
    return None


def _refuse_version(call: Call, rights: Rights) -> None:
    """Refuse an api-version that a type does not have, in ARM's words."""
    version = call.api_version
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise GatewayRefusal("MissingApiVersionParameter", message, status=400)
    if version in rights.versions:
        return
    known = ", ".join(rights.versions)
    if rights.resource_type in {"subscriptions", "resourceGroups", "locks"}:
        message = f"The api-version '{version}' is invalid. The supported versions are '{known}'."
        raise GatewayRefusal("InvalidApiVersionParameter", message, status=400)
    location = call.names.get("location") or str(call.body.get("location", ""))
    message = (
        f"No registered resource provider found for location '{location}' and API version '{version}' for type "
        f"'{rights.resource_type}'. The supported api-versions are '{known}'. The supported locations are "
        f"'{', '.join(LOCATIONS)}'."
    )
    raise GatewayRefusal("NoRegisteredProviderFound", message, status=400)


def _ids(call: Call) -> dict[str, str]:
    return {
        "x-ms-request-id": call.request_id,
        "x-ms-correlation-request-id": call.correlation_id,
        "x-ms-routing-request-id": f"{(call.names.get('location') or 'uksouth').upper()}:{call.request_id}",
    }


def _logged(call: Call) -> dict[str, str]:
    return {name: value for name, value in call.query.items() if name in {"api-version", "$skiptoken"}}
