"""The command lines of Flux and Argo CD: they listen at loop-back addresses, and keep their files in one folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devcloud.gitops import ArgoCDPrograms, FluxPrograms, components
from devcloud.gitops.components import Controller

FOLDER = Path("/state")
FLUX = components.flux(
    FluxPrograms(Path("/flux")), FOLDER, {name: 20000 + number for number, name in enumerate(components.PORTS)}
)
ARGOCD = components.argocd(
    ArgoCDPrograms(Path("/argocd")),
    FOLDER,
    {name: 30000 + number for number, name in enumerate(components.ARGOCD_PORTS)},
)


@pytest.mark.parametrize("controller", [*FLUX, *ARGOCD], ids=lambda controller: controller.name)
def test_each_address_is_a_loop_back_one(controller: Controller) -> None:
    addresses = [match.group(1) for match in re.finditer(r"=?([\w.]*):\d{5}\b", " ".join(controller.arguments))]

    assert set(addresses) <= {"127.0.0.1"}
    assert addresses


@pytest.mark.parametrize("controllers", [FLUX, ARGOCD], ids=["Flux", "Argo CD"])
def test_no_two_listen_at_one_port(controllers: tuple[Controller, ...]) -> None:
    listened = [
        re.search(r"(\d{5})$", argument)
        for controller in controllers
        for argument in controller.arguments
        if re.match(r"--(health-addr|metrics-addr|storage-addr|port|metrics-port)=", argument)
    ]
    ports = [match.group(1) for match in listened if match]

    assert len(ports) == len(set(ports)) >= 3


def test_flux_elects_no_leader_and_keeps_artifacts_in_its_folder() -> None:
    for controller in FLUX:
        assert "--enable-leader-election=false" in controller.arguments
    assert f"--storage-path={FOLDER}/artifacts" in FLUX[0].arguments


def test_argo_cd_finds_kustomize_and_its_files_in_its_own_folders() -> None:
    for controller in ARGOCD:
        assert controller.environment["PATH"].split(":")[0] == "/argocd"
        paths = [value for name, value in controller.environment.items() if value.startswith("/") and name != "PATH"]
        assert {Path(path).parent for path in paths} == {FOLDER}
