"""How often what no list shows is read: few every resync, many as often as a tenth of the reads allows."""

from __future__ import annotations

from datetime import timedelta

from providers.accounts.limits import BY_CONFIG, config_of
from providers.accounts.rare_reads import RareReads
from runtime.objects import Key, Object, Resource
from runtime.store import Store

_RESYNC, _LONGEST = timedelta(minutes=10), timedelta(hours=6)


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
