"""A Kubernetes node on this machine: containerd of Debian; kubelet, scheduler and kube-proxy built from Go modules."""

from devcloud.node.binaries import NodePrograms, ensure, find, refuse_unless_possible

__all__ = ["NodePrograms", "ensure", "find", "refuse_unless_possible"]
