"""The real programs of a Kubernetes control plane: found, downloaded or built, once per user."""

from devcloud.controlplane.binaries import KUBERNETES_VERSION, Programs, ensure, find

__all__ = ["KUBERNETES_VERSION", "Programs", "ensure", "find"]
