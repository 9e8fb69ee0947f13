"""A node's configurations: all of its files in its folder, nothing that listens for other machines."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from devcloud.controlplane import Programs
from devcloud.controlplane.components import Ports, Site, apiserver, controller_manager
from devcloud.errors import DevcloudError
from devcloud.node import NodePrograms, binaries, components, dns
from devcloud.node.components import ADDRESS, PODS, NodeSite

BIN = Path("/programs")
BUILT = ("kubelet", "kube-proxy", "kube-scheduler", "pause", "coredns")
SITE = NodeSite(NodePrograms(*(BIN / name for name in BUILT)), Path("/n"))


def _plane(node_address: str | None) -> Site:
    programs = Programs(BIN / "etcd", BIN / "kube-apiserver", BIN / "kube-controller-manager", BIN / "kubectl")
    return Site(programs, Path("/p"), Ports(1, 2, 3, 4), node_address)


def test_what_the_node_listens_at_is_this_machines_own() -> None:
    text = json.dumps(SITE.configurations)
    addresses = set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b(?!/)", text)) - {components.DNS}

    assert ADDRESS in addresses
    assert {address for address in addresses if not ipaddress.ip_address(address).is_loopback} == {ADDRESS}
    assert ipaddress.ip_address(ADDRESS) in ipaddress.ip_network("198.18.0.0/15")
    assert ipaddress.ip_address(ADDRESS) not in ipaddress.ip_network(PODS)


def test_all_files_of_containerd_are_in_the_nodes_folder() -> None:
    configuration = tomllib.loads(SITE.configurations["containerd.toml"])

    plugins = configuration["plugins"]
    cri = plugins["io.containerd.grpc.v1.cri"]
    paths = [
        *(configuration["root"], configuration["state"], configuration["grpc"]["address"]),
        *(configuration["debug"]["address"], plugins["io.containerd.internal.v1.opt"]["path"], cri["cni"]["conf_dir"]),
    ]
    assert all(path.startswith("/n/") for path in paths)
    assert cri["sandbox_image"] == components.PAUSE_IMAGE


def test_a_kubelet_answers_nobody_without_a_credential() -> None:
    configuration = components.kubelet_configuration(SITE)

    assert configuration["authentication"]["anonymous"] == {"enabled": False}
    assert configuration["authorization"] == {"mode": "Webhook"}
    assert "readOnlyPort" not in configuration


def test_a_plane_that_a_node_may_join_restricts_it_and_runs_all_controllers() -> None:
    joined, alone = _plane(ADDRESS), _plane(None)

    assert {f"--bind-address={ADDRESS}", "--authorization-mode=Node,RBAC"} < set(apiserver(joined, ()))
    assert "--enable-admission-plugins=NodeRestriction" in apiserver(joined, ())
    assert "--controllers=*" in controller_manager(joined)
    assert {"--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"} < set(apiserver(alone, ()))
    assert ADDRESS in joined.server_hosts
    assert ADDRESS not in alone.server_hosts


def test_the_dns_server_answers_where_pods_ask_and_runs_as_any_pod_may() -> None:
    served = {document["kind"]: document for document in dns.objects()}

    (resolver,) = components.kubelet_configuration(SITE)["clusterDNS"]
    assert served["Service"]["spec"]["clusterIP"] == resolver
    assert served["Service"]["spec"]["selector"] == served["Deployment"]["spec"]["selector"]["matchLabels"]
    (container,) = served["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["runAsNonRoot"]
    assert min(port["containerPort"] for port in container["ports"]) >= 1024
    assert {verb for rule in served["ClusterRole"]["rules"] for verb in rule["verbs"]} == {"list", "watch"}


def test_without_root_no_node_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(DevcloudError, match="run it as root"):
        binaries.refuse_unless_possible()


def test_what_is_missing_of_debians_packages_is_said_as_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("nft", "ip"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(binaries._DEBIAN, "/nowhere/bridge", binaries._DEBIAN[str(binaries.CNI_PLUGINS / "bridge")])

    with pytest.raises(DevcloudError) as refused:
        binaries.refuse_unless_possible()

    line = "apt-get install --no-install-recommends containerd runc containernetworking-plugins"
    assert str(refused.value).endswith(line)
