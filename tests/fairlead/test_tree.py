"""What `fairlead trace` makes of objects: one line for what is well, the first cause in full."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.consoles import console_of
from fairlead.exits import Exit
from fairlead.tree import exit_of, tree_of, with_events
from fairlead.tree_view import Form, dot_of, lines_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
JsonObject = dict[str, Any]


def condition(type_: str, status: str, reason: str, message: str = "", *, generation: int = 1) -> JsonObject:
    return {"type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": generation}


READY = (condition("Ready", "True", "Available"), condition("Synced", "True", "InSync"))
LOST_TEXT = 'database "orders_x" is gone from the server; consent with recreate=16384 to start empty'
LOST = (
    condition("Ready", "False", "DatabaseLost", LOST_TEXT),
    condition("Synced", "False", "DatabaseLost", LOST_TEXT),
    condition("Stalled", "True", "DatabaseLost", LOST_TEXT),
)
COMMANDING = (
    "version is 16, wanted 17. To agree: `kubectl annotate postgresdatabase/orders-database-x -n shop"
    " fairlead.dev/consent=engineVersion=17,backups=0`"
)
DRIFT = {"path": "connectionLimit", "desired": "20", "observed": "3", "since": "2026-11-21T11:56:00Z"}
DRIFT |= {"action": "Corrected"}
CREATING = (
    condition("Ready", "False", "Creating", "the database is being made"),
    condition("Reconciling", "True", "Creating", "the database is being made"),
)


def claim(*conditions: JsonObject, bound: str = "", generation: int = 1, **status: object) -> JsonObject:
    binding = {"binding": {"name": bound}} if bound else {}
    meta = {"name": "orders", "namespace": "shop", "creationTimestamp": "2026-11-21T11:54:00Z"}
    return {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": {**meta, "generation": generation},
        "spec": {"version": "16"},
        "status": {"conditions": list(conditions), "composition": {"name": "postgres-onprem"}} | binding | status,
    }


def child(*conditions: JsonObject, **status: object) -> tuple[str, str, JsonObject]:
    obj = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "PostgresDatabase",
        "metadata": {"name": "orders-database-x", "creationTimestamp": "2026-11-21T11:55:00Z", "generation": 1},
        "spec": {"forProvider": {}},
        "status": {"conditions": list(conditions), "externalName": "orders_x"} | status,
    }
    return "PostgresDatabase", "orders-database-x", obj


def foreign(api_version: str, kind: str, **parts: object) -> tuple[str, str, JsonObject]:
    meta = {"name": "orders-x", "creationTimestamp": "2026-11-21T11:55:00Z", "generation": 1}
    return kind, "orders-x", {"apiVersion": api_version, "kind": kind, "metadata": meta} | parts


def _instance(*conditions: JsonObject) -> JsonObject:
    arn = "arn:aws:rds:eu-west-1:123456789012:db:fl-orders"
    status = {"conditions": list(conditions), "externalName": "fl-orders", "atProvider": {"dbInstanceArn": arn}}
    meta = {"name": "orders", "creationTimestamp": "2026-11-21T11:55:00Z", "generation": 1}
    about: JsonObject = {"apiVersion": "aws.fairlead.dev/v1alpha1", "kind": "RDSInstance"}
    return about | {"metadata": meta, "spec": {"forProvider": {}}, "status": status}


INSTANCE = _instance(condition("Ready", "True", "Available", "the instance is there and its password works"))
RULES = tuple(foreign("v1", "ConfigMap") for _ in range(3))
NARROW = """
NAME                                         READY   REASON         AGE
PostgreSQLInstance/orders                    False   DatabaseLost   6m
│   composition postgres-onprem
├─ PostgresDatabase/orders-database-x        False   DatabaseLost   5m  <- first cause
│      orders_x
│      database "orders_x" is gone from the server; consent with recreate=16384
│        to start empty
│      next move: the platform team (the data; nothing is changed until then)
│      more: fairlead explain DatabaseLost
└─ 4 are well (--all): 3 ConfigMap, Secret
"""
WIDE = """
NAME                          READY   REASON      AGE   EXTERNAL
PostgreSQLInstance/orders     True    Available   6m    composition postgres-onprem
├─ RDSInstance/orders         True    Available   5m    fl-orders
│      the instance is there and its password works
│      https://eu-west-1.console.aws.amazon.com/rds/home?region=eu-west-1#database:id=fl-orders;is-cluster=false
├─ ConfigMap/orders-x         -       Current     5m
└─ Secret/orders-connection   -       published   5m
"""


SECRET = {"metadata": {"name": "orders-connection", "creationTimestamp": "2026-11-21T11:55:00Z"}}


QUEUE: JsonObject = {
    "apiVersion": "messaging.example.org/v1",
    "kind": "Queue",
    "metadata": {"name": "orders", "namespace": "shop", "creationTimestamp": "2026-11-21T11:59:58Z", "generation": 1},
    "spec": {"connectionSecretName": "login"},
    "status": {"observedGeneration": -1},
}


BROAD = Form(120)
CHINESE = "arn:aws-cn:rds:cn-north-1:1:db:a"


@dataclass(frozen=True)
class Case:
    id: str
    claim: JsonObject
    exit_code: Exit
    lines: str
    children: tuple[tuple[str, str, JsonObject | None], ...] = ()
    secret: JsonObject | None = field(default=None)
    form: Form = BROAD


CASES = (
    Case(
        "all is well: one line each",
        claim(*READY, bound="orders-connection"),
        Exit.DONE,
        """
