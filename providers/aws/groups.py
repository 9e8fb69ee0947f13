"""Subnet groups and parameter groups as Python sees them, in RDS's own words; tests compare each with its CRD. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from providers.external.diff import Compare, compared
from providers.external.spec import Envelope

DESCRIPTION = "made by Fairlead"
"""RDS wants a description of every group; this one stands for none."""

Tags = Annotated[dict[str, str], compared(Compare.SUB_MAP)]


class DBSubnetGroupParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a DBSubnetGroup (CreateDBSubnetGroup); what is None is not managed."""

    db_subnet_group_description: str = DESCRIPTION
    subnet_ids: Annotated[tuple[str, ...], compared(Compare.WHOLE_SET)]
    tags: Tags | None = None


class DBSubnetGroupSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a DBSubnetGroup."""

    for_provider: DBSubnetGroupParameters


class DBParameterGroupParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a DBParameterGroup (CreateDBParameterGroup); what is None is not managed."""

    db_parameter_group_family: Annotated[str, compared(Compare.BIRTH_ONLY)]
    description: Annotated[str, compared(Compare.BIRTH_ONLY)] = DESCRIPTION
    parameters: Annotated[dict[str, str], compared(Compare.WHOLE_MAP)] | None = None
    tags: Tags | None = None


class DBParameterGroupSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a DBParameterGroup."""

    for_provider: DBParameterGroupParameters
