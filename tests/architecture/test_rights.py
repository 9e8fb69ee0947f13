"""Every right that the installs grant, in one table: what is not here is granted to nobody."""

from __future__ import annotations

from collections.abc import Iterator

from tests.architecture import tree

_READS = "get list watch"
_PEOPLES = f"{_READS} create update patch delete"

# Role -> resource (`group/resource`, names behind `=`) -> verbs. A Role has its namespace before its name.
GRANTED: dict[str, dict[str, str]] = {
    "fairlead-view": {"database.fairlead.dev/postgresqlinstances": _READS},
    "fairlead-edit": {"database.fairlead.dev/postgresqlinstances": f"{_PEOPLES} deletecollection"},
    "fairlead-platform": {
        "fairlead.dev/compositions": _PEOPLES,
        "fairlead.dev/compositionrevisions": _PEOPLES,
        "database.fairlead.dev/postgresqlinstances": _PEOPLES,
        "fairlead.dev/protectedmetadata": "write",
    },
    "fairlead-offers": {"fairlead.dev/compositions": _READS},
    "fairlead-plan": {
        "fairlead.dev/compositions": _READS,
        "fairlead.dev/compositionrevisions": _READS,
        **{f"{cloud}.fairlead.dev/providerconfigs": "get" for cloud in ("aws", "azure", "gcp", "onprem")},
        "apiextensions.k8s.io/customresourcedefinitions": _READS,
    },
    "fairlead-system/fairlead-plan-environments": {"/configmaps": "get"},
    "fairlead-composer": {
        "database.fairlead.dev/postgresqlinstances": f"{_READS} patch",
        "database.fairlead.dev/postgresqlinstances/status": "patch",
        "database.fairlead.dev/postgresqlinstances/finalizers": "update",
        "fairlead.dev/compositions": f"{_READS} patch",
        "fairlead.dev/compositions/status": "patch",
        "fairlead.dev/compositionrevisions": f"{_READS} create patch delete",
        "fairlead.dev/compositionrevisions/status": "patch",
        "/namespaces": _READS,
        "apiextensions.k8s.io/customresourcedefinitions": _READS,
        "events.k8s.io/events": "create",
    },
    "fairlead-composer-claim-namespace": {"/secrets": "get create update delete", "/configmaps": "get"},
    "fairlead-composer-secrets": {"/secrets": "list watch"},
    "fairlead-composer-aggregated": {},
    "fairlead-system/fairlead-composer": {
        "coordination.k8s.io/leases": "create",
        "coordination.k8s.io/leases=fairlead-composer": "get watch update",
        "/configmaps": "list watch",
    },
    "fairlead-system/fairlead-installation-reader": {"/configmaps=fairlead-installation": "get"},
}
# Operator -> what the composer may compose of it.
OPERATORS: dict[str, tuple[str, ...]] = {
    "ack": (
        *(f"rds.services.k8s.aws/{kind}" for kind in ("dbinstances", "dbclusters", "dbsubnetgroups")),
        *(f"rds.services.k8s.aws/{kind}" for kind in ("dbparametergroups", "dbclusterparametergroups")),
    ),
    "aso": tuple(
        f"dbforpostgresql.azure.com/flexibleservers{suffix}"
        for suffix in ("", "databases", "firewallrules", "configurations")
    ),
    "cnpg": tuple(f"postgresql.cnpg.io/{kind}" for kind in ("clusters", "databases", "poolers", "scheduledbackups")),
    "kcc": tuple(f"sql.cnrm.cloud.google.com/{kind}" for kind in ("sqlinstances", "sqldatabases", "sqlusers")),
    "zalando": ("acid.zalan.do/postgresqls",),
}
GRANTED |= {
    f"fairlead-composer-{operator}": dict.fromkeys(kinds, f"{_READS} create patch delete")
    for operator, kinds in OPERATORS.items()
}
CLOUDS = sorted(path.name for path in (tree.KUSTOMIZE / "clouds").iterdir())


def _kinds(cloud: str) -> list[str]:
    """Return the plurals of a cloud's managed resources, by its CRDs."""
    crds = [crd["spec"] for _, crd in tree.documents(tree.CRDS)]
    ours = [spec for spec in crds if (spec["group"], spec["scope"]) == (f"{cloud}.fairlead.dev", "Namespaced")]
    return [spec["names"]["plural"] for spec in ours]