NAME                                    READY   REASON      AGE   EXTERNAL
PostgreSQLInstance/orders               True    Available   6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   True    Available   5m    orders_x
└─ Secret/orders-connection             -       published   5m
""",
        (child(*READY),),
        SECRET,
    ),
    Case(
        "a lost database is shown at the child, whole, with whose move it is",
        claim(*LOST, bound="orders-connection"),
        Exit.STALLED,
        """
NAME                                    READY   REASON         AGE   EXTERNAL
PostgreSQLInstance/orders               False   DatabaseLost   6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   False   DatabaseLost   5m    orders_x  <- first cause
│      database "orders_x" is gone from the server; consent with recreate=16384 to start empty
│      next move: the platform team (the data; nothing is changed until then)
│      more: fairlead explain DatabaseLost
└─ Secret/orders-connection             -       published      5m
""",
        (child(*LOST),),
        SECRET,
    ),
    Case(
        "a cause of the claim's own is shown there",
        claim(
            condition("Ready", "False", "CompositionNotFound", 'there is no Composition "postgres-onprm"'),
            condition("Reconciling", "True", "CompositionNotFound", 'there is no Composition "postgres-onprm"'),
        ),
        Exit.NOT_READY,
        """
NAME                          READY   REASON                AGE   EXTERNAL
PostgreSQLInstance/orders     False   CompositionNotFound   6m    composition postgres-onprem  <- first cause
│   there is no Composition "postgres-onprm"
│   next move: the developer (edit the claim)
│   more: fairlead explain CompositionNotFound
└─ Secret/orders-connection   -       not published yet     -
""",
    ),
    Case(
        "a command of the cause stands on a line of its own, however long",
        claim(*LOST),
        Exit.STALLED,
        """
NAME                                    READY   REASON              AGE   EXTERNAL
PostgreSQLInstance/orders               False   DatabaseLost        6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   False   HeldChange          5m    orders_x  <- first cause
│      version is 16, wanted 17. To agree: `kubectl annotate postgresdatabase/orders-database-x -n
│        shop fairlead.dev/consent=engineVersion=17,backups=0`
│      $ kubectl annotate postgresdatabase/orders-database-x -n shop fairlead.dev/consent=engineVersion=17,backups=0
│      next move: the platform team (the data; nothing is changed until then)
│      more: fairlead explain HeldChange
└─ Secret/orders-connection             -       not published yet   -
""",
        (
            child(
                condition("Ready", "False", "HeldChange", COMMANDING),
                condition("Synced", "False", "HeldChange", COMMANDING),
                condition("Stalled", "True", "HeldChange", COMMANDING),
            ),
        ),
    ),
    Case(
        "a pause is the claim's, which says by whom; its children follow it",
        claim(READY[0], condition("Synced", "False", "Paused", "paused by kubectl at 11:55: disk exchange")),
        Exit.DONE,
        """
