"""Which role of a PostgreSQL server is a member of which: the query and its answer. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

MEMBERSHIPS: Final = """\
'memberships', (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
        'role', g.rolname, 'member', u.rolname, 'admin', m.admin_option, 'inherit', m.inherit_option,
        'set', m.set_option, 'grantor', pg_catalog.pg_get_userbyid(m.grantor))
            ORDER BY g.rolname, u.rolname, m.grantor), '[]')
        FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
        JOIN pg_catalog.pg_roles u ON u.oid = m.member
        WHERE g.rolname = ANY(%(roles)s) OR u.rolname = ANY(%(roles)s))"""
"""A field of a JSON object: `memberships` of the roles in `%(roles)s`, on either side, as `Membership`s."""


class Membership(msgspec.Struct, frozen=True):
    """`member` belongs to `role`; the grant is `grantor`'s."""

    role: str
    member: str
    admin: bool
    inherit: bool
    set: bool
    grantor: str
