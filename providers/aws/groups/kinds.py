"""DB subnet groups and DB parameter groups: in which subnets instances may be placed, and their settings.

Impure: it calls the SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from providers.aws.account import AwsAccount
from providers.aws.groups.dataless import Answer, Dataless, Tags, kind_of
from providers.aws.groups.parameters import as_rds_writes
from providers.aws.models import (
    DBParameterGroupParameters,
    DBParameterGroupSpec,
    DBSubnetGroupParameters,
    DBSubnetGroupSpec,
)
from providers.aws.tag_lists import specs_tags
from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential
from providers.external.observation import Change, Observed
from runtime.objects import Object

VERSION = 1
"""Raised whenever the same answer of RDS would be read differently."""

_PARAMETERS = "parameters"
# ModifyDBParameterGroup and ResetDBParameterGroup take so many in one request.
_AT_ONCE = 20

Subnets = DBSubnetGroupParameters
Parameters = DBParameterGroupParameters


class SubnetGroups(Dataless[Subnets]):
    """The clients for the subnet groups of one account and region."""

    noun = "subnet group"
    word = "DBSubnetGroup"
    call = "db_subnet_group"

    async def _projected(
        self, answer: Answer, tags: dict[str, str], target: Target[Subnets]
    ) -> Observed[Subnets, Tags]:
        del target
        subnets = sorted(answer.get("Subnets") or (), key=lambda subnet: str(subnet["SubnetIdentifier"]))
        spec = DBSubnetGroupParameters(
            db_subnet_group_description=answer.get("DBSubnetGroupDescription", ""),
            subnet_ids=tuple(subnet["SubnetIdentifier"] for subnet in subnets),
            tags=specs_tags(tags),
        )
        at_provider: Object = {
            "dbSubnetGroupArn": answer["DBSubnetGroupArn"],
            "vpcId": answer.get("VpcId", ""),
            "subnetGroupStatus": answer.get("SubnetGroupStatus", ""),
            "subnets": [
                {
                    "subnetIdentifier": subnet["SubnetIdentifier"],
                    "availabilityZone": (subnet.get("SubnetAvailabilityZone") or {}).get("Name", ""),
                    "subnetStatus": subnet.get("SubnetStatus", ""),
                }
                for subnet in subnets
            ],
        }
        return self._observed(answer, tags, spec, at_provider)

    async def create(self, target: Target[Subnets], credential: Credential, fence: Fence) -> Operation | None:
        """Make the group with its tags."""
        del credential
        spec = target.spec
        subnets = sorted(set(spec.subnet_ids))
        description = spec.db_subnet_group_description
        await self._create(target, fence, spec.tags, DBSubnetGroupDescription=description, SubnetIds=subnets)
        return None

    async def update(
        self,
        target: Target[Subnets],
        observed: Observed[Subnets, Tags],
        changes: tuple[Change, ...],
        fence: Fence,
    ) -> Operation | None:
        """Set description, subnets and tags; ModifyDBSubnetGroup takes the subnets as a whole, always."""
        await self._retag(observed, changes, fence)
        fields = {change.path[0] for change in changes}
        if fields & {"dbSubnetGroupDescription", "subnetIds"}:
            wanted = target.spec if "subnetIds" in fields else observed.spec
            description, subnets = target.spec.db_subnet_group_description, sorted(set(wanted.subnet_ids))
            await self._change("modify", observed.name, fence, DBSubnetGroupDescription=description, SubnetIds=subnets)
        return None


class ParameterGroups(Dataless[Parameters]):
    """The clients for the parameter groups of one account and region."""

    noun = "parameter group"
    word = "DBParameterGroup"
    call = "db_parameter_group"

    def __init__(self, account: AwsAccount) -> None:
        super().__init__(account)
        self._static: dict[str, frozenset[str]] = {}

    async def _projected(
        self, answer: Answer, tags: dict[str, str], target: Target[Parameters]
    ) -> Observed[Parameters, Tags]:
        """Read what was set in the group as well; a value that means what the spec says reads as it says."""
        rows = await self._rows(target.name, Source="user")
        values = {
            row["ParameterName"]: str(row["ParameterValue"]) for row in rows if row.get("ParameterValue") is not None
        }
        wanted = target.spec.parameters or {}
        same = {name for name, text in wanted.items() if as_rds_writes(name, text) == values.get(name)}
        spec = Parameters(
            db_parameter_group_family=answer["DBParameterGroupFamily"],
            description=answer.get("Description", ""),
            parameters={name: wanted[name] if name in same else value for name, value in values.items()},
            tags=specs_tags(tags),
        )
        at_provider: Object = {
            "dbParameterGroupArn": answer["DBParameterGroupArn"],
            "dbParameterGroupFamily": answer["DBParameterGroupFamily"],
            "parameters": {name: values[name][:1024] for name in sorted(values)[:200]},
            "pendingReboot": sorted(row["ParameterName"] for row in rows if row.get("ApplyType") == "static")[:200],
        }
        return self._observed(answer, tags, spec, at_provider)

    async def create(self, target: Target[Parameters], credential: Credential, fence: Fence) -> Operation | None:
        """Make the group with its tags and set what is to be set, before any instance uses it."""
        del credential
        spec = target.spec
        family = spec.db_parameter_group_family
        await self._create(target, fence, spec.tags, DBParameterGroupFamily=family, Description=spec.description)
        await self._set(target, spec.parameters or {}, fence)
        return None

    async def update(
        self,
        target: Target[Parameters],
        observed: Observed[Parameters, Tags],
        changes: tuple[Change, ...],
        fence: Fence,
    ) -> Operation | None:
        """Set and reset parameters and tags."""
        await self._retag(observed, changes, fence)
        named = {change.path[1]: change.want for change in changes if change.path[0] == _PARAMETERS}
        await self._set(target, {name: str(want) for name, want in named.items() if want is not None}, fence)
        await self._reset(target, [name for name, want in named.items() if want is None], fence)
        return None

    async def _set(self, target: Target[Parameters], values: Mapping[str, str], fence: Fence) -> None:
        rows = await self._applied(target, values)
        for row in rows:
            row["ParameterValue"] = as_rds_writes(row["ParameterName"], values[row["ParameterName"]])
        for batch in _batches(rows):
            await self._change("modify", target.name, fence, Parameters=batch)

    async def _reset(self, target: Target[Parameters], names: Iterable[str], fence: Fence) -> None:
        for batch in _batches(await self._applied(target, names)):
            await self._change("reset", target.name, fence, ResetAllParameters=False, Parameters=batch)

    async def _applied(self, target: Target[Parameters], names: Iterable[str]) -> list[dict[str, str]]:
        """Return a row for each parameter with when it takes effect; no family is asked about nothing."""
        wanted = sorted(names)
        static = await self._static_of(target) if wanted else frozenset()
        return [
            {"ParameterName": name, "ApplyMethod": "pending-reboot" if name in static else "immediate"}
            for name in wanted
        ]

    async def _static_of(self, target: Target[Parameters]) -> frozenset[str]:
        """Return the parameters of the group's family that need a restart; they are the same in all its groups."""
        family = target.spec.db_parameter_group_family
        if family not in self._static:
            rows = await self._rows(target.name)
            self._static[family] = frozenset(row["ParameterName"] for row in rows if row.get("ApplyType") == "static")
        return self._static[family]

    async def _rows(self, name: str, **narrowed: str) -> list[dict[str, Any]]:
        action = f"read the parameters of group {name}"
        answers = self._account.pages(
            "describe_db_parameters", action, "Parameters", DBParameterGroupName=name, **narrowed
        )
        return [row async for row in answers]


def _batches(rows: list[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


SUBNET_GROUPS = kind_of(("DBSubnetGroup", "dbsubnetgroups"), DBSubnetGroupSpec, SubnetGroups, projection=VERSION)
PARAMETER_GROUPS = kind_of(
    ("DBParameterGroup", "dbparametergroups"), DBParameterGroupSpec, ParameterGroups, projection=VERSION
)
