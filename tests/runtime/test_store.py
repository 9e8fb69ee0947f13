"""The store against an oracle: the cluster's log, replayed up to what the watch delivered, and our writes on top."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from devcloud.apiserver.watching import Change as Written
from runtime.changes import Change, ChangeKind
from runtime.objects import Key, Object, Resource, dumps, labels_of, version_of
from runtime.store import Listing, StaleList, Store
from tests.support.memory_kube import WIDGETS, MemoryKube

NAMES = ("a", "b", "c")
COLOURS = ("red", "blue")


def by_colour(obj: Object) -> tuple[str, ...]:
    colour = labels_of(obj).get("colour")
    return (colour,) if colour else ()


def new_store() -> Store:
    store = Store(WIDGETS)
    store.add_index("colour", by_colour)
    return store


def relist(store: Store, objects: list[Object], version: str) -> list[Change]:
    listing = Listing(store)
    for obj in objects:
        listing.add(dumps(obj))
    return list(store.replace_all(listing, version))


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kube = MemoryKube()
        self.log: list[tuple[int, str, Object]] = []
        self.kube.server.listeners.append(self.note)
        self.store = new_store()
        self.delivered = 0  # how many entries of the cluster's log the watch has delivered
        self.seen = 0
        self.ours: list[tuple[int, Key, str | None]] = []  # version, key, uid written or None for deleted
        self.shadow: dict[Key, str] = {}  # what the changes alone would show a subscriber

    def note(self, _resource: Resource, change: Written) -> None:
        kind = "DELETED" if change.after is None else "ADDED" if change.before is None else "MODIFIED"
        self.log.append((change.version, kind, change.after or change.before or {}))

    def follow(self, changes: list[Change]) -> None:
        for change in changes:
            match change.kind:
                case ChangeKind.ADDED:
                    assert change.key not in self.shadow
                    self.shadow[change.key] = change.new_uid or ""
                case ChangeKind.MODIFIED:
                    assert self.shadow[change.key] == change.old_uid == change.new_uid
                case ChangeKind.DELETED:
                    assert self.shadow.pop(change.key) == change.old_uid

    @rule(name=st.sampled_from(NAMES), colour=st.sampled_from(COLOURS), number=st.integers(0, 3), ours=st.booleans())
    def write(self, name: str, colour: str, number: int, *, ours: bool) -> None:
        obj = self.kube.put(WIDGETS, name, metadata={"labels": {"colour": colour}}, spec={"n": number})
        if ours:
            self.store.remember(obj)
            self.ours.append((self.kube.server.version, Key("ns", name), obj["metadata"]["uid"]))

    @precondition(lambda self: self.kube.objects)
    @rule(data=st.data(), ours=st.booleans())
    def delete(self, data: st.DataObject, *, ours: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.kube.state(WIDGETS))))
        uid = self.kube.state(WIDGETS)[key]
        known = self.view().get(key)
        self.kube.remove(WIDGETS, key.name)
        if ours:
            self.store.forget(key, uid)
            if known and known[0] == uid:
                self.ours.append((self.kube.server.version, key, None))

    @precondition(lambda self: self.delivered < len(self.log))
    @rule(count=st.integers(1, 5))
    def deliver(self, count: int) -> None:
        for version, kind, obj in self.log[self.delivered : self.delivered + count]:
            self.delivered += 1
            self.seen = version
            self.follow(list(self.store.apply_event(kind, dumps(obj))))

    @precondition(lambda self: self.delivered)
    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        _, kind, obj = data.draw(st.sampled_from(self.log[: self.delivered]))

        assert self.store.apply_event(kind, dumps(obj)) == ()

    @rule(back=st.integers(0, 6))
    def list_again(self, back: int) -> None:
        position = max(0, len(self.log) - back)
        version = self.log[position - 1][0] if position else 100
        objects = list(self.replayed(position).values())
        if version < self.seen:
            with pytest.raises(StaleList):
                relist(self.store, objects, str(version))
            return
        self.delivered, self.seen = position, version
        self.follow(relist(self.store, objects, str(version)))

    def replayed(self, position: int) -> dict[Key, Object]:
        state: dict[Key, Object] = {}
        for _, kind, obj in self.log[:position]:
            key = Key("ns", obj["metadata"]["name"])
            if kind == "DELETED":
                state.pop(key, None)
            else:
                state[key] = obj
        return state

    def view(self) -> dict[Key, tuple[str, str]]:
        """Return uid and resourceVersion of what a reader must see."""
        state = {key: _identity(obj) for key, obj in self.replayed(self.delivered).items()}
        for version, key, uid in self.ours:
            if version <= self.seen:
                continue
            if uid is None:
                state.pop(key, None)
            else:
                state[key] = (uid, str(version))
        return state

    @invariant()
    def a_reader_sees_the_watch_and_our_writes(self) -> None:
        seen = {record.key: (record.uid, record.version) for record in self.store.records()}

        assert seen == self.view()
        assert len(self.store) == len(seen)
        assert set(self.store.keys()) == set(seen)

    @invariant()
    def the_index_agrees_with_the_objects(self) -> None:
        for colour in COLOURS:
            objects = {record.key: self.store.get(record.key) or {} for record in self.store.records()}
            expected = sorted(key for key, obj in objects.items() if by_colour(obj) == (colour,))

            assert list(self.store.by_index("colour", colour)) == expected
            assert all(self.store.indexed("colour", key) == (colour,) for key in expected)

    @invariant()
    def the_changes_alone_give_the_watched_state(self) -> None:
        assert self.shadow == {key: _identity(obj)[0] for key, obj in self.replayed(self.delivered).items()}


TestStoreAgainstTheLog = StoreMachine.TestCase


def _identity(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


def one_widget() -> tuple[MemoryKube, Store, str]:
    """Return a server with one object, a store that has listed it, and the object's version."""
    kube, store = MemoryKube(), new_store()
    obj = kube.put(WIDGETS, "a", spec={"n": 1})
    relist(store, [obj], "101")
    return kube, store, version_of(obj)


