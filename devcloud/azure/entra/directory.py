"""A tenant of Microsoft Entra and its subscriptions: applications, managed identities, roles and their assignments."""

import uuid
from fnmatch import fnmatchcase

import msgspec

TENANT = "7f3c1d52-6a0b-4a58-9d8e-0c4f5b1e2a90"
SUBSCRIPTION = "3b9d6f14-2c57-4e0a-8f61-d7a2c95e4b38"
CLIENT_ID = "c51f0f0a-94de-4d3a-b1c5-3f5f2e8a6d17"
CLIENT_SECRET = "devcloud-secret-of-nobody-0000000000000000"  # noqa: S105 - opens a simulation alone


class Federation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tokens stand for an application: a cluster's issuer and the subject of a service account."""

    issuer: str
    subject: str
    audience: str = "api://AzureADTokenExchange"


class Principal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An application, or a managed identity of a machine.

    Attributes:
        client_id: By which it logs in.
        object_id: By which roles are assigned to it.
        tenant: Its tenant.
        secrets: Its client secrets.
        federations: Whose tokens stand for it.
        is_managed: Whether the metadata service gives out its tokens.
    """

    client_id: str
    object_id: str
    tenant: str = TENANT
    secrets: tuple[str, ...] = ()
    federations: tuple[Federation, ...] = ()
    is_managed: bool = False

    def __repr__(self) -> str:
        return f"Principal({self.client_id})"


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A role definition as Azure writes it: `actions` with patterns, less `notActions`."""

    name: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        """Return whether it allows an action, in any letter case."""
        name = action.lower()
        return _matches(name, self.actions) and not _matches(name, self.not_actions)


class Assignment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A role of a principal, at a scope and below."""

    object_id: str
    scope: str
    role: Role


OWNER = Role(name="Owner", actions=("*",))
CONTRIBUTOR = Role(
    name="Contributor",
    actions=("*",),
    not_actions=("Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"),
)


class Directory:
    """Who there is, and what they may.

    Attributes:
        tenants: Their ids.
        subscriptions: The tenant of each, by id.
        principals: By client id.
        assignments: All of them.
        changes: How often one of them changed.
    """

    def __init__(self) -> None:
        self.tenants: set[str] = {TENANT}
        self.subscriptions: dict[str, str] = {SUBSCRIPTION: TENANT}
        self.principals: dict[str, Principal] = {}
        self.assignments: list[Assignment] = []
        self.changes = 0

    def add(self, principal: Principal) -> None:
        """Let somebody be, in place of who had the client id."""
        self.changes += 1
        self.tenants.add(principal.tenant)
        self.principals[principal.client_id] = principal

    def run_as(self, client_id: str) -> None:
        """Have the metadata service give out the tokens of one of them alone; of nobody without a client id."""
        self.changes += 1
        for principal in self.principals.values():
            changed = msgspec.structs.replace(principal, is_managed=principal.client_id == client_id)
            self.principals[principal.client_id] = changed

    def assign(self, assignment: Assignment) -> None:
        """Give somebody a role at a scope."""
        self.changes += 1
        self.assignments.append(assignment)

    def revoke(self, object_id: str) -> None:
        """Take every role from somebody."""
        self.changes += 1
        self.assignments = [entry for entry in self.assignments if entry.object_id != object_id]

    def allows(self, object_id: str, action: str, scope: str) -> bool:
        """Return whether somebody may do something at a scope: by a role there, or at a scope above."""
        place = f"{scope.lower()}/"
        return any(
            entry.role.allows(action)
            for entry in self.assignments
            if entry.object_id == object_id and place.startswith(f"{entry.scope.lower().rstrip('/')}/")
        )


def default_directory(*, client_id: str = CLIENT_ID, secret: str = CLIENT_SECRET) -> Directory:
    """Return a tenant with one application, which is Owner of the one subscription.

    No machine runs as it before a test says so: whoever reaches the port would get its tokens.
    """
    directory = Directory()
    object_id = str(uuid.uuid5(uuid.NAMESPACE_DNS, client_id))
    directory.add(Principal(client_id=client_id, object_id=object_id, secrets=(secret,)))
    directory.assign(Assignment(object_id=object_id, scope=f"/subscriptions/{SUBSCRIPTION}", role=OWNER))
    return directory


def _matches(action: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(action, pattern.lower()) for pattern in patterns)
