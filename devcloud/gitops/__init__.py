"""The controllers that bring objects out of Git, as processes of this machine: Flux's two, and Argo CD's."""

from devcloud.gitops.binaries import (
    ArgoCDPrograms,
    FluxPrograms,
    ensure_argocd,
    ensure_flux,
    ensure_kstatus,
)

__all__ = ["ArgoCDPrograms", "FluxPrograms", "ensure_argocd", "ensure_flux", "ensure_kstatus"]
