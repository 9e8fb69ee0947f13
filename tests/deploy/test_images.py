"""One image for each process: its own packages and its own cloud's SDK, by hash, not as root, on a base by digest."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from devcloud.manifests import objects_of

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "deploy" / "images" / "build"
CONTAINERFILE = (ROOT / "deploy" / "images" / "Containerfile").read_text(encoding="utf-8")
KUSTOMIZE = ROOT / "deploy" / "kustomize"
BASE = f"registry.example.com/python@sha256:{'0' * 64}"
# It writes down what it is asked to build and to start, as an engine would do it; an archive is 1 MiB, or SAVED bytes.
ENGINE = """\
#!/bin/sh
case $1 in
    info) exit "${ANSWERS:-0}" ;;
    images) echo "111 MB" ;;
    save) head -c 1048576 /dev/urandom ;;
    from) echo a-container ;;
    push) for last; do :; done; archive=${last#oci-archive:}; truncate -s "${SAVED:-1048576}" "${archive%%:*}" ;;
    rm) ;;
    build) echo "$0 $*" >>"$LOG" ;;
    run) echo "$0 $*" >>"$STARTED"; exit "${STARTS:-0}" ;;
esac
"""


def _deployed() -> set[str]:
    """Return the images of all Deployments."""
    folders = [KUSTOMIZE / "core" / "deployment", *KUSTOMIZE.glob("clouds/*/deployment")]
    objects = [YAML(typ="safe", pure=True).load(text) for folder in folders for text in objects_of(folder)]
    pods = [obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] == "Deployment"]
    return {container["image"] for pod in pods for container in pod["containers"]}


def _stages() -> dict[str, str]:
    """Return the instructions of each stage by its name."""
    parts = re.split(r"^FROM \S+ AS (\S+)\n", CONTAINERFILE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _build(folder: Path, *engines: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script with these engines on its PATH; return what it said, and what the engine was asked for."""
    programs = folder / "bin"
    programs.mkdir()
    for engine in engines:
        (programs / engine).write_text(ENGINE)
        (programs / engine).chmod(0o755)
    for program in (
        "basename",
        "dirname",
        "git",
        "gzip",
        "head",
        "mkdir",
        "mktemp",
        "rm",
        "sed",
        "sh",
        "truncate",
        "wc",
    ):
        (programs / program).symlink_to(_program(program))
    log = folder / "log"
    log.touch()
    ended = subprocess.run(
        [str(BUILD)],
        env={"PATH": str(programs), "LOG": str(log), "STARTED": str(folder / "started"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended, log.read_text().splitlines()


def _program(name: str) -> Path:
    folders = (Path(folder) for folder in os.environ["PATH"].split(":"))
    return next(folder / name for folder in folders if (folder / name).exists())


def test_every_process_has_its_image_and_the_command_line_another(tmp_path: Path) -> None:
    ended, calls = _build(tmp_path, "podman", BASE=BASE, REPOSITORY="registry.example.com/fairlead", TAG="7")

    assert ended.returncode == 0, ended.stderr
    tags = [re.findall(r"--tag registry\.example\.com/fairlead/(\S+):7 ", call) for call in calls]
    assert {name for names in tags for name in names} == _deployed() | {"fairlead-cli"}
    assert all(f"--build-arg BASE={BASE} " in call and call.endswith(" .") for call in calls)
    targets = {re.findall(r"--target (\S+)", call)[0] for call in calls}
    assert targets == {name for name, text in _stages().items() if "ENTRYPOINT" in text}
    assert ended.stdout.count("has 111 MB, compressed 2 MiB") == len(calls)
    started = (tmp_path / "started").read_text().splitlines()
    assert all(
        "run --rm --read-only --network none registry.example.com/fairlead/fairlead-" in call for call in started
    )
    assert [call.rpartition(":7 ")[2] for call in started] == [
        "--help",
        *(f"{folder.name} --help" for folder in sorted((KUSTOMIZE / "clouds").iterdir())),
        "--help",
    ]


@pytest.mark.parametrize(
    ("engines", "environment", "words"),
    [
        pytest.param((), {"BASE": BASE}, "install docker, podman or buildah", id="no engine"),
        pytest.param(("docker",), {"BASE": BASE, "ANSWERS": "1"}, "no container engine answers", id="no daemon"),
        pytest.param(("docker",), {"BASE": BASE, "ENGINE": "podman"}, "podman is not installed", id="another engine"),
        pytest.param(("docker",), {}, "BASE names no image", id="no base"),
        pytest.param(("docker",), {"BASE": "python:3.11"}, "name it by digest", id="a base by its tag"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_built(
    tmp_path: Path, engines: tuple[str, ...], environment: dict[str, str], words: str
) -> None:
    ended, calls = _build(tmp_path, *engines, **environment)

    assert (ended.returncode, calls) == (2, [])
    assert words in ended.stderr


def test_an_engine_that_answers_is_taken_before_one_that_does_not(tmp_path: Path) -> None:
    ended, calls = _build(tmp_path, "buildah", BASE=BASE)

    assert ended.returncode == 0, ended.stderr
    assert all("/buildah build " in call for call in calls)


def test_an_image_that_does_not_start_ends_the_build(tmp_path: Path) -> None:
    ended, calls = _build(tmp_path, "podman", BASE=BASE, STARTS="1")

    assert (ended.returncode, len(calls)) == (2, 1)
    assert "fairlead-composer:0.1.0 does not start" in ended.stderr


def test_an_image_that_grew_too_large_ends_the_build(tmp_path: Path) -> None:
    ended, calls = _build(tmp_path, "buildah", BASE=BASE, SAVED=str(121 * 2**20))

    assert (ended.returncode, len(calls)) == (2, 1)
    assert "fairlead-composer:0.1.0 is larger than 120 MiB" in ended.stderr


def test_archives_of_images_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    archives = tmp_path / "archives"
    ended, calls = _build(tmp_path, "buildah", BASE=BASE, ARCHIVES=str(archives))

    assert ended.returncode == 0, ended.stderr
    assert {f"{path.stem}.tar" for path in archives.iterdir()} == {path.name for path in archives.iterdir()}
    assert {path.stem for path in archives.iterdir()} == _deployed() | {"fairlead-cli"}
    assert len(calls) == len(_deployed()) + 1


def test_an_image_holds_the_packages_of_its_process_and_installs_its_extras() -> None:
    stages = _stages()
    built = {name.removeprefix("build-"): text for name, text in stages.items() if name.startswith("build-")}
    packages = {name: set(re.findall(r"^COPY (\w+) /app/", text, re.MULTILINE)) for name, text in built.items()}
    extras = {name: re.findall(r'--extra "?([^\s"]+)', text) for name, text in stages.items()}

    assert packages["composer"] == {"runtime", "apis", "composer"}
    assert packages["provider"] == {"runtime", "apis", "providers"}
    assert packages["cli"] >= {"fairlead", "devcloud", "composer", "providers", "apis", "runtime", "crds"}
    assert [extras[f"build-{name}"] for name in ("composer", "provider", "cli")] == [
        ["tracing"],
        ["tracing", "${CLOUD}"],
        ["cli"],
    ]
    for name in ("composer", "provider", "cli"):
        copied = re.findall(r"^COPY (.*)$", stages[name], re.MULTILINE)
        assert copied == [f"--from=build-{name} /venv /venv", f"--from=build-{name} /app /app"]
        assert 'RUN eval "$FINISH"' in built[name]


def test_nothing_runs_as_root_nothing_is_built_from_source_and_each_download_has_its_hash() -> None:
    installs = re.findall(r"uv sync .*", CONTAINERFILE)

    assert "USER 65532:65532" in _stages()["run"]
    assert "USER" not in "".join(text for name, text in _stages().items() if name != "run")
    assert len(installs) == 3
    assert CONTAINERFILE.count('RUN --mount=type=secret,id=authorities eval "$TRUST"') == 4
    assert all("--frozen" in install and "--no-build" in install for install in installs)
    assert "--require-hashes" in CONTAINERFILE
    assert re.findall(r"^FROM (\S+) AS (?:build|run)$", CONTAINERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_what_is_copied_is_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        source
        for text in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE)
        for source in text.split()
    }

    assert lines[1] == "*"
    assert kept == copied
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_the_pods_start_what_their_image_starts() -> None:
    stages = _stages()
    for folder, stage in ((KUSTOMIZE / "core", "composer"), (KUSTOMIZE / "clouds" / "onprem", "provider")):
        texts = (text for text in objects_of(folder / "deployment") if "kind: Deployment" in text)
        (deployment,) = (YAML(typ="safe", pure=True).load(text) for text in texts)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        entrypoint = re.search(r"^ENTRYPOINT \[(.*)\]$", stages[stage], re.MULTILINE)
        assert entrypoint is not None
        assert container["command"][:3] == [word.strip(' "') for word in entrypoint[1].split(",")]