@pytest.mark.parametrize("is_early", [False, True], ids=["the answer comes first", "the event comes first"])
@pytest.mark.parametrize(
    ("written", "remembered"),
    [
        pytest.param({"spec": {"n": 1}, "status": {"ok": True}}, {"is_status": True}, id="a status"),
        pytest.param({"spec": {"n": 2}}, {"over": "listed"}, id="a write that is bound to the version before it"),
    ],
)
def test_our_write_comes_back_as_an_echo_and_an_edit_after_it_does_not(
    written: Object, remembered: dict[str, Any], *, is_early: bool
) -> None:
    kube, store, listed = one_widget()
    options: dict[str, Any] = {name: listed if value == "listed" else value for name, value in remembered.items()}
    answer = kube.put(WIDGETS, "a", **written)
    if is_early:
        (ours,) = store.apply_event("MODIFIED", dumps(answer))
        assert not store.is_echo(ours)
        store.remember(answer, **options)
    else:
        store.remember(answer, **options)
        (ours,) = store.apply_event("MODIFIED", dumps(answer))
        assert ours.own
    (edited,) = store.apply_event("MODIFIED", dumps(kube.put(WIDGETS, "a", **{**written, "spec": {"n": 3}})))

    assert [ours.own or store.is_echo(ours), edited.own or store.is_echo(edited)] == [True, False]


def test_an_index_added_late_knows_what_is_stored() -> None:
    kube, store = MemoryKube(), Store(WIDGETS)
    relist(store, [kube.put(WIDGETS, "a", metadata={"labels": {"colour": "red"}})], "101")
    store.add_index("colour", by_colour)

    assert store.by_index("colour", "red") == (Key("ns", "a"),)
    assert store.indexed("colour", Key("ns", "a")) == ("red",)
    assert store.indexed("colour", Key("ns", "gone")) == ()


def test_an_object_that_an_index_cannot_read_is_stored_all_the_same() -> None:
    kube, store = MemoryKube(), Store(WIDGETS)
    store.add_index("size", lambda obj: (obj["spec"]["size"].lower(),))
    relist(store, [kube.put(WIDGETS, "odd", spec={"size": 7}), kube.put(WIDGETS, "good", spec={"size": "XL"})], "102")

    assert store.by_index("size", "xl") == (Key("ns", "good"),)
    assert Key("ns", "odd") in store


def test_one_index_name_means_one_function() -> None:
    store = new_store()
    with pytest.raises(ValueError, match="another function"):
        store.add_index("colour", lambda _: ())
