"""A write that comes late, decided on what was read before, is refused once another process has written the object."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from apis import names
from apis.names import EXTERNAL_NAME
from composer.claim.act import Actor
from composer.claim.decide import Annotate, Apply, Delete, Orphan, RemoveFinalizer, Step
from composer.claim.snapshot import ObservedChild
from composer.connection.publisher import Publisher
from providers.credentials import secrets
from providers.credentials.passwords import Kept
from providers.managed.outcome import Outcome
from providers.managed.writes import Writer
from runtime.errors import WriteConflict
from runtime.kube_client import KubeClient
from runtime.objects import CONFIG_MAPS, SECRETS, Object, annotations_of, deleting, key_of, labels_of, uid_of
from runtime.status import write_status
from runtime.store import Store
from tests.apiserver.runtime.test_kube_client import config_map, widget
from tests.composer import factories
from tests.support.memory_kube import WIDGETS

MANAGER = factories.snapshot().manager
INSTRUCTION = "child/Detach"


@dataclass
class LateKube:
    """The late process's client: its first call of `verb` arrives when the successor has acted."""

    kube: KubeClient
    verb: str
    successor: Callable[[], Awaitable[Any]] | None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.kube, name)

        async def call(*args: Any, **options: Any) -> Any:
            if name == self.verb and self.successor:
                successor, self.successor = self.successor, None
                await successor()
            return await method(*args, **options)

        return call


async def comes_late(write: Awaitable[Any]) -> Any:
    """Return the error with which a late write ends, or what it gives."""
    result = (await asyncio.gather(write, return_exceptions=True))[0]
    return result[0].error if isinstance(result, tuple) else result


def child(namespace: str, **more: Any) -> Object:
    """Return a child of the factories' claim."""
    wanted = factories.desired(facts=factories.SETTINGS, spec={})
    meta = {**wanted["metadata"], "namespace": namespace, **more.pop("metadata", {})}
    return {**{name: value for name, value in wanted.items() if name != "spec"}, "metadata": meta, **more}


async def act(kube: Any, step: Step, live: Object, *, leaving: bool = False) -> Any:
    """Carry out one step of the composer."""
    actor = Actor(kube, now=lambda: datetime.now(UTC), remember=lambda _kind, _obj, _over: None)
    known = ObservedChild(step.entry, live, factories.SETTINGS)
    return await actor.act(factories.snapshot(known, of=factories.claim(deleted=leaving)), (step,))


class Case(NamedTuple):
    """One step of the composer that comes too late.

    Attributes:
        verb: By which it reaches the API server.
        step: Makes it of the child's entry in the inventory and of the child as the late process saw it.
        successor: What the successor wrote meanwhile: other data, or the teardown instruction.
        finalizers: Of the child.
        leaving: Whether the claim is being deleted.
        is_taken: Whether another manager holds the child's data.
        is_deleted: Whether its deletion comes before what is refused.
    """

    verb: str
    step: Callable[[Any, Object], Step]
    successor: str = "instruction"
    finalizers: tuple[str, ...] = ()
    leaving: bool = False
    is_taken: bool = False
    is_deleted: bool = False


def _apply(entry: Any, live: Object) -> Step:
    return Apply(entry, factories.SETTINGS, child(key_of(live).namespace, data={"x": "late"}), live)


def _remove(entry: Any, live: Object) -> Step:
    return Delete(entry, factories.SETTINGS, live, "child/Delete", "it leaves the composition")


def _delete(entry: Any, live: Object) -> Step:
    return Delete(entry, factories.SETTINGS, live, "", "it leaves the composition")


def _instruct(entry: Any, live: Object) -> Step:
    return Annotate(entry, factories.SETTINGS, live, {names.TEARDOWN: "child/Delete"})


