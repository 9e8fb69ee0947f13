"""The programs of Flux and Argo CD with their CRDs, and Flux's kstatus: built once from Go modules."""

from dataclasses import dataclass
from pathlib import Path

from devcloud.controlplane import modules
from devcloud.controlplane.modules import GoModule
from devcloud.locks import Progress

_HERE = Path(__file__).parent
_SOURCES = ("go.mod", "go.sum")
# Three, since each pins versions of its own of what they share.
_FLUX = GoModule(
    folder=_HERE / "flux",
    packages=("tool",),
    sources=_SOURCES,
    name="flux",
    title="Flux",
    copies={
        "source-crds": ("github.com/fluxcd/source-controller", "config/crd/bases"),
        "kustomize-crds": ("github.com/fluxcd/kustomize-controller", "config/crd/bases"),
    },
)
_ARGOCD = GoModule(
    folder=_HERE / "argocd",
    packages=("tool", "."),
    sources=(*_SOURCES, "main.go"),
    name="argocd",
    title="Argo CD",
    copies={"crds": ("github.com/argoproj/argo-cd/v3", "manifests/crds")},
)
_KSTATUS = GoModule(
    folder=_HERE / "kstatus", packages=(".",), sources=(*_SOURCES, "main.go"), name="kstatus", title="kstatus"
)


@dataclass(frozen=True, slots=True)
class FluxPrograms:
    """The folder of what was built of Flux."""

    folder: Path

    @property
    def source_controller(self) -> Path:
        """The controller of sources: it fetches from Git."""
        return self.folder / "source-controller"

    @property
    def kustomize_controller(self) -> Path:
        """The controller of Kustomizations: it applies, waits and prunes."""
        return self.folder / "kustomize-controller"

    @property
    def crds(self) -> tuple[Path, ...]:
        """The folders of its CRDs."""
        return (self.folder / "source-crds", self.folder / "kustomize-crds")


@dataclass(frozen=True, slots=True)
class ArgoCDPrograms:
    """The folder of what was built of Argo CD."""

    folder: Path

    @property
    def argocd(self) -> Path:
        """The application controller, the repository server and their Redis, by subcommand."""
        return self.folder / "argocd"

    @property
    def kustomize(self) -> Path:
        """Kustomize, which the repository server runs."""
        return self.folder / "kustomize"

    @property
    def crds(self) -> tuple[Path, ...]:
        """The CRDs that the application controller reads."""
        return tuple(self.folder / "crds" / f"{name}-crd.yaml" for name in ("application", "appproject"))


async def ensure_flux(progress: Progress) -> FluxPrograms:
    """Return Flux's two controllers, built from source where they are not yet: minutes, once.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    return FluxPrograms(await modules.ensure(_FLUX, progress))


async def ensure_argocd(progress: Progress) -> ArgoCDPrograms:
    """Return Argo CD's programs, built from source where they are not yet: minutes, once.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    return ArgoCDPrograms(await modules.ensure(_ARGOCD, progress))


async def ensure_kstatus(progress: Progress) -> Path:
    """Return a program that prints the kstatus of objects, by the library that Flux waits with.

    Raises:
        DevcloudError: There is no Go, or the build failed.
    """
    return await modules.ensure(_KSTATUS, progress) / "kstatus"
