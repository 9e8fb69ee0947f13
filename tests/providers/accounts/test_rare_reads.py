"""How often what no list shows is read: few every resync, many as often as a tenth of the reads allows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.accounts.limits import BY_CONFIG, config_of
from providers.accounts.rare_reads import RareReads, pause_before_next_read
from runtime.objects import Key, Object, Resource
from runtime.store import Store

_RESYNC, _LONGEST = timedelta(minutes=10), timedelta(hours=6)


@pytest.mark.parametrize(
    ("objects", "chance", "pause"),
    [
        (1, 0.9, _RESYNC),
        (900, 0.9, _RESYNC),  # 900 in ten minutes are a tenth of 15 a second
        (9000, 0.0, _RESYNC),
        (9000, 0.5, timedelta(minutes=100)),  # the mean: 9,000 at 1.5 a second
        (9000, 1.0, timedelta(minutes=190)),
        (1_000_000, 1.0, _LONGEST),
        (1_000_000, 0.0, _RESYNC),
    ],
)
def test_pause_before_an_object_is_read_again(objects: int, chance: float, pause: timedelta) -> None:
    assert pause_before_next_read(objects, 15, _RESYNC, _LONGEST, lambda: chance) == pause


def test_resync_that_is_rarer_than_the_longest_pause_stays() -> None:
    assert pause_before_next_read(9000, 15, timedelta(hours=8), _LONGEST, lambda: 1.0) == timedelta(hours=8)


def _object(kind: str, name: str, config: str) -> Object:
    spec = {"providerConfigRef": {"name": config}}
    return {
        "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": spec,
    }


def _store(kind: str, config: str, objects: int) -> Store:
    store = Store(Resource("x.example", "v1", kind, f"{kind.lower()}s"))
    store.add_index(BY_CONFIG, config_of)
    for number in range(objects):
        store.remember(_object(kind, f"{config}-{number}", config))
    return store


def test_all_kinds_of_a_provider_config_share_and_others_do_not() -> None:
    reads = RareReads(1.0, timedelta(seconds=60), _LONGEST)
    databases, rules = _store("Database", "crowded", 6), _store("Rule", "crowded", 1)
    databases.remember(_object("Database", "quiet-0", "quiet"))
    of_databases, _ = reads.of(databases), reads.of(rules)
    assert of_databases(Key("shop", "quiet-0")) == timedelta(seconds=60)
    # Seven at a tenth of a read a second are read every 70 seconds in the mean.
    pauses = [of_databases(Key("shop", "crowded-0")).total_seconds() for _ in range(300)]
    assert all(60 <= pause <= 80 for pause in pauses)
    assert len(set(pauses)) > 200
