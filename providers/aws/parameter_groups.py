"""DB parameter groups: the settings of the instances that use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec, endpoint_of, secrets_of
from providers.aws.dataless import CONFIGS, GROUP, POLICIES, Dataless, guarded
from providers.aws.errors import AlreadyThere, NotThere
from providers.aws.groups import DBParameterGroupParameters, DBParameterGroupSpec
from providers.aws.names import hash_in, name_of, owner_from, peoples_tags, tags_of
from providers.aws.parameters import as_rds_writes
from providers.cloud import Credential, Fence, Provider, Sweep, Target
from providers.managed import Absent, Change, Observed, Phase, Present, digest
from providers.plan import Policy
from providers.reading import Operation
from runtime.objects import Object, Resource

VERSION = 1
"""Raised whenever the same answer of RDS would be read differently."""

_PARAMETERS = "parameters."
# ModifyDBParameterGroup and ResetDBParameterGroup take so many in one request.
_AT_ONCE = 20

Parameters = DBParameterGroupParameters


class ParameterGroups(Dataless[Parameters]):
    """providers.cloud.Cloud for the parameter groups of one account and region."""

    noun = "parameter group"

    def __init__(self, account: AwsAccount) -> None:
        super().__init__(account)
        self._static: dict[str, frozenset[str]] = {}

    async def observe(self, target: Target[Parameters]) -> Present[Parameters] | Absent:
        """Read one group, what was set in it, and its tags, which no list of groups carries."""
        try:
            answer = await self._account.call(
                "describe_db_parameter_groups",
                f"look at parameter group {target.name}",
                DBParameterGroupName=target.name,
            )
            found = self._one(answer, "DBParameterGroups", target.name)
            tags = await self._tags_of(found["DBParameterGroupArn"], target.name)
            rows = await self._rows(target.name, Source="user")
        except NotThere:
            return Absent()
        return Present(observed(found, rows, tags, target.spec))

    async def observe_all(self) -> Sweep:
        """List all groups of the region; what is set in them is looked at with each group, by the resync."""
        found = await self._account.pages(
            "describe_db_parameter_groups", "list the parameter groups", "DBParameterGroups"
        )
        return Sweep({each["DBParameterGroupName"]: digest(each) for each in found}, complete=True)

    async def create(self, target: Target[Parameters], credential: Credential, fence: Fence) -> Operation | None:
        """Make the group with its tags and set what is to be set, before any instance uses it."""
        del credential
        spec = target.spec
        try:
            await self._account.call(
                "create_db_parameter_group",
                f"make parameter group {target.name}",
                fence=fence,
                DBParameterGroupName=target.name,
                DBParameterGroupFamily=spec.db_parameter_group_family,
                Description=spec.description,
                Tags=tags_of(target.owner, spec.tags),
            )
        except AlreadyThere as error:
            self._ours_or_raise(target, await self.observe(target), error)
        await self._set(target, dict(spec.parameters or {}), fence)
        return None

    async def update(
        self, target: Target[Parameters], observed: Observed[Parameters], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Set and reset parameters and tags."""
        await self._retag(observed, changes, fence)
        named = {
            change.path.removeprefix(_PARAMETERS): change.want
            for change in changes
            if change.path.startswith(_PARAMETERS)
        }
        await self._set(target, {name: str(want) for name, want in named.items() if want is not None}, fence)
        await self._reset(target, [name for name, want in named.items() if want is None], fence)
        return None

    async def delete(
        self,
        target: Target[Parameters],
        observed: Observed[Parameters] | None,
        policy: Policy,
        fence: Fence,
    ) -> Operation | None:
        """Delete the group; one that an instance still uses stays until it does not."""
        del target, policy
        if observed is None:
            return None
        try:
            await self._account.call(
                "delete_db_parameter_group",
                f"delete parameter group {observed.name}",
                fence=fence,
                DBParameterGroupName=observed.name,
            )
        except NotThere:
            return None
        return None

    async def _set(self, target: Target[Parameters], values: Mapping[str, str], fence: Fence) -> None:
        if not values:
            return
        static = await self._static_of(target)
        rows = [
            {
                "ParameterName": name,
                "ParameterValue": as_rds_writes(name, values[name]),
                "ApplyMethod": "pending-reboot" if name in static else "immediate",
            }
            for name in sorted(values)
        ]
        for some in _batches(rows):
            await self._account.call(
                "modify_db_parameter_group",
                f"set parameters of group {target.name}",
                fence=fence,
                DBParameterGroupName=target.name,
                Parameters=some,
            )

    async def _reset(self, target: Target[Parameters], names: Sequence[str], fence: Fence) -> None:
        if not names:
            return
        static = await self._static_of(target)
        rows = [
            {"ParameterName": name, "ApplyMethod": "pending-reboot" if name in static else "immediate"}
            for name in sorted(names)
        ]
        for some in _batches(rows):
            await self._account.call(
                "reset_db_parameter_group",
                f"reset parameters of group {target.name}",
                fence=fence,
                DBParameterGroupName=target.name,
                ResetAllParameters=False,
                Parameters=some,
            )

    async def _static_of(self, target: Target[Parameters]) -> frozenset[str]:
        """Return the parameters of the group's family that need a restart; they are the same in all its groups."""
        family = target.spec.db_parameter_group_family
        if family not in self._static:
            rows = await self._rows(target.name)
            self._static[family] = frozenset(row["ParameterName"] for row in rows if row.get("ApplyType") == "static")
        return self._static[family]

    async def _rows(self, name: str, **narrowed: str) -> list[dict[str, Any]]:
        return await self._account.pages(
            "describe_db_parameters",
            f"read the parameters of group {name}",
            "Parameters",
            DBParameterGroupName=name,
            **narrowed,
        )