NAME                                    READY   REASON              AGE   EXTERNAL
PostgreSQLInstance/orders               True    Paused              6m    composition postgres-onprem  <- first cause
│   paused by kubectl at 11:55: disk exchange
│   next move: a person's, when they like
│   more: fairlead explain Paused
├─ PostgresDatabase/orders-database-x   True    Paused              5m    orders_x
└─ Secret/orders-connection             -       not published yet   -
""",
        (child(READY[0], condition("Synced", "False", "Paused", "paused until lifted: disk exchange")),),
    ),
    Case(
        "what is being made is not ready, and nobody's move",
        claim(*CREATING),
        Exit.NOT_READY,
        """
NAME                                    READY   REASON              AGE   EXTERNAL
PostgreSQLInstance/orders               False   Creating            6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   False   Creating            5m    orders_x  <- first cause
│      the database is being made
│      next move: nobody's: Fairlead goes on by itself
└─ Secret/orders-connection             -       not published yet   -
""",
        (child(*CREATING),),
    ),
    Case(
        "conditions of an older spec count for nothing",
        claim(*READY, bound="orders-connection", generation=2),
        Exit.NOT_READY,
        """
NAME                                    READY        REASON      AGE   EXTERNAL
PostgreSQLInstance/orders               True (old)   Available   6m    composition postgres-onprem  <- first cause
│   the conditions speak of an older spec; the newest one was not looked at yet
├─ PostgresDatabase/orders-database-x   True         Available   5m    orders_x
└─ Secret/orders-connection             -            published   5m
""",
        (child(*READY),),
        SECRET,
    ),
    Case(
        "drift is shown beside what is well",
        claim(*READY, bound="orders-connection"),
        Exit.DONE,
        """
NAME                                    READY   REASON      AGE   EXTERNAL
PostgreSQLInstance/orders               True    Available   6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   True    Available   5m    orders_x
│      drift: connectionLimit should be 20, was 3: Corrected 4m ago
└─ Secret/orders-connection             -       published   5m
""",
        (child(*READY, drift=[DRIFT]),),
        SECRET,
    ),
    Case(
        "kinds without our conditions are read by kstatus",
        claim(*READY, bound="orders-connection"),
        Exit.DONE,
        """
NAME                          READY   REASON       AGE   EXTERNAL
PostgreSQLInstance/orders     True    Available    6m    composition postgres-onprem
├─ ConfigMap/orders-x         -       Current      5m
├─ Deployment/orders-x        False   InProgress   5m  <- first cause
└─ Secret/orders-connection   -       published    5m
""",
        (
            foreign("v1", "ConfigMap", data={"a": "1"}),
            foreign("apps/v1", "Deployment", spec={"replicas": 1}, status={"observedGeneration": 1}),
        ),
        SECRET,
    ),
    Case(
        "a child that is gone is the cause",
        claim(*READY, bound="orders-connection"),
        Exit.DONE,
        """
NAME                                    READY   REASON      AGE   EXTERNAL
PostgreSQLInstance/orders               True    Available   6m    composition postgres-onprem
├─ PostgresDatabase/orders-database-x   False   missing     -  <- first cause
│      the object is gone; Fairlead makes it anew or says why not
└─ Secret/orders-connection             -       published   5m
""",
        (("PostgresDatabase", "orders-database-x", None),),
        SECRET,
    ),
    Case(
        "a claim that nobody has looked at says so, of any kind",
        QUEUE,
        Exit.NOT_READY,
        """