_OF_PROVIDER = ("example.dev/provider",)
CASES = {
    "an apply of a child": Case("apply", _apply, "data"),
    "an apply that takes a field back": Case("apply", _apply, "data", is_taken=True),
    "an instruction": Case("json_patch", _instruct),
    "an instruction to remove, the claim goes": Case("json_patch", _remove, finalizers=_OF_PROVIDER, leaving=True),
    "an instruction to remove, the claim lives": Case("json_patch", _remove, finalizers=_OF_PROVIDER, is_deleted=True),
    "a deletion of a child": Case("delete", _delete, "data"),
    "a release of a foreign child": Case("json_patch", lambda entry, live: Orphan(entry, factories.SETTINGS, live)),
    "a removal of a finalizer": Case(
        "json_patch",
        lambda entry, live: RemoveFinalizer(entry, factories.SETTINGS, live),
        finalizers=(names.TEARDOWN_FINALIZER,),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_late_step_of_the_composer_is_refused(kube: KubeClient, namespace: str, case: Case) -> None:
    body = child(namespace, data={"x": "1"}, metadata={"finalizers": list(case.finalizers)})
    live = await kube.apply(CONFIG_MAPS, body, manager=MANAGER)
    if case.is_taken:
        live = await kube.apply(CONFIG_MAPS, child(namespace, data={"x": "2"}), manager="rival", force=True)
    entry = factories.entry(facts=factories.SETTINGS, uid=uid_of(live), name=key_of(live).name, applied=True)
    step = case.step(entry, live)

    async def successor() -> None:
        if case.successor == "data":
            again = child(namespace, data={"x": "new"}, metadata={"finalizers": list(case.finalizers)})
            await kube.apply(CONFIG_MAPS, again, manager=MANAGER, force=True)
        else:
            metadata = {"annotations": {names.TEARDOWN: INSTRUCTION}}
            instructed = config_map(namespace, key_of(live).name, metadata=metadata)
            await kube.apply(CONFIG_MAPS, instructed, manager="successor", force=True)

    late = LateKube(kube, case.verb, successor)
    error = await comes_late(act(late, step, live, leaving=case.leaving))
    left = await kube.get(CONFIG_MAPS, key_of(live))

    assert isinstance(error, WriteConflict)
    assert deleting(left) == case.is_deleted
    assert names.CLAIM_LABEL in labels_of(left)
    assert left["metadata"].get("finalizers", []) == list(case.finalizers)
    if case.successor == "data":
        assert left["data"] == {"x": "new"}
    else:
        assert annotations_of(left)[names.TEARDOWN] == INSTRUCTION


@pytest.mark.usefixtures("widgets")
async def test_a_late_status_is_refused(kube: KubeClient, namespace: str) -> None:
    live = await kube.create(WIDGETS, widget(namespace, "w"), manager="one")

    async def successor() -> None:
        await write_status(kube, WIDGETS, live, {"phase": "new"}, manager="one")

    late: Any = LateKube(kube, "json_patch", successor)
    error = await comes_late(write_status(late, WIDGETS, live, {"phase": "late"}, manager="one"))

    assert isinstance(error, WriteConflict)
    assert (await kube.get(WIDGETS, key_of(live)))["status"] == {"phase": "new"}


@pytest.mark.usefixtures("widgets")
async def test_late_annotations_of_a_provider_are_refused(kube: KubeClient, namespace: str) -> None:
    live = await kube.create(WIDGETS, widget(namespace, "w"), manager="one")
    named: Any = SimpleNamespace(account=SimpleNamespace(id="account"), target=SimpleNamespace(name="late"))
    provider: Any = SimpleNamespace(resource=WIDGETS)
    settings: Any = SimpleNamespace(manager="provider")
    metadata = {"annotations": {EXTERNAL_NAME: "new"}}

    async def successor() -> None:
        await kube.apply(WIDGETS, widget(namespace, "w", metadata=metadata), manager="provider", force=True)

    outcome: Outcome[Any] = Outcome(obj=live, stored=None)
    late: Any = LateKube(kube, "apply", successor)
    writer: Writer[Any, Any] = Writer(provider, late, settings, Store(WIDGETS), lambda: lambda _: True)
    error = await comes_late(writer.write_external_ref(named, outcome, incarnation=""))

    assert isinstance(error, WriteConflict)
    assert annotations_of(await kube.get(WIDGETS, key_of(live)))[EXTERNAL_NAME] == "new"


async def test_a_late_deletion_of_credentials_is_refused(kube: KubeClient, namespace: str) -> None:
    owner = child(namespace, metadata={"name": "owner", "uid": "owner-uid"})
    written = await secrets.write(kube, owner, Kept("old", "", "app", ""), None, manager="provider")

    async def successor() -> None:
        await secrets.write(kube, owner, Kept("new", "", "app", ""), written, manager="provider")

    late: Any = LateKube(kube, "delete", successor)
    error = await comes_late(secrets.delete(late, owner, {}))

    assert isinstance(error, WriteConflict)
    kept = await secrets.read(kube, owner)
    assert kept is not None
    assert kept.kept.current == "new"


async def test_a_late_deletion_of_a_connection_secret_is_refused(kube: KubeClient, namespace: str) -> None:
    meta = {"name": "orders-connection", "namespace": namespace, "labels": {names.CLAIM_LABEL: "claim-uid"}}
    made = await kube.create(
        SECRETS, {"apiVersion": "v1", "kind": "Secret", "type": _BINDING, "metadata": meta}, manager=MANAGER
    )

    async def successor() -> None:
        await kube.replace(SECRETS, {**copy.deepcopy(made), "data": {"x": "bmV3"}}, manager=MANAGER)

    late: Any = LateKube(kube, "delete", successor)
    publisher = Publisher(late, monotonic=lambda: 0.0, manager=MANAGER)
    error = await comes_late(publisher.disown(key_of(made), "claim-uid", keep=False, collected_with=""))

    assert isinstance(error, WriteConflict)
    assert (await kube.get(SECRETS, key_of(made)))["data"] == {"x": "bmV3"}


_BINDING = "servicebinding.io/postgresql"
