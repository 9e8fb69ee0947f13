"""The command lines and configurations of a node's programs, from where their files are (pure)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcloud.node.binaries import CNI_PLUGINS, NodePrograms

NAME = "fairlead"
"""The node's name."""
ADDRESS = "198.18.0.1"
"""The node's address, on the loop-back interface: of the range for tests of networks (RFC 2544), which nobody has."""
PODS = "198.18.1.0/24"
"""The addresses of its pods."""
BRIDGE = "fairlead0"
"""The bridge that joins its pods."""
NETWORK = "fairlead"
"""The name of the pods' network."""
DOMAIN = "cluster.local"
"""Where the names of Services end."""
DNS = "10.0.0.10"
"""The address that pods ask for names, as kubeadm has it: the tenth of the services' range."""
PAUSE_IMAGE = "localhost/pause:1"
"""The image of a pod's sandbox."""
DNS_IMAGE = "localhost/coredns:1"
"""The image of what answers at `DNS`."""


@dataclass(frozen=True, slots=True)
class NodeSite:
    """Where a node's programs and files are."""

    programs: NodePrograms
    folder: Path

    @property
    def socket(self) -> Path:
        """Containerd's socket."""
        return self.folder / "containerd.sock"

    @property
    def configurations(self) -> dict[str, str]:
        """The configuration files by their paths in the folder."""
        return {
            "containerd.toml": containerd_configuration(self),
            "cni/10-fairlead.conflist": json.dumps(cni_configuration(self)),
            "kubelet.json": json.dumps(kubelet_configuration(self)),
            "kube-proxy.json": json.dumps(proxy_configuration(self)),
        }

    def kubeconfig(self, name: str) -> Path:
        """Return the kubeconfig of one of the programs."""
        return self.folder / "kubeconfigs" / name


def containerd(site: NodeSite) -> tuple[str, ...]:
    """Return containerd's command line."""
    return ("containerd", f"--config={site.folder / 'containerd.toml'}")


def containerd_configuration(site: NodeSite) -> str:
    """Return containerd's configuration: all of its files in the folder, no AppArmor, no lower OOM scores than ours."""
    folder = site.folder
    return f"""\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
  address = "{site.socket}"
[debug]
  address = "{folder}/containerd-debug.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  sandbox_image = "{PAUSE_IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{folder}/cni"
"""


def cni_configuration(site: NodeSite) -> dict[str, Any]:
    """Return the pods' network: a bridge, addresses kept in the folder, and no way out of this machine."""
    addresses = {
        "type": "host-local",
        "dataDir": str(site.folder / "addresses"),
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": NETWORK, "plugins": [bridge]}


def scheduler(site: NodeSite) -> tuple[str, ...]:
    """Return kube-scheduler's command line; it listens nowhere."""
    kubeconfig = site.kubeconfig("system.kube-scheduler")
    return (str(site.programs.kube_scheduler), f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0")


def kubelet(site: NodeSite) -> tuple[str, ...]:
    """Return the kubelet's command line."""
    return (
        str(site.programs.kubelet),
        f"--config={site.folder / 'kubelet.json'}",
        f"--kubeconfig={site.kubeconfig(f'system.node.{NAME}')}",
        f"--root-dir={site.folder / 'kubelet'}",
        f"--hostname-override={NAME}",
        f"--node-ip={ADDRESS}",
    )


def kubelet_configuration(site: NodeSite) -> dict[str, Any]:
    """Return the kubelet's configuration: it asks the API server who may read logs and run commands."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(site.folder / "pki" / "authority.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(site.folder / "pki" / "kubelet.crt"),
        "tlsPrivateKeyFile": str(site.folder / "pki" / "kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [DNS],
        "clusterDomain": DOMAIN,
        "containerRuntimeEndpoint": f"unix://{site.socket}",
        # A machine for development is full sooner than a server.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(site.folder / "logs" / "pods"),
        "volumePluginDir": str(site.folder / "volume-plugins"),
    }


def proxy(site: NodeSite) -> tuple[str, ...]:
    """Return kube-proxy's command line."""
    return (str(site.programs.kube_proxy), f"--config={site.folder / 'kube-proxy.json'}")


def proxy_configuration(site: NodeSite) -> dict[str, Any]:
    """Return kube-proxy's configuration: nftables, and no setting of the kernel's connection tracking."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(site.kubeconfig("system.kube-proxy"))},
        "conntrack": {"maxPerCore": 0, "min": 0},
        "healthzBindAddress": "127.0.0.1:10256",
        "hostnameOverride": NAME,
        "metricsBindAddress": "127.0.0.1:10249",
        "mode": "nftables",
        # A pod that answers another one of its bridge would answer it past the proxy.
        "nftables": {"masqueradeAll": True},
        "nodePortAddresses": [f"{ADDRESS}/32"],
    }
