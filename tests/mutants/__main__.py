"""`python -m tests.mutants [--seed N] [--only TEXT] [--base REV]`: plants bugs one by one, and says which no test sees.

Each mutant is planted in a work tree of its own, of HEAD or of another commit. The tests of the mutated module's own
file run until the first one fails, then those of its folder, then those of its part. Those of a seed are made from this
checkout's code, so that two commits can be compared. Exit 1 where one survives.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.mutants.listed import listed
from tests.mutants.mutant import Mutant
from tests.mutants.seeded import seeded

_ROOT: Final = Path(__file__).resolve().parents[2]
_LIMIT_S: Final = 600
_QUICK: Final = "not apiserver and not postgres and not slow"


def main() -> int:
    """Plant each mutant, run the tests that stand nearest, and say what became of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, help="mutants of a seed instead of the listed ones")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", default="", help="those whose name or file holds this text")
    parser.add_argument("--base", default="HEAD", help="the commit whose code and tests are taken")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), arguments.base)
        try:
            mutants = listed() if arguments.seed is None else seeded(_ROOT, arguments.seed, arguments.count)
            chosen = [mutant for mutant in mutants if arguments.only in f"{mutant.name} {mutant.file}"]
            outcomes = [_outcome(tree, mutant) for mutant in chosen]
        finally:
            _git("worktree", "remove", "--force", str(tree))
    counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    _say(f"{len(outcomes)} mutants: {counts}")
    return 1 if "survives" in counts else 0


def _outcome(tree: Path, mutant: Mutant) -> str:
    began, path = time.monotonic(), tree / mutant.file
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before.count(mutant.old) != 1:
        outcome = "not there"
    else:
        path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
        outcome = next(filter(None, (_seen_by(tree, folder) for folder in _tests(tree, mutant.file))), "survives")
        path.write_text(before, encoding="utf-8")
    _say(f"{mutant.name}\t{mutant.file}\t{outcome}\t{time.monotonic() - began:.0f} s")
    return "killed" if outcome.startswith("killed") else outcome


def _tests(tree: Path, file: str) -> list[str]:
    """Return the tests of a module: its own file, the nearest folder's, then the whole part's."""
    near = Path("tests") / Path(file).parent
    while not (tree / near).is_dir():
        near = near.parent
    own, whole = near / f"test_{Path(file).name}", Path("tests") / Path(file).parts[0]
    return [*([str(own)] if (tree / own).exists() else []), *dict.fromkeys([str(near), str(whole)])]


def _seen_by(tree: Path, folder: str) -> str:
    """Return which test of a folder failed; empty where all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", _QUICK, folder]
    try:
        run = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"killed by {folder}: it does not end"
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if run.returncode == 0 else f"killed by {failed[0].split(' - ')[0] if failed else folder}"


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(_ROOT), *arguments], check=True)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
