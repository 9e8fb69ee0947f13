"""What a server must be before it is used: a primary of a safe version, whose login has what it needs and no more.

Impure: it speaks SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from providers.external.authority import authority_in, certificates
from providers.external.sql.session import Session
from providers.onprem import catalog
from providers.onprem.models import ProviderConfigSpec
from runtime.errors import Terminal, Transient

OLDEST_SAFE_MAJOR = 16  # before, CREATEROLE may grant itself nearly everything


class About(msgspec.Struct, frozen=True):
    """What the server says about itself and about our login."""

    account: str
    number: int
    version: str
    recovery: bool
    admin: str
    superuser: bool
    createdb: bool
    createrole: bool
    secrets: bool
    ownership: bool
    exposed: tuple[str, ...] | None = None

    @property
    def major(self) -> int:
        """The major version."""
        return self.number // 10_000


async def server_of(session: Session) -> About:
    """Ask the server about itself and our login."""
    return msgspec.convert((await session.rows(catalog.SERVER))[0][0], About)


def refuse_server(about: About, config: ProviderConfigSpec) -> None:
    """Raise Failure unless server and login are what they may be."""
    where = f"server {config.host}:{config.port}"
    if about.recovery:
        raise Transient(f"{where} is in recovery and takes no change")
    if not config.allow_superuser and about.superuser:
        raise Terminal("CredentialsForbidden", f"{about.admin} on {where} is a superuser; use a login with CREATEDB and"
                       " CREATEROLE alone, or set allowSuperuser")  # fmt: skip
    if not config.allow_superuser and about.major < OLDEST_SAFE_MAJOR:
        raise Terminal("UnsupportedVersion", f"{where} runs PostgreSQL {about.version}; before {OLDEST_SAFE_MAJOR}"
                       " CREATEROLE is as good as superuser: upgrade, or set allowSuperuser")  # fmt: skip
    lacking = [word for word, there in (("CREATEDB", about.createdb), ("CREATEROLE", about.createrole)) if not there]
    if lacking and not about.superuser:
        raise Terminal("AccessDenied", f"{about.admin} on {where} lacks {' and '.join(lacking)}")
    if not about.secrets:
        raise Terminal("AccessDenied", f"{about.admin} may not read pg_authid; as superuser, in database"
                       f" {config.database}: GRANT SELECT (rolname, xmin) ON pg_authid TO {about.admin}")  # fmt: skip


def authority_of(config: ProviderConfigSpec, secret_data: Mapping[str, Mapping[str, str]]) -> str:
    """Return the PEM that the server's certificate is verified with; refused when it holds no certificate."""
    remedy = "put the certificates of the server's authority there"
    if config.ca_secret_ref is not None:
        return authority_in(secret_data, config.ca_secret_ref, remedy=remedy)
    return certificates(config.ca_bundle or "", "caBundle", remedy=remedy)
