"""A request from its signature to its answer: who calls, whether they may, which action, what it says.

State lives in `accounts`; what tests steer is in `controls`.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from botocore.model import OperationModel

from devcloud.aws import control, state_file
from devcloud.aws.accounts import Accounts
from devcloud.aws.api import (
    instances,
    listings,
    modifications,
    offerings,
    other_resources,
    parameter_groups,
    restores,
    snapshots,
    sts,
    subnet_groups,
    tagging,
    wire,
)
from devcloud.aws.api.calls import Action, Call
from devcloud.aws.api.permissions import refuse_caller
from devcloud.aws.api.wire import Tree
from devcloud.aws.audit import SECRETS, AwsEntry, identifier_of, mutates
from devcloud.aws.behaviour import AwsBehaviour
from devcloud.aws.iam import signatures
from devcloud.aws.iam.linked_roles import make_linked_role
from devcloud.aws.iam.principals import Key, Principals
from devcloud.aws.jobs import Jobs
from devcloud.aws.lifecycle.steps import Record
from devcloud.aws.refusals import AwsFault
from devcloud.aws.region import Region
from devcloud.aws.state_file import AwsSaved
from devcloud.simulator.audit import redacted
from devcloud.simulator.behaviour import TagRobot
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Answer, Refusal, Request
from devcloud.simulator.operations import Operations
from devcloud.simulator.state_file import EncodedOnce
from runtime import randomness

ACTIONS: dict[str, Action] = {
    **instances.ACTIONS,
    **modifications.ACTIONS,
    **listings.ACTIONS,
    **snapshots.ACTIONS,
    **restores.ACTIONS,
    **subnet_groups.ACTIONS,
    **parameter_groups.ACTIONS,
    **tagging.ACTIONS,
    **offerings.ACTIONS,
    **other_resources.ACTIONS,
}
_RDS_NAMESPACE = "http://rds.amazonaws.com/doc/2014-10-31/"
_UNSIGNED = frozenset({"AssumeRoleWithWebIdentity"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A request whose caller is known; `caller` is None for the few that need none."""

    request_id: str
    model: OperationModel
    parameters: Tree
    caller: Key | None
    region: str

    @property
    def action(self) -> str:
        """The operation's name."""
        return str(self.model.name)

    @property
    def identifier(self) -> str:
        """Which resource it concerns."""
        return identifier_of(self.parameters)