def _of_a_cloud(cloud: str) -> dict[str, dict[str, str]]:
    kinds = _kinds(cloud)
    group, provider = f"{cloud}.fairlead.dev", f"fairlead-provider-{cloud}"
    with_configs = (*kinds, "providerconfigs")
    return {
        f"fairlead-view-{cloud}": {f"{group}/{kind}": _READS for kind in kinds},
        f"fairlead-platform-{cloud}": {f"{group}/{kind}": _PEOPLES for kind in with_configs},
        f"fairlead-composer-{cloud}": {f"{group}/{kind}": f"{_READS} create patch delete" for kind in kinds},
        provider: {
            **{f"{group}/{kind}": f"{_READS} patch" for kind in with_configs},
            **{f"{group}/{kind}/status": "patch" for kind in with_configs},
            "/namespaces": _READS,
            "apiextensions.k8s.io/customresourcedefinitions": "get",
            "events.k8s.io/events": "create",
        },
        f"{provider}-claim-namespace": {"/secrets": "get create update delete"},
        f"fairlead-{cloud}/{provider}": {
            "coordination.k8s.io/leases": "create",
            f"coordination.k8s.io/leases={provider}": "get watch update",
            "/secrets": f"{_READS} create",
        },
    }


# Binding -> role and account. A RoleBinding has its namespace before it; `*`: whichever the command names.
BOUND = {
    "fairlead-composer": "fairlead-composer: fairlead-composer",
    "fairlead-composer-aggregated": "fairlead-composer-aggregated: fairlead-composer",
    "fairlead-system/fairlead-composer": "Role fairlead-composer: fairlead-composer",
    "*/fairlead-composer-claim-namespace": "fairlead-composer-claim-namespace: fairlead-composer",
    "fairlead-composer-all-namespaces": "fairlead-composer-claim-namespace: fairlead-composer",
}


def _bound_of(cloud: str) -> dict[str, str]:
    provider = f"fairlead-provider-{cloud}"
    return {
        provider: f"{provider}: {provider}",
        f"fairlead-composer-{cloud}": f"fairlead-composer-{cloud}: fairlead-composer",
        f"fairlead-{cloud}/{provider}": f"Role {provider}: {provider}",
        f"fairlead-system/fairlead-installation-reader-{cloud}": f"Role fairlead-installation-reader: {provider}",
        f"*/{provider}-claim-namespace": f"{provider}-claim-namespace: {provider}",
        f"{provider}-all-namespaces": f"{provider}-claim-namespace: {provider}",
    }


def _rules(role: dict[str, list[dict[str, list[str]]]]) -> Iterator[tuple[str, str]]:
    for rule in role.get("rules") or ():
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames") or ("",):
                    yield f"{group}/{resource}{f'={name}' if name else ''}", " ".join(rule["verbs"])


def test_the_roles_grant_what_the_table_says_and_no_more() -> None:
    granted = {}
    for _, document in tree.documents(tree.KUSTOMIZE):
        if document["kind"] in {"ClusterRole", "Role"}:
            meta = document["metadata"]
            name = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
            rules = list(_rules(document))
            assert len(dict(rules)) == len(rules), f"{name} names one resource in two rules"
            granted[name] = dict(rules)
    wanted = dict(GRANTED)
    for cloud in CLOUDS:
        wanted |= _of_a_cloud(cloud)

    assert granted == wanted


def test_the_accounts_are_bound_to_what_the_table_says_and_no_more() -> None:
    bound = {}
    for _, document in tree.documents(tree.KUSTOMIZE):
        if document["kind"] in {"ClusterRoleBinding", "RoleBinding"}:
            meta, role = document["metadata"], document["roleRef"]
            where = f"{meta.get('namespace', '*')}/" if document["kind"] == "RoleBinding" else ""
            granted = f"{'Role ' if role['kind'] == 'Role' else ''}{role['name']}"
            (subject,) = document["subjects"]
            assert subject["kind"] == "ServiceAccount"
            bound[where + meta["name"]] = f"{granted}: {subject['name']}"
    wanted = dict(BOUND)
    for cloud in CLOUDS:
        wanted |= _bound_of(cloud)

    assert bound == wanted


def test_an_install_lets_no_process_use_secrets_of_the_whole_cluster() -> None:
    folders = list((tree.KUSTOMIZE).rglob("kustomization.yaml"))
    by_choice = {path for path in folders if "all-namespaces" in path.parent.name}

    naming = [path for path in folders if path not in by_choice and "all-namespaces" in path.read_text()]

    assert len(by_choice) == len(CLOUDS) + 2
    assert naming == []
