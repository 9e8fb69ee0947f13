"""From objects to the tree that `fairlead trace` shows: how each fares, and which of them is the first cause. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apis import names
from apis.reasons import REASONS, ReasonClass, class_of_claim, next_actor
from fairlead.consoles import console_of
from fairlead.exits import Exit
from runtime.conditions import conditions_of, instant
from runtime.kstatus import kstatus
from runtime.objects import Object, annotations_of, deleting, generation_of, metadata, status_of

SCHEMA_VERSION = 1
_MOST_EVENTS = 5
_UNSEEN = (
    "no controller has looked at this object yet: is it running, and are the Compositions of this kind Ready "
    "(`kubectl get flc`)?"
)


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference that a provider saw: the field, what it should be, what it was, what was done, how long ago."""

    path: str
    desired: str
    observed: str
    action: str
    age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What was said of an object: Normal or Warning, a reason, a sentence, how long ago."""

    type: str
    reason: str
    note: str
    age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One object of the tree.

    `ready` is a condition's status or "-"; `synced` and `stalled` as the conditions say; `is_current` whether they
    speak of the newest spec; `external` is the name in the cloud, `console` the link to it there; `age` is None for
    what does not exist; `events` are those that are kept of it, the newest last; `owner` the claim that it is of.
    """

    kind: str
    name: str
    ready: str
    reason: str
    message: str
    age: timedelta | None
    external: str = ""
    synced: bool = True
    stalled: bool = False
    is_current: bool = True
    is_cause: bool = False
    drift: tuple[Drift, ...] = ()
    console: str = ""
    owner: str = ""
    events: tuple[Event, ...] = ()
    children: tuple[Node, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to report of this node itself."""
        return self.ready in {"True", "-"} and self.synced and not self.stalled and self.is_current


def tree_of(
    claim: Object, children: Sequence[tuple[str, str, Object | None]], secret: Object | None, now: datetime
) -> Node:
    """Build the tree of a claim, or of a managed resource or an object of the cluster, which have no Secret line.

    `children` holds kind, name and the object (None when it is gone), in the order of the inventory; `secret` the
    connection Secret's metadata, None while there is none.
    """
    composition = ((claim.get("status") or {}).get("composition") or {}).get("name", "")
    below = [_node(kind, name, obj, now) for kind, name, obj in children]
    if metadata(claim).get("namespace") and is_claim(claim):
        below.append(_secret_node(claim, secret, now))
    top = _node(str(claim["kind"]), str(metadata(claim)["name"]), claim, now, is_claim=is_claim(claim))
    external = f"composition {composition}" if composition else top.external
    owner = annotations_of(claim).get(names.CLAIM_NAME, "")
    return _with_cause(replace(top, external=external, owner=owner, children=tuple(below)))


def with_events(tree: Node, events: Mapping[tuple[str, str], Sequence[Object]], now: datetime) -> Node:
    """Return a tree whose nodes have their events, which are given by kind and name."""
    own = sorted((_event(event, now) for event in events.get((tree.kind, tree.name), ())), key=_youngest_last)
    children = tuple(with_events(child, events, now) for child in tree.children)
    return replace(tree, events=tuple(own[-_MOST_EVENTS:]), children=children)


def _youngest_last(event: Event) -> timedelta:
    return -event.age if event.age is not None else timedelta()


def _event(event: Object, now: datetime) -> Event:
    """Read an event of events.k8s.io; of a series the last time counts, of one by an earlier API its own field."""
    texts = ((event.get("series") or {}).get("lastObservedTime"), event.get("eventTime"))
    text = next((str(text) for text in (*texts, event.get("deprecatedLastTimestamp")) if text), "")
    when = instant(text)
    type_, reason, note = (str(event.get(name) or "") for name in ("type", "reason", "note"))
    return Event(type_, reason, note, now - when if when else None)


def exit_of(tree: Node) -> Exit:
    """Return what `--exit-status` answers for the claim at the root."""
    if tree.stalled:
        return Exit.STALLED
    if tree.ready != "True" or not tree.is_current:
        return Exit.NOT_READY
    return Exit.DONE


def json_of(tree: Node) -> Object:
    """Return the tree as plain JSON data; ages in whole seconds."""
    return {"schemaVersion": SCHEMA_VERSION, "tree": _json(tree)}


def _node(kind: str, name: str, obj: Object | None, now: datetime, *, is_claim: bool = False) -> Node:
    """Describe an object; `is_claim`: it gets our conditions once it is seen, whatever its group is."""
    if obj is None:
        return Node(kind, name, "False", "missing", "the object is gone; Fairlead makes it anew or says why not", None)
    status = status_of(obj)
    conditions = {condition["type"]: condition for condition in conditions_of(obj)}
    if "Ready" not in conditions and not _is_ours(obj) and not is_claim:
        return _foreign_node(kind, name, obj, now)
    speaking = _speaking(conditions)
    ready = conditions.get("Ready") or {}
    return Node(
        kind=kind,
        name=name,
        ready=str(ready.get("status", "Unknown")),
        reason=str(speaking.get("reason", "")) or ("deleting" if deleting(obj) else "not seen yet"),
        message=str(speaking.get("message", "")) if conditions else _UNSEEN,
        age=_age(obj, now),
        external=str(status.get("externalName") or annotations_of(obj).get(names.EXTERNAL_NAME, "")),
        synced=(conditions.get("Synced") or {}).get("status", "True") == "True",
        stalled=(conditions.get("Stalled") or {}).get("status") == "True",
        is_current=_speaks_of_newest(obj, ready),
        drift=tuple(_drift(entry, now) for entry in status.get("drift") or ()),
        console=console_of(obj),
    )


def _is_ours(obj: Object) -> bool:
    return names.is_own_group(str(obj["apiVersion"]).rpartition("/")[0])


def is_claim(root: Object) -> bool:
    """Whether an object is a claim: of our kinds one that is no managed resource, of others one that was composed."""
    if _is_ours(root):
        return "forProvider" not in (root.get("spec") or {})
    # Until it is seen a claim has an empty status, or the default of its CRD.
    status = status_of(root)
    return not (status.keys() - {"observedGeneration"}) or "composition" in status


def _foreign_node(kind: str, name: str, obj: Object, now: datetime) -> Node:
    """Describe a kind without our conditions (a ConfigMap, a Deployment) by the rules of kstatus."""
    state = kstatus(obj)
    is_current = state == "Current"
    return Node(kind, name, "-" if is_current else "False", state, "", _age(obj, now), stalled=state == "Failed")


def _speaking(conditions: Mapping[str, Object]) -> Object:
    """Choose the condition whose reason and message say most: what is wrong before what is well."""
    for type_, wanted in (("Stalled", "True"), ("Reconciling", "True"), ("Ready", "False"), ("Synced", "False")):
        condition = conditions.get(type_)
        if condition is not None and condition.get("status") == wanted:
            return condition
    return conditions.get("Ready") or {}


def _speaks_of_newest(obj: Object, ready: Object) -> bool:
    generation = generation_of(obj)
    return not generation or not ready or int(ready.get("observedGeneration", generation)) >= generation


def _drift(entry: Object, now: datetime) -> Drift:
    since = entry.get("since")
    age = now - datetime.fromisoformat(since) if since else None
    path, desired, observed, action = (str(entry.get(name, "")) for name in ("path", "desired", "observed", "action"))
    return Drift(path, desired, observed, action, age)


def _secret_node(claim: Object, secret: Object | None, now: datetime) -> Node:
    bound = ((claim.get("status") or {}).get("binding") or {}).get("name", "")
    if not bound:
        wanted = str((claim.get("spec") or {}).get("connectionSecretName") or f"{metadata(claim)['name']}-connection")
        return Node("Secret", wanted, "-", "not published yet", "", None)
    if secret is None:
        return Node("Secret", bound, "False", "missing", "the Secret is gone; Fairlead writes it again", None)
    return Node("Secret", bound, "-", "published", "", _age(secret, now))


def _age(obj: Object, now: datetime) -> timedelta | None:
    created = metadata(obj).get("creationTimestamp")
    return now - datetime.fromisoformat(created) if created else None


def _with_cause(tree: Node) -> Node:
    """Mark the node that a claim speaks of: what stands above it only repeats its text."""
    position = None if tree.reason == "Paused" else _first_cause(tree)
    # Of a pause the claim says by whom and when; the children only follow it.
    if position is None:
        return tree if tree.is_healthy else replace(tree, is_cause=True)
    marked = _with_cause(tree.children[position])
    return replace(tree, children=(*tree.children[:position], marked, *tree.children[position + 1 :]))


def _first_cause(tree: Node) -> int | None:
    """Return the child whose words a node repeats, or that it names, else the worst; None where it is worse itself."""
    unhealthy = [at for at, child in enumerate(tree.children) if not child.is_healthy]
    texts = {at: tree.children[at].message for at in unhealthy}
    repeated = [at for at, text in texts.items() if text and tree.message.startswith(text)]
    named = [at for at in unhealthy if f"{tree.children[at].kind} {tree.children[at].name}" in tree.message]
    if repeated or named or not unhealthy:
        return next(iter((*repeated, *named)), None)
    worst = min(unhealthy, key=lambda at: _severity(tree.children[at]))
    return worst if tree.is_healthy or _severity(tree.children[worst]) <= _severity(tree) else None


def _severity(node: Node) -> ReasonClass:
    if node.stalled:
        return ReasonClass.STALLED
    return class_of_claim(node.reason) if node.reason in REASONS and not node.is_healthy else ReasonClass.PROGRESS


def age_text(age: timedelta | None) -> str:
    """Return an age as kubectl prints it, one unit; "-" for what does not exist."""
    if age is None:
        return "-"
    seconds = max(int(age.total_seconds()), 0)
    for size, letter in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{letter}"
    return f"{seconds}s"


def _json(node: Node) -> Object:
    return {
        "kind": node.kind,
        "name": node.name,
        "ready": node.ready,
        "synced": node.synced,
        "stalled": node.stalled,
        "current": node.is_current,
        "reason": node.reason,
        "message": node.message,
        "nextMove": next_actor(node.reason),
        "firstCause": node.is_cause,
        "ageSeconds": None if node.age is None else int(node.age.total_seconds()),
        "external": node.external,
        "console": node.console,
        "owner": node.owner,
        "events": [
            {
                "type": event.type,
                "reason": event.reason,
                "note": event.note,
                "ageSeconds": None if event.age is None else int(event.age.total_seconds()),
            }
            for event in node.events
        ],
        "drift": [
            {
                "path": drift.path,
                "desired": drift.desired,
                "observed": drift.observed,
                "action": drift.action,
                "ageSeconds": None if drift.age is None else int(drift.age.total_seconds()),
            }
            for drift in node.drift
        ],
        "children": [_json(child) for child in node.children],
    }
