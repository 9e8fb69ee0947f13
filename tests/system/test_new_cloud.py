"""A cloud that came with new files alone serves a claim: with kinds, rights, Composition and process of its own."""

from pathlib import Path

import pytest

from devcloud.install import until_served
from tests.support import new_cloud
from tests.support.audit import Match
from tests.support.kinds import CLAIM, SECRET, Kind, claim, is_ready
from tests.support.prepared import prepare
from tests.support.processes import Program
from tests.support.system import ADMIN_SECRET, COMPOSER, System, free_port

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CLOUD = new_cloud.CLOUD
_CONFIG = Kind(f"{_CLOUD}.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
_NAMESPACE = f"fairlead-{_CLOUD}"


async def _install(system: System, root: Path, namespace: str) -> None:
    crds = tuple((root / "crds").glob(f"{_CLOUD}.*.yaml"))
    deploy = root / "deploy" / "kustomize" / "clouds" / _CLOUD
    await system.kubectl.run("apply", "--server-side", *(f"--filename={path}" for path in crds))
    await until_served(system.kubectl, *crds)
    await system.kubectl.run("apply", "--server-side", f"--kustomize={deploy}")
    await system.kubectl.run(
        "apply", "--server-side", f"--filename={root / 'compositions' / f'postgres-{_CLOUD}.yaml'}"
    )
    await system.create(SECRET, SECRET.new(_NAMESPACE, ADMIN_SECRET, stringData=system.admin_login()))
    config = system.provider_config("default")
    await system.create(_CONFIG, _CONFIG.new("", "default", spec=config["spec"]))
    await prepare(system.api, namespace, _CLOUD, deploy=root / "deploy")


async def _start_provider(system: System, root: Path) -> Program:
    account = f"fairlead-provider-{_CLOUD}"
    kubeconfig = await system.plane.service_account_kubeconfig(_NAMESPACE, account)
    port = free_port()
    arguments = ("providers", _CLOUD, "--kubeconfig", str(kubeconfig), "--health-port", str(port))
    # Safe path: else the checkout that the tests run in would come before the copy that has the new cloud.
    environment = {"PYTHONPATH": str(root), "PYTHONSAFEPATH": "1"}
    program = Program(arguments, log=system.folder / f"provider-{_CLOUD}.log", environment=environment)
    await program.start()
    system.started.append(program)
    await program.until_healthy(port)
    return program


async def test_a_claim_is_served_by_the_new_cloud(system: System, namespace: str, tmp_path: Path) -> None:
    root = new_cloud.copy_checkout(tmp_path)
    new_cloud.add_cloud(root)
    await _install(system, root, namespace)
    await system.start_composer()
    await _start_provider(system, root)
    await system.until(_CONFIG, "", "default", is_ready)
    audit = system.audit()

    wanted = claim(namespace, "orders", compositionRef={"name": f"postgres-{_CLOUD}"}, deletionPolicy="Delete")
    await system.create(CLAIM, wanted)
    await system.until(CLAIM, namespace, "orders", is_ready)

    assert [child["kind"] for child in await system.children(namespace, "orders")] == ["ToyDatabase"]
    assert (await system.binding(namespace, "orders"))["provider"] == _CLOUD
    assert await system.logs_in(namespace, "orders")
    assert audit.requests(Match(user=COMPOSER, verbs=frozenset({"create"}), resource="toydatabases"))

    await system.delete(CLAIM, namespace, "orders")
    assert any(statement.startswith("DROP DATABASE") for statement in system.sql.changes())
