"""Access control lists as PostgreSQL keeps them (src/backend/utils/adt/acl.c)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from fairlead.simulation.postgres.refusals import DEPENDENT, INVALID_GRANT, refusal

PUBLIC: Final = 0
DATABASE_RIGHTS: Final = frozenset({"CREATE", "TEMPORARY", "CONNECT"})
SCHEMA_RIGHTS: Final = frozenset({"USAGE", "CREATE"})
Rights = frozenset[str]
NONE: Final[Rights] = frozenset()


@dataclass(frozen=True, slots=True)
class Item:
    """What a grantor gave to a grantee, both by oid: `rights`, and those that it may give on."""

    grantee: int
    grantor: int
    rights: Rights
    options: Rights = NONE


AccessList = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights that are given or taken; `only_option` takes no right, but that of giving it on."""

    grantee: int
    grantor: int
    rights: Rights
    with_option: bool = False
    only_option: bool = False


def of_new_database(owner: int) -> AccessList:
    """Return the list of a database that has none."""
    return (Item(PUBLIC, owner, frozenset({"TEMPORARY", "CONNECT"})), Item(owner, owner, DATABASE_RIGHTS))


def of_new_schema(owner: int) -> AccessList:
    """Return the list of a schema that has none."""
    return (Item(owner, owner, SCHEMA_RIGHTS),)


def granted(access: AccessList, grant: Grant) -> AccessList:
    """Return the list with a grant."""
    if grant.with_option and grant.grantee == PUBLIC:
        raise refusal(INVALID_GRANT, "grant options can only be granted to roles")
    options = grant.rights if grant.with_option else NONE
    for at, item in enumerate(access):
        if (item.grantee, item.grantor) == (grant.grantee, grant.grantor):
            more = replace(item, rights=item.rights | grant.rights, options=item.options | options)
            return (*access[:at], more, *access[at + 1 :])
    new = Item(grant.grantee, grant.grantor, grant.rights, options)
    return (*access, new) if new.rights else access


def revoked(access: AccessList, grant: Grant, owner: int) -> AccessList:
    """Return the list without what a grant gave. Raises where somebody has rights from it."""
    left = []
    for item in access:
        kept = item
        if (item.grantee, item.grantor) == (grant.grantee, grant.grantor):
            rights = item.rights if grant.only_option else item.rights - grant.rights
            kept = Item(item.grantee, item.grantor, rights, item.options - grant.rights)
        if kept.rights:
            left.append(kept)
    if grant.grantee != owner:
        lost = grant.rights - _options_of(left, grant.grantee)
        if any(item.grantor == grant.grantee and item.rights & lost for item in left):
            raise refusal(DEPENDENT, "dependent privileges exist")
    return tuple(left)


def _options_of(access: Iterable[Item], role: int) -> Rights:
    return NONE.union(*(item.options for item in access if item.grantee == role))


def of_new_owner(access: AccessList, old: int, new: int) -> AccessList:
    """Return the list of an object that was given to somebody; what becomes the same item is put together."""
    items: list[Item] = []
    for item in access:
        grantee, grantor = (new if role == old else role for role in (item.grantee, item.grantor))
        moved = replace(item, grantee=grantee, grantor=grantor)
        twin = next((at for at, other in enumerate(items) if (other.grantee, other.grantor) == (grantee, grantor)), -1)
        if twin < 0:
            items.append(moved)
        else:
            both = items[twin]
            items[twin] = replace(both, rights=both.rights | moved.rights, options=both.options | moved.options)
    return tuple(items)


def rights_in(access: AccessList, roles: Iterable[int]) -> Rights:
    """Return what these roles have by name or by PUBLIC."""
    ours = {*roles, PUBLIC}
    return NONE.union(*(item.rights for item in access if item.grantee in ours))


def options_in(access: AccessList, roles: Iterable[int]) -> Rights:
    """Return what these roles may give on."""
    ours = set(roles)
    return NONE.union(*(item.options for item in access if item.grantee in ours))
