"""What a shell offers at a tab: names that an API server has, and words of our own; `kubectl_complete-fairlead`.

The scripts of `fairlead completion` know commands and options themselves and ask here for names alone. The protocol is
that of kubectl's plugins: a candidate a line, then a line with what the shell is to do besides.
Sources: kubectl, "Plugins: shell completion" (KEP-859); cobra, `ShellCompDirective`.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fairlead.kube_options import Server
    from runtime.kube import Kube
    from runtime.objects import Resource

COMPLETE: Final = "__complete"
_NO_FILES, _FILES = ":4", ":0"
_SECONDS = 2.0
_MOST = 500
# A name of Kubernetes, a path, a reason: nothing that a shell reads otherwise.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@=:,-]*|--?[a-z-]+")
_VALUES: Final = {
    "-n": "namespace",
    "--namespace": "namespace",
    "--composition": "composition",
    "--context": "context",
    "--cloud": "cloud",
    "--clouds": "cloud",
    "--from-cluster": "",
    "--config": "config",
}
_PLACES: Final = {
    "trace": "claim",
    "psql": "claim",
    "pause": "claim",
    "resume": "claim",
    "wait": "claim",
    "backups": "config",
    "offers": "composition",
    "rollout status": "composition",
    "rollout history": "composition",
    "rollout undo": "composition",
    "rollout pause": "composition",
    "rollout resume": "composition",
    "explain": "reason",
    "prepare": "namespace",
    "orphans": "config",
    "import preview": "claim",
    "import adopt": "claim",
    "import find": "config",
    "import show": "config",
    "import write": "config",
}
_GROUPS: Final = frozenset({"composition", "crd", "import", "migrate", "rollout"})
_FILE_COMMANDS: Final = frozenset({"render", "validate", "plan", "apply", "test", "simulate", "crd check"})


def main() -> None:
    """Print candidates for the words on the command line, the last of which is being typed."""
    words = sys.argv[1:]
    if words[:1] == [COMPLETE]:
        print("\n".join(candidates(words[1:])))
        return
    offered = candidates(words)
    path = _path(words)
    print("\n".join([*offered, _FILES if not offered and path in _FILE_COMMANDS else _NO_FILES]))


def candidates(words: Sequence[str]) -> list[str]:
    """Return what the last word may become; nothing where nobody knows, whatever the reason is."""
    *before, current = words or [""]
    thing = _VALUES.get(before[-1] if before else "")
    if thing is None:
        thing = "" if current.startswith("-") else _PLACES.get(_path(before), "")
    offered = _of(thing, before, current) if thing else _static(before, wants_options=current.startswith("-"))
    fitting = sorted({name for name in offered if name.startswith(current) and _PLAIN.fullmatch(name)})
    return fitting[:_MOST]


def _path(words: Sequence[str]) -> str:
    """Return the command of some words: one, or two where the first is a group."""
    pairs = zip(["", *words], words, strict=False)
    plain = [word for option, word in pairs if not word.startswith("-") and option not in _VALUES]
    return " ".join(plain[: 2 if _GROUPS.issuperset(plain[:1]) else 1])


def _static(before: Sequence[str], *, wants_options: bool) -> list[str]:
    """Return the commands of a group, or the options of a command. No client of Kubernetes is loaded for them."""
    from fairlead.cli import app

    command = app
    with suppress(KeyError):
        for word in _path(before).split():
            command = command[word]
    arguments = command.assemble_argument_collection() if command.default_command else ()
    names = [*command, *(name for argument in arguments for name in argument.names)]
    return [name for name in names if name.startswith("-") == wants_options and name == name.lower()]


def _of(thing: str, before: Sequence[str], current: str) -> Iterable[str]:
    match thing:
        case "reason":
            from fairlead.assets import assets

            page = (assets("docs") / "troubleshooting.md").read_text(encoding="utf-8")
            return re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
        case "cloud":
            from devcloud.clouds import names

            listed = current.rpartition(",")
            return [f"{listed[0]}{listed[1]}{name}" for name in names()] if listed[1] else names()
        case "context":
            from fairlead.cluster import contexts

            return contexts(_server(before))
        case _:
            return _names_at(_READERS[thing], _server(before), _after(before, "-n", "--namespace"))


def _after(words: Sequence[str], *options: str) -> str:
    """Return the value of an option, empty where it has none."""
    return next((value for option, value in itertools.pairwise(words) if option in options), "")


def _server(words: Sequence[str]) -> Server:
    from fairlead.kube_options import Server

    kubeconfig = _after(words, "--kubeconfig")
    return Server(Path(kubeconfig) if kubeconfig else None, _after(words, "--context"))


def _names_at(read: Callable[[Kube, str], Awaitable[list[str]]], server: Server, namespace: str) -> list[str]:
    """Ask the API server; a person who types waits for no error and for no server that is down."""
    import asyncio

    from fairlead.cluster import connected, current_namespace
    from fairlead.exits import CommandError
    from runtime.errors import ApiError

    async def ask() -> list[str]:
        async with asyncio.timeout(_SECONDS), connected(server) as kube:
            return await read(kube, namespace or current_namespace(server))

    with suppress(ApiError, CommandError, TimeoutError, OSError):
        return asyncio.run(ask())
    return []


async def _names(kube: Kube, resource: Resource, namespace: str = "") -> list[str]:
    from runtime.kube import Selection
    from runtime.objects import key_of, loads

    page = await kube.list_page(resource, Selection(namespace=namespace, metadata_only=True))
    return [key_of(loads(item)).name for item in page.items]


async def _namespaces(kube: Kube, _: str) -> list[str]:
    from runtime.objects import NAMESPACES

    return await _names(kube, NAMESPACES)


async def _compositions(kube: Kube, _: str) -> list[str]:
    from apis import names

    return await _names(kube, names.COMPOSITIONS)


async def _claims(kube: Kube, namespace: str) -> list[str]:
    from fairlead.discovery import Discovery

    return await _names(kube, await Discovery(kube).resource_named("PostgreSQLInstance"), namespace)


async def _configs(kube: Kube, _: str) -> list[str]:
    from fairlead.discovery import Discovery

    kinds = await Discovery(kube).config_kinds()
    return [f"{kind.group.partition('.')[0]}pc/{name}" for kind in kinds for name in await _names(kube, kind)]


_READERS: Final[dict[str, Callable[[Kube, str], Awaitable[list[str]]]]] = {
    "namespace": _namespaces,
    "composition": _compositions,
    "claim": _claims,
    "config": _configs,
}

_BASH = """
_fairlead_with_names() {
  _fairlead "$@"
  if [[ ${#COMPREPLY[@]} -eq 0 && "${COMP_WORDS[COMP_CWORD]}" != -* ]]; then
    local name
    while IFS= read -r name; do
      [[ -n "$name" ]] && COMPREPLY+=("$name")
    done < <(fairlead __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  fi
}

complete -F _fairlead_with_names fairlead
"""
_ZSH = """
_fairlead() {
  local before=$compstate[nmatches] insert=$compstate[insert] list=$compstate[list]
  local -a typed names
  typed=("${(@)words[2,CURRENT]}")
  _cyclopts_fairlead "$@"
  if [[ $compstate[nmatches] -eq $before && "$typed[-1]" != -* ]]; then
    names=("${(@f)$(fairlead __complete "${(@)typed}" 2>/dev/null)}")
    # Where it had nothing to offer it has said that nothing shall be inserted.
    compstate[insert]=$insert
    compstate[list]=$list
    compadd -a names
  fi
}

if [[ "$funcstack[1]" == "_fairlead" ]]; then
  _fairlead "$@"
else
  compdef _fairlead fairlead
fi
"""
_FISH = """
# Names, where the words before are no command alone: an API server is asked.
function __fish_fairlead_names
    set -l words (commandline -opc)
    set -e words[1]
    fairlead __complete $words (commandline -ct) 2>/dev/null
end
function __fish_fairlead_wants_names
    test (count (commandline -opc)) -gt 1; and not string match -q -- "-*" (commandline -ct)
end
complete -c fairlead -n __fish_fairlead_wants_names -f -a '(__fish_fairlead_names)'
"""
NAMES_OF_SHELLS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""What a shell's script has behind the commands and options: it asks for names where these have nothing to offer."""
