"""Publishes the connection of a claim: from a child's status to the connection Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from apis.identity import connection_secret_name
from composer.causes import Cause, cause
from composer.claim.compose import Prepared
from composer.claim.deletion import effective_policy
from composer.claim.outcomes import Connected, Note, with_broken
from composer.claim.readiness import live_of
from composer.claim.report import Findings
from composer.claim.snapshot import Snapshot
from composer.connection.passwords import KeptPasswords, PasswordKeeper, recorded, wanted_passwords
from composer.connection.publisher import Publisher
from composer.connection.secret import (
    Origin,
    SecretTarget,
    Wanted,
    misnamed,
    missing_keys,
    of_contract,
    of_foreign,
    published,
    wanted,
)
from composer.render.passwords import secret_names
from composer.render.render import Rendered
from runtime import secret_rights
from runtime.errors import Forbidden
from runtime.objects import Key, Object, is_name


async def connect(publisher: Publisher, snapshot: Snapshot, prepared: Prepared) -> Connected:
    """Publish the connection Secret where the child has published its connection. Raises ApiError.

    Where it cannot be published in this pass, the Secret that the claim names is looked for.
    """
    connected = await _connected(publisher, snapshot, prepared)
    lost = None if connected.is_seen else await lost_secret(publisher, snapshot)
    if lost is None:
        return connected
    return replace(connected, causes=tuple(dict.fromkeys((*connected.causes, lost))), is_lost=True)


async def lost_secret(publisher: Publisher, snapshot: Snapshot) -> Cause | None:
    """Return why the connection Secret that a claim names cannot be used; None where it can, or may not be read."""
    name = (snapshot.status.get("binding") or {}).get("name", "")
    if not is_name(name):
        return None
    try:
        return await publisher.look(
            Key(snapshot.key.namespace, name), snapshot.identity.uid, is_requested=snapshot.is_requested
        )
    except Forbidden:
        return None


async def with_unusable(publisher: Publisher, snapshot: Snapshot, findings: Findings) -> Findings:
    """Return the findings of a pass that stopped early with the children and the Secret that are unusable."""
    findings = with_broken(snapshot, findings)
    lost = await lost_secret(publisher, snapshot) if findings.rendered is None else None
    return replace(findings, causes=(*findings.causes, lost), published=False) if lost else findings


async def _connected(  # noqa: PLR0911 - one return for each thing that may be missing
    publisher: Publisher, snapshot: Snapshot, prepared: Prepared
) -> Connected:
    """Publish the connection Secret; return what is published, with the cause where it is not complete."""
    name = (snapshot.status.get("binding") or {}).get("name", "")
    bound = Connected(name, str(snapshot.status.get("connectionHash") or "") if name else "")
    rendered, declared = prepared.rendered, prepared.rendered.connection
    resource = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    source = next((child for child in rendered.children if child.resource == resource), None)
    live = live_of(snapshot, source.place) if source else None
    if source is None and resource and not any(waiting.resource == resource for waiting in rendered.waiting):
        text = f"resource {resource!r}, which the connection comes from, is not composed for this claim"
        return Connected(bound.secret, bound.hash, causes=(cause("ConnectionIncomplete", text),))
    if source is None or live is None:
        return bound
    origin = _origin(declared, live)
    if isinstance(origin, Cause):
        return Connected(bound.secret, bound.hash, causes=(origin,) if source.ready else ())
    if "secretRef" in declared and not source.ready:
        # Nothing but its readiness says that the Secret of a foreign kind is whole.
        return bound
    if not bound.secret and not (all(child.ready for child in rendered.children) and not rendered.waiting):
        # The first Secret that an application sees must work: what else it needs is there, too.
        return bound
    key = Key(snapshot.key.namespace, connection_secret_name(snapshot.key.name, snapshot.spec.connection_secret_name))
    owned = effective_policy(snapshot, prepared.spec.deletion_policies) != "Orphan"
    wrong = misnamed(declared, origin, key.name)
    if wrong:
        return Connected(bound.secret, bound.hash, causes=(wrong,))
    want = wanted(snapshot.claim, declared, live, origin, SecretTarget(key, snapshot.identity.uid, owned))
    missing = missing_keys(want)
    if missing:
        why = cause("ConnectionIncomplete", f"the connection has no {', '.join(missing)} yet")
        return Connected(bound.secret, bound.hash, causes=(why,))
    try:
        return await _publish(publisher, snapshot, want, bound)
    except Forbidden as error:
        return Connected(bound.secret, bound.hash, causes=(denied(snapshot, error),), is_denied=True)


async def _publish(publisher: Publisher, snapshot: Snapshot, want: Wanted, bound: Connected) -> Connected:
    """Write the Secret, then delete the one of a former name, which nothing would keep up to date."""
    known_hash = bound.hash if bound.secret == want.key.name else ""
    publication = await publisher.publish(
        want, known_hash=known_hash, is_requested=snapshot.is_requested, was_not_owned=_was_not_owned(snapshot)
    )
    if publication.problem:
        return Connected(bound.secret, bound.hash, causes=(publication.problem,), again=publication.again)
    # The first one is no event of its own: with it the claim becomes Ready.
    note = Note("ConnectionPublished", f"Secret {want.key.name} holds the credentials")
    notes = (note,) if publication.changed and bound.secret else ()
    if bound.secret != want.key.name and is_name(bound.secret):
        former = Key(want.key.namespace, bound.secret)
        if await publisher.disown(former, snapshot.identity.uid, keep=False, collected_with=""):
            notes = (*notes, _former_secret_note(bound.secret, want.key.name))
    return Connected(want.key.name, want.hash, notes=notes, again=publication.again, is_seen=True)


async def keep_passwords(keeper: PasswordKeeper, prepared: Prepared) -> KeptPasswords:
    """Make the passwords that the Composition asks for, and look for those that were made. Raises ApiError."""
    snapshot, composition = prepared.snapshot, prepared.revision.composition
    records = recorded(snapshot.status)
    if not composition.get("passwords"):
        return KeptPasswords(records)
    names = secret_names(composition, snapshot.identity, snapshot.claim)
    children = (child.live for child in snapshot.children if child.live is not None)
    wanted = wanted_passwords(names, records, children, (snapshot.key, snapshot.identity.uid))
    try:
        return await keeper.keep(wanted, records, is_requested=snapshot.is_requested)
    except Forbidden as error:
        return KeptPasswords(records, (denied(snapshot, error),), is_denied=True)


async def drop_former(
    keeper: PasswordKeeper, snapshot: Snapshot, kept: KeptPasswords, connected: Connected, rendered: Rendered
) -> KeptPasswords:
    """Delete the passwords before the last rotation, once all is ready with the new ones. Raises ApiError."""
    is_rotated = connected.is_seen and not rendered.waiting and all(child.ready for child in rendered.children)
    if kept.is_new or kept.causes or not is_rotated or not any(record.former for record in kept.records):
        return kept
    for record in kept.records:
        if record.former:
            await keeper.drop(Key(snapshot.key.namespace, record.former), snapshot.identity.uid)
    return replace(kept, records=tuple(msgspec.structs.replace(record, former="") for record in kept.records))


def _former_secret_note(former: str, present: str) -> Note:
    text = (
        f"Secret {former} is deleted, since Secret {present} holds the credentials now; what still names {former} finds"
        " none at its next start"
    )
    return Note("ConnectionMoved", text, is_warning=True)


def denied(snapshot: Snapshot, error: Forbidden) -> Cause:
    """Return the cause of a connection Secret that we may not read or write, with what to do about it."""
    namespace = snapshot.key.namespace
    remedy = (
        f"kubectl apply -n {namespace} -k deploy/kustomize/claim-namespace (on the platform of `fairlead up`: fairlead"
        f" prepare {namespace})"
    )
    return cause(secret_rights.REASON, secret_rights.refusal("the composer", namespace, error, remedy=remedy))


def _origin(declared: Mapping[str, Any], live: Object) -> Origin | Cause:
    if "secretRef" in declared:
        return of_foreign(declared)
    published_connection = published(live)
    return published_connection if isinstance(published_connection, Cause) else of_contract(published_connection)


def _was_not_owned(snapshot: Snapshot) -> bool:
    return any(condition.get("reason") == "SecretNotOwned" for condition in snapshot.status.get("conditions") or ())
