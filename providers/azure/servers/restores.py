"""What a new server begins with: whose it is, and whether this namespace may have it. Impure: it calls the SDK.

A server holds somebody's data. One that carries our tags of this very namespace, by its uid, is restored from; any
other one where `allowAdoption` is set. Of one that is gone nobody can say whose it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.azure.arm import AzureAccount
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import server_of_id
from providers.azure.servers.server_list import owner_of
from providers.azure.servers.translate import is_restored
from providers.external.client import Target
from runtime.conditions import instant
from runtime.errors import Blocked, Terminal

Where = Target[FlexibleServerParameters]


async def source_of(account: AzureAccount, target: Where) -> str:
    """Return the id of the server to restore from, empty for a server that begins with nothing.

    Raises:
        Blocked: `ReferenceNotFound`: there is no such server.
        Terminal: `AdoptionRefused`: it is another namespace's, or nobody's. `InvalidValue`: its administrator has
            another name, or it keeps nothing of that time.
    """
    spec = target.spec
    if not is_restored(spec):
        return ""
    if spec.source_claim is not None:
        return await _of_claim(account, target, spec.source_claim)
    source = spec.source_server_resource_id or ""
    if account.config.allow_adoption:
        return source
    known = server_of_id(source)
    if known is None or known[0] != account.config.subscription_id.lower():
        text = f"{source or 'nothing'} is no server of this subscription; name one, or ask for allowAdoption"
        raise Terminal("AdoptionRefused", text)
    answer = await account.send("GET", account.server(known[1]), f"look at server {known[1]}")
    if not _may_have(target, answer.body):
        text = f"server {known[1]} is not of this namespace; to restore from it ask for allowAdoption"
        raise Terminal("AdoptionRefused", text)
    _refuse_unfit(spec, answer.body)
    return source


async def _of_claim(account: AzureAccount, target: Where, claim: str) -> str:
    """Return the id of the server of a claim of this namespace."""
    async for answer in account.pages(account.servers, f"look for the server of claim {claim}"):
        owner = owner_of(answer)
        if owner is not None and owner.name == claim[:63] and _may_have(target, answer):
            _refuse_unfit(target.spec, answer)
            return str(answer.get("id", ""))
    raise Blocked("ReferenceNotFound", f"there is no server of claim {claim} of this namespace to restore from")


def _refuse_unfit(spec: FlexibleServerParameters, answer: Mapping[str, Any]) -> None:
    """Refuse a restore that would come to nothing that is asked for, before a server is made.

    A restored server keeps the administrator of its source; of what was before `backup.earliestRestoreDate` nothing is
    kept ("Backup and restore", and the answers of Servers - Get).
    """
    properties, name = answer.get("properties") or {}, str(answer.get("name", ""))
    kept = properties.get("administratorLogin")
    if kept is not None and kept != spec.administrator_login:
        text = f"the administrator of server {name} is {kept}, and a restore keeps it, but administratorLogin is"
        raise Terminal("InvalidValue", f"{text} {spec.administrator_login}; name {kept} (in a claim: username)")
    earliest = str((properties.get("backup") or {}).get("earliestRestoreDate") or "")
    wanted, first = instant(spec.point_in_time_utc or ""), instant(earliest)
    if wanted is not None and first is not None and wanted < first:
        text = f"server {name} keeps nothing from before {earliest}; restore to a later time than"
        raise Terminal("InvalidValue", f"{text} {spec.point_in_time_utc}")


def _may_have(target: Where, answer: Mapping[str, Any]) -> bool:
    owner = owner_of(answer)
    if owner is None or owner.installation != target.owner.installation:
        return False
    return owner.is_of(target.owner.namespace, target.owner.namespace_uid)
