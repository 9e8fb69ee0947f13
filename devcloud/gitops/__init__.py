"""The programs that bring objects out of Git, built from their Go modules: Flux's two, and Argo CD's."""

from devcloud.gitops.binaries import (
    ArgoCDPrograms,
    FluxPrograms,
    ensure_argocd,
    ensure_flux,
    ensure_kstatus,
)

__all__ = ["ArgoCDPrograms", "FluxPrograms", "ensure_argocd", "ensure_flux", "ensure_kstatus"]
