"""The chart as Helm renders it: kustomize's rights, policies and pods, with what the values say and nothing else."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devcloud.manifests import objects_of
from tests.support import helm as helm_program
from tests.support.helm import RELEASE, ROOT, Rendered, objects, template

pytestmark = pytest.mark.slow

KUSTOMIZE = ROOT / "deploy" / "kustomize"
CLOUDS = sorted(path.parent.name for path in (KUSTOMIZE / "clouds").glob("*/kustomization.yaml"))
ALL = [option for cloud in CLOUDS for option in ("--set", f"providers.{cloud}.enabled=true")]
# Kinds of which no value changes anything.
VERBATIM = {
    "ClusterRole",
    "ClusterRoleBinding",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


@pytest.fixture(scope="session")
def helm() -> Path:
    return helm_program.program()


@pytest.fixture(scope="module")
def rendered(helm: Path) -> Rendered:
    return objects(template(helm, *ALL))


def _kustomized(*folders: str) -> Rendered:
    return objects("---\n".join(text for folder in folders for text in objects_of(KUSTOMIZE / folder)))


def _everything() -> Rendered:
    clouds = [f"clouds/{cloud}{part}" for cloud in CLOUDS for part in ("", "/deployment")]
    return _kustomized("core", "core/deployment", *clouds)


def _values(helm: Path, tmp_path: Path, **values: Any) -> Rendered:
    path = tmp_path / "values.json"
    path.write_bytes(msgspec.json.encode(values))
    return objects(template(helm, "--values", path))


def _refusal(helm: Path, *options: str) -> str:
    # Of two versions of Kubernetes the later one counts.
    ended = helm_program.run(helm, "template", "fairlead", helm_program.CHART, "--kube-version", "1.30.0", *options)
    assert ended.returncode != 0, "it was rendered"
    return ended.stderr


def test_lint_has_nothing_to_say(helm: Path) -> None:
    ended = helm_program.run(helm, "lint", "--strict", helm_program.CHART, *ALL)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_rights_and_policies_are_those_of_kustomize(rendered: Rendered) -> None:
    wanted = {key: document for key, document in _everything().items() if key[0] in VERBATIM}

    assert {key: document for key, document in rendered.items() if key[0] in VERBATIM} == wanted
    assert len(wanted) > 60


def test_pods_are_those_of_kustomize_but_for_the_image_and_the_log_level(rendered: Rendered) -> None:
    wanted = {key: document for key, document in _everything().items() if key[0] == "Deployment"}
    for deployment in wanted.values():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        container["image"] += ":0.1.0"
        container["imagePullPolicy"] = "IfNotPresent"
        container["args"] = [*container["args"], "--log-level=INFO"]

    assert {key: document for key, document in rendered.items() if key[0] == "Deployment"} == wanted


def test_a_kind_that_kustomize_lacks_is_a_crd_or_a_service(rendered: Rendered) -> None:
    kinds = {key[0] for key in rendered} - {key[0] for key in _everything()}

    assert kinds == {"CustomResourceDefinition", "Service"}
    assert {key for key in rendered if key[0] == "Service"} == {
        ("Service", key[1], key[2]) for key in rendered if key[0] == "Deployment"
    }


def test_crds_and_namespaces_outlive_the_release(rendered: Rendered) -> None:
    kept = {key: document for key, document in rendered.items() if key[0] in {"CustomResourceDefinition", "Namespace"}}
    keep = {"helm.sh/resource-policy": "keep"}
    reviewed = objects("\n---\n".join(path.read_text() for path in (ROOT / "crds").glob("*.yaml")))

    assert [document["metadata"].get("annotations") for document in kept.values()] == [keep] * len(kept)
    without = copy.deepcopy(kept)
    for document in without.values():
        del document["metadata"]["annotations"]
    namespaces = {key: document for key, document in _everything().items() if key[0] == "Namespace"}
    assert without == reviewed | namespaces


def test_a_cloud_that_is_off_brings_nothing(helm: Path) -> None:
    core = objects(template(helm))

    assert [key for key in core for cloud in CLOUDS if cloud in re.split(r"[.-]", f"{key[1]}-{key[2]}")] == []
    assert {key[1:] for key in core if key[0] == "Deployment"} == {("fairlead-system", "fairlead-composer")}


def test_the_namespace_of_the_release_is_not_made_by_it(helm: Path) -> None:
    namespaces = [key[2] for key in objects(template(helm, *ALL, namespace="fairlead-system")) if key[0] == "Namespace"]

    assert namespaces == [f"fairlead-{cloud}" for cloud in CLOUDS]


def test_a_namespace_with_claims_is_prepared_as_by_kustomize_and_its_secrets_are_watched(
    helm: Path, tmp_path: Path
) -> None:
    values = {cloud: {"enabled": True} for cloud in CLOUDS}

    prepared = _values(helm, tmp_path, providers=values, claimNamespaces=["shop", "blog"])

    wanted: Rendered = {}
    for cloud in CLOUDS:
        wanted |= _kustomized(f"clouds/{cloud}/claim-namespace")
    for namespace in ("shop", "blog"):
        bindings = {key[2]: document for key, document in prepared.items() if key[1] == namespace}
        watching = bindings.pop("fairlead-composer-secrets")
        assert watching["roleRef"]["name"] == "fairlead-composer-secrets"
        assert [subject["name"] for subject in watching["subjects"]] == ["fairlead-composer"]
        for document in bindings.values():
            del document["metadata"]["namespace"]
        assert bindings == {key[2]: document for key, document in wanted.items()}


def test_each_value_of_a_process_reaches_its_pod(helm: Path, tmp_path: Path) -> None:
    digest = f"sha256:{'0' * 64}"
    of_process = {
        "replicas": 3,
        "digest": digest,
        "args": ["--resync=60"],
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "volumes": [{"name": "company", "configMap": {"name": "company"}}],
        "volumeMounts": [{"name": "company", "mountPath": "/company", "readOnly": True}],
        "resources": {"requests": {"cpu": "1"}},
        "podLabels": {"azure.workload.identity/use": "true"},
        "podAnnotations": {"example.com/a": "b"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "topologySpreadConstraints": [],
        "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/fairlead"},
    }
    image = {"repository": "registry.example.com/fairlead", "pullSecrets": [{"name": "pull"}], "pullPolicy": "Always"}

    made = _values(helm, tmp_path, image=image, providers={"aws": {"enabled": True, **of_process}})

    deployment = made["Deployment", "fairlead-aws", "fairlead-provider-aws"]
    template_of_pod = deployment["spec"]["template"]
    pod = template_of_pod["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == f"registry.example.com/fairlead/fairlead-provider-aws@{digest}"
    assert container["args"][-2:] == ["--log-level=INFO", "--resync=60"]
    assert container["env"][0]["name"] == "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
    assert container["env"][-1:] == of_process["env"]
    assert container["volumeMounts"][-1:] == of_process["volumeMounts"]
    assert pod["volumes"][-1:] == of_process["volumes"]
    assert container["resources"] == of_process["resources"]
    assert template_of_pod["metadata"]["labels"] == {
        "app.kubernetes.io/name": "fairlead-provider-aws",
        "azure.workload.identity/use": "true",
    }
    assert template_of_pod["metadata"]["annotations"] == of_process["podAnnotations"]
    for name in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "topologySpreadConstraints"):
        assert pod[name] == of_process[name], name
    assert pod["imagePullSecrets"] == image["pullSecrets"]
    account = made["ServiceAccount", "fairlead-aws", "fairlead-provider-aws"]
    assert account["metadata"]["annotations"] == of_process["serviceAccountAnnotations"]
    # The other process keeps what it has.
    assert made["Deployment", "fairlead-system", "fairlead-composer"]["spec"]["replicas"] == 2


def test_nothing_leaves_a_pod_but_to_dns_the_api_server_its_cloud_and_named_databases(
    helm: Path, tmp_path: Path
) -> None:
    of_onprem = {"enabled": True, "databases": [{"cidr": "10.0.0.0/8"}, {"cidr": "192.0.2.7/32", "port": 6432}]}
    api_server = {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [6443]}

    made = _values(helm, tmp_path, providers={"onprem": of_onprem}, networkPolicy={"apiServer": api_server})

    core, onprem = (
        made["NetworkPolicy", namespace, "fairlead-ingress"]["spec"]
        for namespace in ("fairlead-system", "fairlead-onprem")
    )
    assert core["policyTypes"] == onprem["policyTypes"] == ["Ingress", "Egress"]
    assert core["podSelector"] == onprem["podSelector"] == {}
    assert [sorted({port["port"] for port in rule["ports"]}) for rule in core["egress"]] == [[53], [6443]]
    ports = [[port["port"] for port in rule["ports"]] for rule in onprem["egress"]]
    assert ports == [[53, 53], [6443], [443], [5432], [6432]]
    assert onprem["egress"][1]["to"] == core["egress"][1]["to"] == api_server["to"]
    assert [rule["to"] for rule in onprem["egress"][3:]] == [
        [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        [{"ipBlock": {"cidr": "192.0.2.7/32"}}],
    ]


def test_without_limits_on_what_leaves_the_policies_are_kustomizes_for_what_comes(helm: Path) -> None:
    made = objects(template(helm, *ALL, "--set", "networkPolicy.egress=false"))
    wanted = {key: document for key, document in _everything().items() if key[0] == "NetworkPolicy"}
    for document in wanted.values():
        document["spec"].pop("egress")
        document["spec"]["policyTypes"] = ["Ingress"]

    assert {key: document for key, document in made.items() if key[0] == "NetworkPolicy"} == wanted


def test_the_installation_is_written_and_outlives_the_release(helm: Path, tmp_path: Path) -> None:
    installation = {"id": "0123456789abcdef", "clusterUid": "00000000-0000-4000-8000-000000000000"}

    made = _values(helm, tmp_path, installation=installation)

    config_map = made["ConfigMap", "fairlead-system", "fairlead-installation"]
    assert config_map["data"] == installation
    assert config_map["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert not [key for key in objects(template(helm)) if key[0] == "ConfigMap"]


def test_monitoring_selects_the_services_and_holds_rules_and_dashboards(helm: Path, tmp_path: Path) -> None:
    metrics = {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboards": {"enabled": True},
    }

    made = _values(helm, tmp_path, providers={"onprem": {"enabled": True}}, metrics=metrics)

    services = {key[1:]: document for key, document in made.items() if key[0] == "Service"}
    monitors = {key[1:]: document for key, document in made.items() if key[0] == "ServiceMonitor"}
    assert services.keys() == monitors.keys()
    for key, monitor in monitors.items():
        assert monitor["spec"]["selector"]["matchLabels"].items() <= services[key]["metadata"]["labels"].items()
        assert monitor["spec"]["endpoints"][0]["port"] == services[key]["spec"]["ports"][0]["name"]
        deployment = made["Deployment", *key]["spec"]["template"]
        assert services[key]["spec"]["selector"] == deployment["metadata"]["labels"]
        (port,) = deployment["spec"]["containers"][0]["ports"]
        assert services[key]["spec"]["ports"][0]["targetPort"] == port["name"]
    (rules,) = [document for key, document in made.items() if key[0] == "PrometheusRule"]
    assert [group["name"] for group in rules["spec"]["groups"]]
    dashboards = [document for key, document in made.items() if key[0] == "ConfigMap"]
    folder = ROOT / "deploy" / "observability" / "dashboards"
    texts = {name: text for dashboard in dashboards for name, text in dashboard["data"].items()}
    assert texts == {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        pytest.param("replica=2", ("replica", "not allowed"), id="a value that does not exist"),
        pytest.param("composer.replica=2", ("composer", "replica"), id="a value of a process that does not exist"),
        pytest.param("providers.ibm.enabled=true", ("no such provider", "aws, azure, gcp, onprem"), id="no such cloud"),
        pytest.param("providers.aws.replicas=2", ("aws", "enabled"), id="a provider that is neither on nor off"),
        pytest.param("claimNamespaces={kube-system}", ("claimNamespaces",), id="kube-system has no claims"),
        pytest.param("claimNamespaces={fairlead-aws}", ("claimNamespaces",), id="a namespace of ours has no claims"),
        pytest.param("installation.id=0123456789abcdef", ("installation", "both"), id="half an installation"),
        pytest.param("composer.digest=sha256:0", ("digest",), id="a digest that is cut"),
        pytest.param(
            "metrics.service=false,metrics.serviceMonitor.enabled=true", ("needs",), id="a monitor of nothing"
        ),
    ],
)
def test_a_bad_value_is_refused_by_its_name(helm: Path, option: str, words: tuple[str, ...]) -> None:
    refusal = _refusal(helm, "--set", option)

    assert [word for word in words if word not in refusal] == [], refusal


def test_an_old_cluster_is_refused(helm: Path) -> None:
    assert "1.29" in _refusal(helm, "--kube-version", "1.29.0")


def test_the_release_has_a_namespace_of_its_own(rendered: Rendered) -> None:
    assert {key[1] for key in rendered} & {RELEASE, "default"} == set()
