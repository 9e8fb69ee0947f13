"""`fairlead offers`: what may be asked for, of files and of a namespace, and claims held against it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from apis import names
from composer.validation.validate import CheckRequest
from fairlead.assets import assets
from fairlead.cli import run
from fairlead.exits import Exit
from fairlead.offerings import Offered, offerings_of, text_of
from fairlead.rendering import shipped_kinds
from fairlead.yaml_files import objects_in
from runtime.kube import Kube
from runtime.objects import NAMESPACES, dumps, loads
from tests.composer.validation import claim_fields
from tests.fairlead.test_rendering import CLAIM
from tests.support.memory_kube import MemoryKube

(ONPREM,) = objects_in(assets("compositions"), "postgres-onprem.yaml")
_DECLARED = {
    "version": {"values": ["16", "17"]},
    "extensions": {"values": ["pgcrypto", "pg_trgm", "postgis", "hstore", "citext", "unaccent", "uuid-ossp"]},
    "parameters.work_mem": {"minimum": 4, "maximum": 64},
    "network": {"refused": "databases of this server are reached within its network alone"},
}
NARROWED = {**ONPREM, "spec": {**ONPREM["spec"], "offers": _DECLARED}}
REFUSED = CLAIM.replace('"16"', '"15"') + "  extensions: [pgcrypto, plv8]\n  network: {public: true}\n"
_KINDS = dict(shipped_kinds("*.yaml"))
_OFFERINGS = offerings_of({}, CheckRequest(NARROWED["spec"], _KINDS, claim_fields.ENVIRONMENTS))
_SHOWN = {"version", "size", "memoryGiB", "storageGiB", "extensions", "network.public", "parameters.work_mem"}
OFFERED = Offered(
    "postgres-onprem",
    "PostgreSQLInstance",
    default=True,
    fields=tuple(field for field in _OFFERINGS.fields if field.path in _SHOWN),
)
GOLDEN = {
    (80, False): """\
postgres-onprem: PostgreSQLInstance, which a claim gets that names none
  FIELD                 OFFERED
  version               16, 17 (required)
  size                  small: connections 20, workMem 4MB
                        medium: connections 50, workMem 8MB
                        large: connections 100, workMem 16MB
                        xlarge: connections 200, workMem 32MB
  memoryGiB             1 to 1024
                        note: memoryGiB is not reserved: the databases of this
                            server share its memory
  storageGiB            1 to 65536
                        note: storageGiB 1 is not reserved: the databases of
                            this server share its disk
  extensions            pgcrypto, pg_trgm, postgis, hstore, citext, unaccent,
                            uuid-ossp
  parameters.work_mem   4 to 64
  refused:
  network.public   databases of this server are reached within its network alone
""",
    (120, True): """\
postgres-onprem: PostgreSQLInstance, which a claim gets that names none
  FIELD                 TYPE      DEFAULT   OFFERED
  version               string              16, 17 (required)
  size                  string              small: connections 20, workMem 4MB
                                            medium: connections 50, workMem 8MB
                                            large: connections 100, workMem 16MB
                                            xlarge: connections 200, workMem 32MB
  memoryGiB             integer             1 to 1024
                                            note: memoryGiB is not reserved: the databases of this server share its
                                                memory
  storageGiB            integer             1 to 65536
                                            note: storageGiB 1 is not reserved: the databases of this server share its
                                                disk
  extensions            array               pgcrypto, pg_trgm, postgis, hstore, citext, unaccent, uuid-ossp
  parameters.work_mem   string              4 to 64
  refused:
  network.public   databases of this server are reached within its network alone
""",
}


@pytest.mark.parametrize(("columns", "wide"), GOLDEN)
def test_offers_fit_into_the_columns_of_a_terminal(columns: int, *, wide: bool) -> None:
    lines = list(text_of([OFFERED], columns, wide=wide))

    assert "\n".join(lines) + "\n" == GOLDEN[columns, wide]
    assert max(map(len, lines)) <= columns


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryKube:
    """Return a cluster with a Composition for everybody, one for a cloud, and one that nobody has accepted."""
    made = MemoryKube()
    made.put(NAMESPACES, "shop", namespace="")
    status = {"offers": loads(dumps(_OFFERINGS))}
    for name, labels, recorded in (("team", {}, status), ("far", {"cloud": "far"}, status), ("new", {}, {})):
        rules = {"appliesTo": {"namespaceSelector": {"matchLabels": labels}, "priority": len(name)}}
        made.put(names.COMPOSITIONS, name, namespace="", spec={**NARROWED["spec"], **rules}, status=recorded)

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield made

    monkeypatch.setattr("fairlead.offerings.connected", connect)
    return made


def test_a_namespace_sees_what_its_claims_may_ask_for(cluster: MemoryKube, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["offers", "-n", "shop", "-o", "json"]) == Exit.DONE

    out, errors = capsys.readouterr()
    (offered,) = msgspec.json.decode(out)["offers"]
    assert (offered["composition"], offered["default"]) == ("team", True)
    assert offered["fields"] == loads(dumps(_OFFERINGS))["fields"]
    assert errors == "Composition new says nothing of what it offers: it was not accepted yet\n"
    assert run(["offers", "far", "-n", "shop"]) == Exit.INVALID_INPUT
    cluster.forbidden.add("list compositions")
    assert run(["offers", "-n", "shop"]) == Exit.TOOL_FAILED
    assert "the role fairlead-offers" in capsys.readouterr().err


def test_a_claim_is_held_against_a_composition_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    composition, claim = tmp_path / "composition.json", tmp_path / "claim.yaml"
    composition.write_bytes(msgspec.json.encode(NARROWED))
    claim.write_text(REFUSED)

    assert run(["validate", str(claim), "-c", str(composition)]) == Exit.INVALID_INPUT
    assert capsys.readouterr().err == (
        f"{claim}:7:3: version: 15 is not offered; offered: 16, 17 [UnsupportedValue]\n"
        f"{claim}:10:13: network.public: databases of this server are reached within its network alone"
        " [UnsupportedValue]\n"
        f"{claim}:9:3: extensions: plv8 is not offered; offered: pgcrypto, pg_trgm, postgis, hstore, citext, unaccent,"
        " uuid-ossp [UnsupportedValue]\n"
        "0 valid, 3 faults\n"
    )
    assert run(["validate", str(tmp_path)]) == Exit.INVALID_INPUT
    assert capsys.readouterr().err.endswith("\n1 valid, 3 faults\n")
    assert run(["offers", "-c", str(composition), "-o", "yaml"]) == Exit.DONE
    assert "value: pg_trgm\n" in capsys.readouterr().out