NAME              READY     REASON              AGE   EXTERNAL
Queue/orders      Unknown   not seen yet        2s  <- first cause
│   no controller has looked at this object yet: is it running, and are the Compositions of this
│     kind Ready (`kubectl get flc`)?
└─ Secret/login   -         not published yet   -
""",
    ),
    Case(
        "another operator's object is read by kstatus, and has no Secret",
        {**QUEUE, "kind": "StatefulSet", "apiVersion": "apps/v1", "status": {"observedGeneration": 1, "replicas": 0}},
        Exit.NOT_READY,
        """
NAME                 READY   REASON       AGE   EXTERNAL
StatefulSet/orders   False   InProgress   2s  <- first cause
""",
    ),
    Case(
        "at 80 columns names in the cloud go below, and many leaves that are well are one line",
        claim(*LOST, bound="orders-connection"),
        Exit.STALLED,
        NARROW,
        (child(*LOST), *RULES),
        SECRET,
        Form(80),
    ),
    Case(
        "wide shows all, with what each says and where the cloud's own console has it",
        claim(*READY, bound="orders-connection"),
        Exit.DONE,
        WIDE,
        ((INSTANCE["kind"], "orders", INSTANCE), *RULES[:1]),
        SECRET,
        Form(120, wide=True),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_tree_begins_with_what_is_wrong(case: Case) -> None:
    tree = tree_of(case.claim, case.children, case.secret, NOW)

    assert [line for line, _ in lines_of(tree, case.form)] == case.lines.strip("\n").split("\n")
    assert exit_of(tree) is case.exit_code


def test_events_a_claim_and_the_graph_belong_to_a_tree() -> None:
    obj = child(*LOST)[2]
    obj["metadata"]["annotations"] = {"fairlead.dev/claim-name": "orders"}
    said = [
        {"type": "Warning", "reason": "DatabaseLost", "note": "it is gone", "eventTime": f"2026-11-21T11:5{minute}:00Z"}
        for minute in range(9)
    ]

    tree = with_events(tree_of(obj, (), None, NOW), {(obj["kind"], obj["metadata"]["name"]): said}, NOW)
    lines = [line.strip() for line, _ in lines_of(tree)]

    assert "of claim orders: fairlead trace orders" in lines
    assert [line for line in lines if "it is gone" in line][-1] == "Warning DatabaseLost, 2m ago: it is gone"
    assert len([line for line in lines if "it is gone" in line]) == 5
    assert list(dot_of(tree))[2:] == [
        '  n [label="PostgresDatabase/orders-database-x\\nFalse DatabaseLost", color="red"];',
        "}",
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "status", "link"),
    [
        ("aws.fairlead.dev/v1alpha1", "RDSInstance", {"atProvider": {"dbInstanceArn": CHINESE}},
         "https://cn-north-1.console.amazonaws.cn/rds/home?region=cn-north-1#database:id=a;is-cluster=false"),
        ("azure.fairlead.dev/v1alpha1", "FlexibleServer", {"atProvider": {"id": "/subscriptions/s/a b"}},
         "https://portal.azure.com/#resource/subscriptions/s/a%20b"),
        ("gcp.fairlead.dev/v1alpha1", "CloudSQLUser", {"account": "p-1", "externalName": "fl-a/app"},
         "https://console.cloud.google.com/sql/instances/fl-a/users?project=p-1"),
        ("gcp.fairlead.dev/v1alpha1", "CloudSQLInstance", {"externalName": "fl-a"}, ""),
        ("aws.fairlead.dev/v1alpha1", "RDSInstance", {"atProvider": {"dbInstanceArn": "arn:none"}}, ""),
        ("onprem.fairlead.dev/v1alpha1", "PostgresDatabase", {"externalName": "orders"}, ""),
    ],
)  # fmt: skip
def test_a_cloud_has_a_link(api_version: str, kind: str, status: JsonObject, link: str) -> None:
    assert console_of({"apiVersion": api_version, "kind": kind, "status": status}) == link
