"""Requests of T1, a tenant with rights in one namespace: each must be refused.

`mallory` holds the cluster's `edit` in the namespace of that name, `chief` its `cluster-admin`, `maker` besides `edit`
the right to make managed resources; `alice` is the neighbour. In braces stand the names of living objects.
"""

from __future__ import annotations

from typing import Any

from tests.security.attack import INVALID, Attack, labelled, merged, metadata
from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, NAMESPACE, PROVIDER_CONFIG, SECRET, claim, database

_CLAIMS, _OWN = CLAIM.path("mallory"), CLAIM.path("mallory", "own")
_CHILD = DATABASE.path("mallory", "{child}")
_FORGED = {
    "adopt": {"adopt": "16384"},
    "composition": {"composition": "of-another"},
    "consent": {"consent": "recreate=16384"},
    "identity": {"identity": "0f8fad5b-d9cb-469f-a165-70867728950e@alice/app"},
    "kinds": {"kinds": "A.b"},
}
_DRY = {"dryRun": "All", "fieldValidation": "Strict"}


def _claim(**spec: Any) -> JsonObject:
    return claim("mallory", "forged", **spec)


def _refused_spec(number: int, goal: str, **spec: Any) -> Attack:
    return Attack(number, goal, "mallory", "POST", _CLAIMS, _claim(**spec), INVALID, _DRY)


_CREATED = [
    Attack(8 + index, f"a claim is created with {name}", "mallory", "POST", _CLAIMS, merged(_claim(), metadata(**mark)),
           query=_DRY)
    for index, (name, mark) in enumerate(_FORGED.items())
]  # fmt: skip
_APPLIED = [
    Attack(16 + index, f"{name} is applied to a claim by force", "mallory", "APPLY", _OWN,
           merged(CLAIM.new("mallory", "own"), metadata(**mark)))
    for index, (name, mark) in enumerate(_FORGED.items())
]  # fmt: skip

_FORMS = (
    *(
        Attack(366 + index, f"a claim without a name of its own is created with {name}", "mallory", "POST", _CLAIMS,
               {**_claim(), "metadata": {"generateName": "forged-", **metadata(**_FORGED[name])["metadata"]}},
               query=_DRY)
        for index, name in enumerate(("identity", "consent"))
    ),
    *(
        Attack(368 + index, f"{name} is added to a claim by operations", "mallory", "JSON_PATCH", _OWN,
               [{"op": "add", "path": f"/metadata/annotations/fairlead.dev~1{name}", "value": _FORGED[name][name]}])
        for index, name in enumerate(("adopt", "consent"))
    ),
)  # fmt: skip

_KINDS = (
    Attack(4, "a Composition is created", "mallory", "POST", COMPOSITION.path(), COMPOSITION.new("", "made")),
    Attack(5, "a managed resource is created", "mallory", "POST", DATABASE.path("mallory"), database("mallory", "x")),
    Attack(6, "a ProviderConfig is created", "mallory", "POST", PROVIDER_CONFIG.path(), PROVIDER_CONFIG.new("", "x")),
    Attack(14, "the status of a claim is patched", "mallory", "PATCH", f"{_OWN}/status", {"status": {"identity": "x"}}),
    Attack(74, "a composed resource is deleted", "mallory", "DELETE", _CHILD),
    Attack(115, "a composed resource is patched", "mallory", "PATCH", _CHILD, {"spec": {"deletionPolicy": "Delete"}}),
    Attack(104, "a namespace is called ephemeral", "mallory", "PATCH", NAMESPACE.path("", "mallory"),
           labelled("ephemeral", "true")),
    Attack(117, "Compositions are read", "mallory", "GET", COMPOSITION.path()),
    Attack(118, "ProviderConfigs are read", "mallory", "GET", PROVIDER_CONFIG.path()),
    Attack(119, "the provider's Secrets are read", "mallory", "GET", SECRET.path("fairlead-onprem")),
    Attack(120, "the neighbour's claims are read", "mallory", "GET", CLAIM.path("alice")),
)  # fmt: skip