def _batches(rows: list[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def observed(
    found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], tags: dict[str, str], wanted: Parameters
) -> Observed[Parameters]:
    """Project the answers into the model of the spec; a value that means what the spec says reads as it says."""
    values = {row["ParameterName"]: str(row["ParameterValue"]) for row in rows if row.get("ParameterValue") is not None}
    asked = wanted.parameters or {}
    same = {name for name, text in asked.items() if as_rds_writes(name, text) == values.get(name)}
    at_provider: Object = {
        "dbParameterGroupArn": found["DBParameterGroupArn"],
        "dbParameterGroupFamily": found["DBParameterGroupFamily"],
        "parameters": {name: values[name][:1024] for name in sorted(values)[:200]},
        "pendingReboot": sorted(row["ParameterName"] for row in rows if row.get("ApplyType") == "static")[:200],
    }
    return Observed(
        name=found["DBParameterGroupName"],
        incarnation=found["DBParameterGroupArn"],
        owner=owner_from(tags),
        phase=Phase.READY,
        spec=Parameters(
            db_parameter_group_family=found["DBParameterGroupFamily"],
            description=found.get("Description", ""),
            parameters={name: asked[name] if name in same else value for name, value in values.items()},
            tags=peoples_tags(tags),
        ),
        facts=tags,
        at_provider={name: value for name, value in at_provider.items() if value},
    )


KIND: Provider[Parameters, ProviderConfigSpec] = Provider(
    cloud="aws",
    resource=Resource(GROUP, "v1alpha1", "DBParameterGroup", "dbparametergroups"),
    config_resource=CONFIGS,
    spec_type=DBParameterGroupSpec,
    config_type=ProviderConfigSpec,
    translator=VERSION,
    policies=POLICIES,
    external_name=lambda _spec, identity, prefix: name_of(identity, prefix),
    hash_of=lambda _spec, name: hash_in(name),
    logins=lambda _target: ("", ""),
    guarded=guarded,
    classify=lambda change, _observed: change,
    login_versions=lambda _observed: {},
    secrets=secrets_of,
    connect=connect,
    endpoint_of=endpoint_of,
    view=ParameterGroups,
    stateful=False,
)
