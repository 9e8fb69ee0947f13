"""The step of a pass that publishes the connection: from a child's status to the claim's Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from apis.identity import connection_secret_name
from composer.causes import Cause, cause
from composer.claim.compose import Prepared
from composer.claim.deletion import effective_policy
from composer.claim.outcomes import Note, live_of, with_broken
from composer.claim.report import Findings
from composer.claim.snapshot import View
from composer.connection.publisher import Publisher
from composer.connection.secret import (
    Origin,
    Secretly,
    Wanted,
    lacking,
    misnamed,
    of_contract,
    of_foreign,
    published,
    wanted,
)
from runtime import secret_rights
from runtime.errors import Forbidden
from runtime.objects import Key, Object, is_name
from runtime.results import Result


@dataclass(frozen=True, slots=True)
class Connected:
    """The Secret and what it was made from, both empty until it was complete once; what stands in the way.

    `is_denied`: the namespace does not let us use its Secrets. `again`: when the Secret is to be looked at next; None
    where that is left to the resync. `is_seen`: it is as it should be; `is_lost`: the one that the claim names is gone,
    or not the claim's any more.
    """

    secret: str
    hash: str
    causes: tuple[Cause, ...] = ()
    notes: tuple[Note, ...] = ()
    is_denied: bool = False
    again: timedelta | None = None
    is_seen: bool = False
    is_lost: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether the claim has a connection Secret that is not known to be lost."""
        return bool(self.secret) and not self.is_lost

    def next_look(self, result: Result) -> Result:
        """Return when to make the next pass: for the Secret, or for what else asked for one, whichever is sooner."""
        asked = [after for after in (result.requeue_after, self.again) if after is not None]
        return Result(min(asked, default=None))


async def connect(publisher: Publisher, view: View, prepared: Prepared) -> Connected:
    """Publish the connection Secret where the child has published its own. Raises ApiError.

    Where it cannot be published in this pass, it is asked whether the one that the claim names is there.
    """
    connected = await _connected(publisher, view, prepared)
    lost = None if connected.is_seen else await lost_secret(publisher, view)
    if lost is None:
        return connected
    return replace(connected, causes=tuple(dict.fromkeys((*connected.causes, lost))), is_lost=True)


async def lost_secret(publisher: Publisher, view: View) -> Cause | None:
    """Return why the connection Secret that a claim names cannot be used; None where it can, or nobody may look."""
    name = (view.status.get("binding") or {}).get("name", "")
    if not is_name(name):
        return None
    try:
        return await publisher.look(Key(view.key.namespace, name), view.identity.uid, asked=view.is_asked)
    except Forbidden:
        return None


async def with_unusable(publisher: Publisher, view: View, found: Findings) -> Findings:
    """Add what is unusable to the findings of a pass that could not see to it: children, and the connection Secret."""
    found = with_broken(view, found)
    lost = await lost_secret(publisher, view) if found.rendered is None else None
    return replace(found, causes=(*found.causes, lost), published=False) if lost else found


async def _connected(  # noqa: PLR0911 - one return for each thing that may be missing
    publisher: Publisher, view: View, prepared: Prepared
) -> Connected:
    name = (view.status.get("binding") or {}).get("name", "")
    bound = Connected(name, str(view.status.get("connectionHash") or "") if name else "")
    rendered, declared = prepared.rendered, prepared.rendered.connection
    resource = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    source = next((child for child in rendered.children if child.resource == resource), None)
    live = live_of(view, source.place) if source else None
    if source is None and resource and not any(each.resource == resource for each in rendered.waiting):
        text = f"resource {resource!r}, which the connection comes from, is not composed for this claim"
        return Connected(bound.secret, bound.hash, causes=(cause("ConnectionIncomplete", text),))
    if source is None or live is None:
        return bound
    found = _origin(declared, live)
    if isinstance(found, Cause):
        return Connected(bound.secret, bound.hash, causes=(found,) if source.ready else ())
    if "secretRef" in declared and not source.ready:
        # Nothing but its readiness says that the Secret of a foreign kind is whole.
        return bound
    if not bound.secret and not (all(child.ready for child in rendered.children) and not rendered.waiting):
        # The first Secret that an application sees must work: what else it needs is there, too.
        return bound
    key = Key(view.key.namespace, connection_secret_name(view.key.name, view.spec.connection_secret_name))
    owned = effective_policy(view, prepared.spec.deletion_policies) != "Orphan"
    wrong = misnamed(declared, found, key.name)
    if wrong:
        return Connected(bound.secret, bound.hash, causes=(wrong,))
    want = wanted(view.claim, declared, live, found, Secretly(key, view.identity.uid, owned))
    missing = lacking(want)
    if missing:
        why = cause("ConnectionIncomplete", f"the connection has no {', '.join(missing)} yet")
        return Connected(bound.secret, bound.hash, causes=(why,))
    try:
        return await _publish(publisher, view, want, bound)
    except Forbidden as error:
        return Connected(bound.secret, bound.hash, causes=(denied(view, error),), is_denied=True)


async def _publish(publisher: Publisher, view: View, want: Wanted, bound: Connected) -> Connected:
    """Write the Secret; the one of a former name goes once this one is there, since nothing would keep it true."""
    known_hash = bound.hash if bound.secret == want.key.name else ""
    publication = await publisher.publish(want, known_hash=known_hash, asked=view.is_asked, told=_is_told(view))
    if publication.problem:
        return Connected(bound.secret, bound.hash, causes=(publication.problem,), again=publication.again)
    note = Note("ConnectionPublished", f"Secret {want.key.name} holds the credentials")
    notes = (note,) if publication.changed else ()
    if bound.secret != want.key.name and is_name(bound.secret):
        former = Key(want.key.namespace, bound.secret)
        if await publisher.disown(former, view.identity.uid, keep=False, collected_with=""):
            notes = (*notes, _moved(bound.secret, want.key.name))
    return Connected(want.key.name, want.hash, notes=notes, again=publication.again, is_seen=True)


def _moved(former: str, present: str) -> Note:
    text = (
        f"Secret {former} is deleted, since Secret {present} holds the credentials now; what still names {former} finds"
        " none at its next start"
    )
    return Note("ConnectionMoved", text, is_warning=True)


def denied(view: View, error: Forbidden) -> Cause:
    """Return why the connection Secret cannot be seen to, and what to do about it."""
    namespace = view.key.namespace
    remedy = (
        f"kubectl apply -n {namespace} -k deploy/kustomize/claim-namespace (on the platform of `fairlead up`: fairlead"
        f" prepare {namespace})"
    )
    return cause(secret_rights.REASON, secret_rights.refusal("the composer", namespace, error, remedy=remedy))


def _origin(declared: Mapping[str, Any], live: Object) -> Origin | Cause:
    if "secretRef" in declared:
        return of_foreign(declared)
    found = published(live)
    return found if isinstance(found, Cause) else of_contract(found)


def _is_told(view: View) -> bool:
    return any(each.get("reason") == "SecretNotOwned" for each in view.status.get("conditions") or ())