_SPECS = (
    _refused_spec(1, "1,000 extensions", extensions=[f"e{number}" for number in range(1000)]),
    _refused_spec(2, "1,000 parameters", parameters={f"a{number}": "1" for number in range(1000)}),
    _refused_spec(3, "a parameter of two KiB", parameters={"work_mem": "1" * 2048}),
    _refused_spec(55, "a Secret in the neighbour's folder", connectionSecretName="../alice/app-connection"),
    _refused_spec(56, "a Secret's name in a capital", connectionSecretName="A"),
    _refused_spec(57, "a Secret's name with a blank", connectionSecretName="a b"),
    _refused_spec(58, "a Secret's name of two lines", connectionSecretName="a\nb"),
    _refused_spec(59, "a Secret's name of 300 characters", connectionSecretName="a" * 300),
    _refused_spec(60, "a Secret in the neighbour's namespace", connectionSecretName="alice/app-connection"),
    _refused_spec(61, "a Secret's name with coded slashes", connectionSecretName="x%2f..%2fy"),
    _refused_spec(66, "a database name with a single quote", databaseName="a'b"),
    _refused_spec(67, "a database name in a capital", databaseName="A"),
    _refused_spec(68, "a database name with a blank", databaseName="a b"),
    _refused_spec(69, "a statement in a database name", databaseName='a"; drop role fairlead_admin; --'),
    _refused_spec(70, "a database name of two lines", databaseName="a\nb"),
    _refused_spec(71, "a zero byte in a database name", databaseName="a\x00b"),
    _refused_spec(72, "a database name of PostgreSQL's own", databaseName="pg_x"),
    _refused_spec(73, "a database name in a full-width letter", databaseName="\uff41"),
    _refused_spec(82, "an extension with a quote", extensions=["x'"]),
    _refused_spec(83, "an extension in capitals", extensions=["UPPER"]),
    _refused_spec(84, "a statement in an extension", extensions=['a"; create role x']),
    _refused_spec(85, "an extension with a dot", extensions=["a.b"]),
    _refused_spec(86, "an extension that ends a statement", extensions=["plperlu; "]),
    Attack(107, "a size that is null", "mallory", "POST", _CLAIMS,
           CLAIM.new("mallory", "forged", spec={"version": "16", "size": None}), INVALID, _DRY),
    _refused_spec(112, "a parameter's name with a quote", parameters={"a'b": "1"}),
    _refused_spec(113, "a parameter's name in a capital", parameters={"A": "1"}),
    _refused_spec(114, "a statement in a parameter's name", parameters={'work_mem" to \'1\'; --': "1"}),
    _refused_spec(128, "an unknown field deep within", backup={"retentionDays": 7, "retention": 7}),
    _refused_spec(129, "a user name with a double quote", username='a"b'),
    _refused_spec(130, "the administrator's name with a quote", username='fairlead_admin"'),
    _refused_spec(131, "a statement in a user name", username="x; alter role x superuser"),
    _refused_spec(132, "a user name beyond ASCII", username="\u00e9"),
    _refused_spec(356, "the login of Zalando's replication", username="standby"),
    _refused_spec(357, "the login of Zalando's pooler", username="pooler"),
    _refused_spec(358, "the login of CloudNativePG's replication", username="streaming_replica"),
    _refused_spec(359, "a login of Cloud SQL's own", username="cloudsqliamuser"),
    _refused_spec(360, "another login of Cloud SQL's own", username="cloudsqlobservabilityadmin"),
    _refused_spec(361, "a user name that ends in a line break", username="app\n"),
    _refused_spec(362, "an extension of two lines", extensions=["pgcrypto\n"]),
    _refused_spec(363, "a parameter's name of two lines", parameters={"work_mem\n": "1"}),
    _refused_spec(364, "two networks in one", network={"allowedCIDRs": ["10.0.0.0/8,0.0.0.0/0"]}),
    _refused_spec(365, "a schedule in place of a time", backup={"startTime": "02:00 * * * *"}),
    _refused_spec(133, "a version from before majors were one number", version="9.6"),
)  # fmt: skip

_CHIEFS = (
    Attack(43, "a consent on a child", "chief", "PATCH", _CHILD, metadata(consent="recreate=16384")),
    Attack(44, "the database's name of a child", "chief", "PATCH", _CHILD,
           {"spec": {"forProvider": {"databaseName": "of_alice"}}}, INVALID),
    Attack(45, "the external reference of a child", "chief", "PATCH", _CHILD, metadata(external_name="of_alice")),
    Attack(46, "the identity of a claim", "chief", "PATCH", _OWN, metadata(**_FORGED["identity"])),
    Attack(47, "the claim label of a child", "chief", "PATCH", _CHILD, labelled("claim", "x")),
    Attack(48, "the pause of a child", "chief", "PATCH", _CHILD, metadata(paused="true")),
    Attack(49, "the platform's right, held in one namespace", "chief", "PATCH", _OWN, metadata(**_FORGED["consent"])),
    Attack(50, "the status of a child", "chief", "PATCH", f"{_CHILD}/status", {"status": {"observedGeneration": 9}}),
    Attack(51, "the status of a claim", "chief", "PATCH", f"{_OWN}/status", {"status": {"observedGeneration": 9}}),
    Attack(52, "the teardown instruction", "chief", "PATCH", _CHILD, metadata(teardown="x/Delete")),
    Attack(53, "the user name of a child", "chief", "PATCH", _CHILD,
           {"spec": {"forProvider": {"username": "of_alice"}}}, INVALID),
)  # fmt: skip

_MARKS = (
    (135, {"account": "7301"}),
    (136, {"adopt": "16384"}),
    (137, {"adopt": "none"}),
    (138, {"brake_released": "2026-11-21T00:00:00Z"}),
    (139, {"claim_name": "app"}),
    (140, {"composition": "of-another"}),
    (141, {"consent": "recreate=16384"}),
    (142, {"external_name": "of_alice"}),
    (143, {"incarnation": "16384"}),
    (144, {"key": "a"}),
    (145, {"resource": "database"}),
    (146, {"teardown": "x/Delete"}),
)
_DIRECT = DATABASE.path("mallory", "direct")
_MAKERS = (
    *(
        Attack(number, f"a managed resource is created with {', '.join(mark)}: {', '.join(mark.values())}", "maker",
               "POST", DATABASE.path("mallory"), merged(database("mallory", "forged"), metadata(**mark)), query=_DRY)
        for number, mark in _MARKS
    ),
    Attack(147, "a managed resource is created with the label of the neighbour's claim", "maker", "POST",
           DATABASE.path("mallory"),
           merged(database("mallory", "forged"), labelled("claim", "of-alice")), query=_DRY),
    Attack(148, "the external name in a status is patched", "maker", "PATCH", f"{_DIRECT}/status",
           {"status": {"externalName": "of_alice"}}),
    Attack(149, "the external reference is changed", "maker", "PATCH", _DIRECT, metadata(external_name="of_alice")),
    Attack(151, "the external reference is set to the empty text", "maker", "PATCH", _DIRECT,
           metadata(external_name="", incarnation="", account="")),
)  # fmt: skip

ATTACKS = (*_CREATED, *_APPLIED, *_FORMS, *_KINDS, *_SPECS, *_CHIEFS, *_MAKERS)