class Simulator:
    """RDS and STS of every account and region: a `devcloud.simulator.service.Service`.

    Attributes:
        controls: What tests steer.
        accounts: What is there, and who can call.
        databases: What is behind the instances.
    """

    name: str = "aws"
    title: str = "simulated RDS"
    routes: tuple[tuple[str, str], ...] = (("POST", "/"),)
    fault_type: type[Fault] = AwsFault
    saved_type: type[AwsSaved] = AwsSaved
    operations: Operations | None = None

    def __init__(self, clock: Clock, principals: Principals, jobs: Jobs) -> None:
        self.controls = Controls(clock, AwsBehaviour())
        self.accounts = Accounts(clock, principals, jobs)
        self.databases = jobs.databases
        self._records: EncodedOnce[Record] = EncodedOnce()

    def reset(self) -> None:
        """Drop all resources; keys and roles stay."""
        self.accounts.regions.clear()

    def tick(self) -> None:
        """Let happen whose time has come."""
        self.accounts.settle()
        robot = self.controls.behaviour.tag_robot
        if robot is not None and self.controls.robot_comes():
            for region in self.accounts.regions.values():
                _strip(region, robot)

    def control(self, method: str, path: tuple[str, ...], content: Any) -> Any:
        """Carry out a call of the control API: see `control`."""
        return control.answer(self.accounts, method, path, content)

    def admit(self, request: Request) -> Admitted:
        """Find out what is called and by whom.

        Raises:
            Refusal: An unknown action, a bad signature, an unknown or expired key, a bad parameter.
        """
        fields = dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))
        model = wire.operation(fields)
        caller, region = None, "us-east-1"
        if model.name not in _UNSIGNED:
            caller, region = self._authenticated(request, model)
        return Admitted(
            request_id=_request_id(),
            model=model,
            parameters=wire.parse(model, fields),
            caller=caller,
            region=region,
        )

    def _authenticated(self, request: Request, model: OperationModel) -> tuple[Key, str]:
        signature = signatures.signature_of(request)
        token = request.headers.get("x-amz-security-token")
        caller = self.accounts.principals.caller(signature.access_key_id, token, self.controls.clock.now())
        signatures.refuse_signature(request, signature, caller.secret_access_key, datetime.now(UTC))
        service = model.service_model.service_name
        if signature.service != service:
            raise Refusal("SignatureDoesNotMatch", f"Credential should be scoped to correct service: '{service}'.")
        return caller, signature.region

    def perform(self, call: Admitted) -> Answer:
        """Carry a request out.

        Raises:
            Refusal: The service says no.
        """
        return _xml(200, self._performed(call))

    def _performed(self, admitted: Admitted) -> bytes:
        name, caller = admitted.action, admitted.caller
        controls = self.controls
        controls.changes += not name.startswith(("Describe", "List"))
        if admitted.model.service_model.service_name == "sts" or caller is None:
            call = sts.StsCall(self.accounts.principals, caller, admitted.parameters, self.controls.clock.now())
            return wire.answer(admitted.model, sts.answer(name, call), admitted.request_id)
        throttle = controls.behaviour.throttle
        scope = (caller.account, admitted.region)
        if throttle is not None and not controls.limiter.take(throttle, scope, mutating=mutates(name)):
            raise Refusal(throttle.code, "Rate exceeded")
        region = self.accounts.region(caller.account, admitted.region)
        region.settle()
        if caller.policy is not None:
            refuse_caller(caller.policy, (region, name, admitted.parameters), caller.arn)
        action = ACTIONS.get(name)
        if action is None:
            raise Refusal("InvalidAction", f"The action {name} is not simulated.")
        make_linked_role(self.accounts.principals, caller, name)
        content = action(Call(region, admitted.parameters, controls.behaviour, self.accounts.xml))
        return wire.answer(admitted.model, content, admitted.request_id)

    def refused(self, refusal: Refusal, call: Admitted | None) -> Answer:
        """Return the answer of a refusal."""
        if call is None:
            return _xml(*wire.refusal(refusal, _request_id(), _RDS_NAMESPACE))
        namespace = str(call.model.service_model.metadata["xmlNamespace"])
        return _xml(*wire.refusal(refusal, call.request_id, namespace))

    def record(self, call: Admitted, outcome: str) -> None:
        """Write a call down in the audit log."""
        caller = call.caller
        self.controls.audit.add(
            AwsEntry(
                at=self.controls.clock.now(),
                account=caller.account if caller else "",
                region=call.region,
                principal=caller.arn if caller else "",
                access_key_id=caller.access_key_id if caller else "",
                action=call.action,
                identifier=call.identifier,
                params=redacted(call.parameters, SECRETS),
                request_id=call.request_id,
                outcome=outcome,
                mutating=mutates(call.action),
            )
        )

    # What is kept beyond the process

    def versions(self) -> tuple[int, ...]:
        """Return counters that change with every region."""
        return tuple(region.changes for region in self.accounts.regions.values())

    def saved(self) -> AwsSaved:
        """Return what is kept beyond the process."""
        return state_file.saved(self.accounts, self._records)

    def restore(self, saved: AwsSaved) -> None:
        """Have what a former process kept, and hand the databases the work that was under way."""
        state_file.restore(self.accounts, saved)

    async def close(self) -> None:
        """End the jobs that are under way."""
        await self.accounts.jobs.close()


def _strip(region: Region, robot: TagRobot) -> None:
    arns = [record.shown.db_instance_arn for record in region.instances.values()]
    arns += [snapshot.db_snapshot_arn for snapshot in region.snapshots.values()]
    for arn in arns:
        present, give = tagging.tags_by_arn(region, arn)
        kept = tuple(tag for tag in present if not robot.strips(tag.key))
        if kept != present:
            give(kept)


def _request_id() -> str:
    return str(uuid.UUID(bytes=randomness.token_bytes(16), version=4))


def _xml(status: int, body: bytes) -> Answer:
    start = body.find(b"<RequestId>") + len(b"<RequestId>")
    request_id = body[start : body.find(b"</RequestId>", start)].decode()
    return Answer(status=status, body=body, content_type="text/xml", headers={"x-amzn-RequestId": request_id})
