"""Publishes the connection of a claim: from a child's status to the connection Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    STRUCTURED,
    Origin,
    SecretTarget,
    Wanted,
    misnamed,
    missing_keys,
    of_contract,
    of_foreign,
    published,
    wanted,
    with_published,
)
from composer.models import CompositionSpec
from composer.render.operators.table import is_current
from composer.render.passwords import secret_names
from composer.render.render import Rendered
from runtime import secret_rights
from runtime.errors import Forbidden
from runtime.objects import Key, Object, is_name, status_of, version_of


@dataclass(frozen=True, slots=True)
class Followed:
    """A published Secret of a claim that cannot be composed now: why it cannot be used, and what happened to it."""

    lost: Cause | None = None
    notes: tuple[Note, ...] = ()


async def connect(publisher: Publisher, snapshot: Snapshot, prepared: Prepared) -> Connected:
    """Publish the connection Secret where the child has published its connection. Raises ApiError.

    Where it cannot be published in this pass, the Secret that the claim names is looked for.
    """
    connected = await _connected(publisher, snapshot, prepared)
    if connected.is_seen:
        return connected
    # Of another operator's object the Composition may say when its Secret is whole, and was asked just now.
    if connected.causes or "from" not in prepared.spec.connection:
        followed = Followed(await lost_secret(publisher, snapshot))
    else:
        followed = await follow(publisher, snapshot, prepared.spec)
    lost = () if followed.lost is None else (followed.lost,)
    causes = tuple(dict.fromkeys((*connected.causes, *lost)))
    return replace(connected, causes=causes, notes=(*connected.notes, *followed.notes), is_lost=bool(lost))


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


async def follow(publisher: Publisher, snapshot: Snapshot, spec: CompositionSpec | None) -> Followed:
    """Keep the connection Secret of a claim that cannot be composed now at what its child publishes.

    A password may be replaced meanwhile. `spec` is of the revision that the claim has, None where it is gone.
    Raises ApiError.
    """
    name = (snapshot.status.get("binding") or {}).get("name", "")
    declared = spec.connection if spec else {}
    live = _source_of(snapshot, declared)
    if not is_name(name) or live is None:
        return Followed(await lost_secret(publisher, snapshot))
    key = Key(snapshot.key.namespace, name)
    try:
        before = await publisher.last_wanted(key, snapshot.key, snapshot.identity.uid)
        if isinstance(before, Cause):
            return Followed(before)
        want = _followed(before, declared, live, is_known=spec is not None)
        if want is None:
            return Followed(await lost_secret(publisher, snapshot))
        publication = await publisher.publish(want, known_hash=want.hash, is_requested=snapshot.is_requested)
    except Forbidden:
        return Followed()
    problem = publication.problem
    if problem is not None:
        # Another login's password is about to be published by its child: until then the former one is taken.
        return Followed(None if problem.reason == "ConnectionIncomplete" else problem)
    return Followed(notes=(_published_note(name),) if publication.changed else ())


def _source_of(snapshot: Snapshot, declared: Mapping[str, Any]) -> Object | None:
    """Return the child that a connection is of: the one that the Composition names, else the only one that has any."""
    resource = declared.get("from") or (declared.get("secretRef") or {}).get("resource")
    live = [child.live for child in snapshot.children if child.live is not None and child.entry.resource == resource]
    if not live and "secretRef" not in declared:
        live = [child.live for child in snapshot.children if child.live and status_of(child.live).get("connection")]
    return live[0] if len(live) == 1 else None


def _followed(want: Wanted, declared: Mapping[str, Any], live: Object, *, is_known: bool) -> Wanted | None:
    """Return what is wanted by what a child publishes now; None where that is not known."""
    if "secretRef" in declared:
        # Which Secret of the operator it is was computed, and is remembered by the process that published it.
        is_whole = bool(want.source_version) and is_current(live, is_silent=False)
        return msgspec.structs.replace(want, source_version=version_of(live)) if is_whole else None
    stored = published(live)
    if isinstance(stored, Cause):
        return None
    origin, own = of_contract(stored), set(declared) - STRUCTURED
    if "certificates" not in origin.kept and ("caRef" in declared or not is_known):
        own.add("certificates")
    return with_published(want, origin, own)


async def with_unusable(
    publisher: Publisher, snapshot: Snapshot, findings: Findings, spec: CompositionSpec | None
) -> tuple[Findings, tuple[Note, ...]]:
    """Return the findings of a pass that stopped early with what is unusable, children and Secret, and notes."""
    findings = with_broken(snapshot, findings)
    followed = await follow(publisher, snapshot, spec) if findings.rendered is None else Followed()
    if followed.lost:
        findings = replace(findings, causes=(*findings.causes, followed.lost), published=False)
    return findings, followed.notes


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
    notes = (_published_note(want.key.name),) if publication.changed and bound.secret else ()
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


def _published_note(secret: str) -> Note:
    return Note("ConnectionPublished", f"Secret {secret} holds the credentials")


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
