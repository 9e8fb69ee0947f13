"""Labels, annotations, finalizers, field managers, API groups: each name of the contract, spelled once. Pure.

docs/names.md says who writes each and what it means.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from runtime.objects import Key, Resource

GROUP: Final = "fairlead.dev"
GROUP_SUFFIX: Final = ".fairlead.dev"
CLAIM_GROUPS: Final = frozenset({"database.fairlead.dev"})
"""Groups of the kinds of claims that are shipped."""

PREFIX: Final = "fairlead.dev/"

CLAIM_LABEL: Final = PREFIX + "claim"
CLOUD_LABEL: Final = PREFIX + "cloud"
STATEFUL_LABEL: Final = PREFIX + "stateful"
INSIDE_LABEL: Final = PREFIX + "inside"
PROMPT_LABEL: Final = PREFIX + "prompt"
EPHEMERAL_LABEL: Final = PREFIX + "ephemeral"
COMPOSABLE_LABEL: Final = PREFIX + "composable"
COMPOSABLE_FIELDS: Final = PREFIX + "composable-fields"
AGGREGATE_LABEL: Final = PREFIX + "aggregate-to-composer"

IDENTITY: Final = PREFIX + "identity"
COMPOSITION: Final = PREFIX + "composition"
KINDS: Final = PREFIX + "kinds"
CLAIM_NAME: Final = PREFIX + "claim-name"
RESOURCE: Final = PREFIX + "resource"
FOR_EACH_KEY: Final = PREFIX + "key"
STATEFUL: Final = PREFIX + "stateful"
DEPENDS_ON: Final = PREFIX + "depends-on"
CONNECTION_SECRET: Final = PREFIX + "connection-secret"
PAUSED: Final = PREFIX + "paused"
PAUSED_REASON: Final = PREFIX + "paused-reason"
RECONCILE_REQUESTED_AT: Final = PREFIX + "reconcile-requested-at"
FIND: Final = PREFIX + "find"
CONSENT: Final = PREFIX + "consent"
TEARDOWN: Final = PREFIX + "teardown"
ADOPT: Final = PREFIX + "adopt"
DESTROY_LIMIT_LIFTED: Final = PREFIX + "brake-released"
EXTERNAL_NAME: Final = PREFIX + "external-name"
EXTERNAL_NAMES: Final = PREFIX + "external-names"
INCARNATION: Final = PREFIX + "incarnation"
ACCOUNT: Final = PREFIX + "account"
EXTERNAL_REFERENCE: Final = (EXTERNAL_NAME, INCARNATION, ACCOUNT)
"""What leads from a managed resource to its object in the cloud."""

TEARDOWN_FINALIZER: Final = PREFIX + "teardown"
IN_USE_FINALIZER: Final = PREFIX + "in-use"

COMPOSER_MANAGER: Final = PREFIX + "composer"
CREDENTIALS_TYPE: Final = PREFIX + "credentials"
"""Type of a managed resource's credentials Secret."""
PASSWORD_TYPE: Final = PREFIX + "password"
"""Type of the Secret with a password that the composer made for another operator."""

COMPOSITIONS: Final = Resource(GROUP, "v1alpha1", "Composition", "compositions", namespaced=False)
REVISIONS: Final = Resource(GROUP, "v1alpha1", "CompositionRevision", "compositionrevisions", namespaced=False)

_CLAIM_MANAGER = re.compile(r"fairlead\.dev/[0-9a-f]{16}")


def is_managed(group: str) -> bool:
    """Return whether one of our providers serves a group."""
    return group.endswith(GROUP_SUFFIX) and group not in CLAIM_GROUPS


def is_own_group(group: str) -> bool:
    """Return whether a group is Fairlead's own: settings, claims or a provider's."""
    return group == GROUP or group.endswith(GROUP_SUFFIX)


def is_reserved(name: str) -> bool:
    """Return whether a label or an annotation is Fairlead's own, which no template sets."""
    return "fairlead.dev" in name and name.partition("/")[0].endswith("fairlead.dev")


def claim_manager(group: str, kind: str, claim: Key) -> str:
    """Return the field manager of a claim; it outlives a restore, which changes the uid."""
    seed = f"{group}\0{kind}\0{claim.namespace}\0{claim.name}".encode()
    return PREFIX + hashlib.sha256(seed).hexdigest()[:16]


def is_claim_manager(name: str) -> bool:
    """Return whether a field manager is one that some claim of ours has or had."""
    return _CLAIM_MANAGER.fullmatch(name) is not None
