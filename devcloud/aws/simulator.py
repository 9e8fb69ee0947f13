"""A request from its signature to its answer: who calls, whether they may, which action, what it says.

State lives in `regions`, one for each account and region; what tests steer is in `behaviour`, `faults` and `clock`.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl

import msgspec
from botocore.model import OperationModel

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
from devcloud.aws.api.permissions import asks
from devcloud.aws.api.views import InstanceXml
from devcloud.aws.api.wire import Tree
from devcloud.aws.audit import Audit, Entry, identifier_of, mutates, without_secrets
from devcloud.aws.behaviour import Behaviour
from devcloud.aws.clock import Clock
from devcloud.aws.faults import Faults, Limiter
from devcloud.aws.iam import signatures
from devcloud.aws.iam.policies import refuse_denied
from devcloud.aws.iam.principals import Key, Principals
from devcloud.aws.iam.signatures import Request
from devcloud.aws.jobs import Jobs
from devcloud.aws.refusals import Refusal
from devcloud.aws.region import Region

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
    def identifier(self) -> str:
        """Which resource it concerns."""
        return identifier_of(self.parameters)


class Simulator:
    """RDS and STS of every account and region.

    Attributes:
        regions: By account and name.
        behaviour: What tests choose of the service's conduct.
        faults: What goes wrong next.
        audit: What was called.
        principals: Who can call.
        jobs: The work on the databases.
        changes: How often a call may have changed something.
    """

    def __init__(self, clock: Clock, principals: Principals, jobs: Jobs) -> None:
        self.clock = clock
        self.principals = principals
        self.jobs = jobs
        self.behaviour = Behaviour()
        self.faults = Faults()
        self.audit = Audit()
        self.regions: dict[tuple[str, str], Region] = {}
        self.changes = 0
        self._xml = InstanceXml()
        self._limiter = Limiter()
        self._robot_at = clock.now()

    def region(self, account: str, name: str) -> Region:
        """Return the state of an account in a region."""
        key = (account, name)
        if key not in self.regions:
            self.regions[key] = Region(account, name, self.clock, self.jobs, self._xml)
        return self.regions[key]

    def reset(self) -> None:
        """Drop all resources, faults and conduct; keys and roles stay."""
        self.regions.clear()
        self.faults = Faults()
        self.behaviour = Behaviour()
        self.audit.clear()
        self._limiter = Limiter()

    def tick(self) -> None:
        """Let happen whose time has come."""
        for region in self.regions.values():
            region.settle()
        robot = self.behaviour.tag_robot
        if robot is not None and (self.clock.now() - self._robot_at).total_seconds() >= robot.every_s:
            self._robot_at = self.clock.now()
            for region in self.regions.values():
                _strip(region, robot.strip)

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
            request_id=str(uuid.uuid4()),
            model=model,
            parameters=wire.parse(model, fields),
            caller=caller,
            region=region,
        )

    def _authenticated(self, request: Request, model: OperationModel) -> tuple[Key, str]:
        signature = signatures.signature_of(request)
        token = request.headers.get("x-amz-security-token")
        caller = self.principals.caller(signature.access_key_id, token, self.clock.now())
        signatures.refuse_signature(request, signature, caller.secret_access_key, datetime.now(UTC))
        service = model.service_model.service_name
        if signature.service != service:
            raise Refusal("SignatureDoesNotMatch", f"Credential should be scoped to correct service: '{service}'.")
        return caller, signature.region

    def perform(self, admitted: Admitted) -> bytes:
        """Carry a request out and return the body of the answer.

        Raises:
            Refusal: The service says no.
        """
        name, caller = admitted.model.name, admitted.caller
        self.changes += not name.startswith(("Describe", "List"))
        if admitted.model.service_model.service_name == "sts" or caller is None:
            call = sts.StsCall(self.principals, caller, admitted.parameters, self.clock.now())
            return wire.answer(admitted.model, sts.answer(name, call), admitted.request_id)
        self._limiter.refuse_excess(self.behaviour.throttle, (caller.account, admitted.region), mutating=mutates(name))
        region = self.region(caller.account, admitted.region)
        region.settle()
        if caller.policy is not None:
            for ask in asks(region, name, admitted.parameters):
                refuse_denied(caller.policy, ask, caller.arn)
        action = ACTIONS.get(name)
        if action is None:
            raise Refusal("InvalidAction", f"The action {name} is not simulated.")
        content = action(Call(region, admitted.parameters, self.behaviour, self._xml))
        return wire.answer(admitted.model, content, admitted.request_id)

    def refused(self, error: Refusal, admitted: Admitted | None) -> tuple[int, bytes]:
        """Return the HTTP status and the body of a refusal."""
        if admitted is None:
            return wire.refusal(error, str(uuid.uuid4()), _RDS_NAMESPACE)
        namespace = str(admitted.model.service_model.metadata["xmlNamespace"])
        return wire.refusal(error, admitted.request_id, namespace)

    def record(self, admitted: Admitted, outcome: str) -> None:
        """Write a call down in the audit log."""
        caller = admitted.caller
        self.audit.add(
            Entry(
                at=self.clock.now(),
                account=caller.account if caller else "",
                region=admitted.region,
                principal=caller.arn if caller else "",
                access_key_id=caller.access_key_id if caller else "",
                action=admitted.model.name,
                identifier=admitted.identifier,
                params=without_secrets(admitted.parameters),
                request_id=admitted.request_id,
                outcome=outcome,
                mutating=mutates(admitted.model.name),
            )
        )


def _strip(region: Region, patterns: tuple[str, ...]) -> None:
    arns = [record.shown.db_instance_arn for record in region.instances.values()]
    arns += [snapshot.db_snapshot_arn for snapshot in region.snapshots.values()]
    for arn in arns:
        present, give = tagging.tags_by_arn(region, arn)
        kept = tuple(tag for tag in present if not any(fnmatchcase(tag.key, pattern) for pattern in patterns))
        if kept != present:
            give(kept)


def replaced(behaviour: Behaviour, changes: Tree) -> Behaviour:
    """Return the conduct with some of it chosen anew.

    Raises:
        msgspec.ValidationError: It is none.
    """
    return msgspec.convert({**msgspec.to_builtins(behaviour), **changes}, Behaviour)
