"""The command line.

Each command imports what it needs when it runs: `--help` and `render` load no Kubernetes client and no SDK.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from devcloud import clouds as simulated
from fairlead import (
    cli_fleet,
    cli_import,
    cli_install,
    cli_live,
    cli_migrate,
    cli_new,
    cli_offerings,
    cli_plan,
    cli_rollout,
)
from fairlead.exits import CommandError, Exit
from fairlead.printing import to_errors, to_output

_EXITS = (
    "Exit codes: 0 done or no change; 1 the tool failed; 2 invalid input or template; 3 differences or drift; "
    "4 the plan destroys or replaces; 5 not ready yet; 6 stalled: only a person's change helps; 7 refused for safety; "
    "64 usage; 130 interrupted."
)

# The end of a line within a paragraph, or within the text of an argument.
_BREAK = re.compile(r"(?<=\S)\n(?: {8})?(?=\S)")
_STARTING = frozenset({"up", "demo"})

app = App(
    name="fairlead",
    help="Guide a developer's claim for a PostgreSQL to the right cloud, and keep it true.",
    help_epilogue=_EXITS,
    help_format="plaintext",
    version_flags=["--version"],
    default_parameter=Parameter(show_default=False),
    suppress_keyboard_interrupt=False,
)

Clouds = Annotated[str, Parameter(help=f"Simulated clouds, with commas between: {', '.join(simulated.names())}.")]


def main() -> None:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that lacks the tree's lines still gets the words.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code. What went wrong is one sentence on standard error."""
    try:
        return _answer(list(_with_standard_input(arguments)))
    except (BrokenPipeError, SystemExit) as error:
        # Whoever read our output has seen enough (rich exits then); the interpreter must not flush the rest at its end.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except KeyboardInterrupt:
        stays = "; what was started stays: `fairlead up` goes on with it, `fairlead down` ends it"
        return _fail(f"interrupted{stays if arguments[0] in _STARTING else ''}", Exit.INTERRUPTED)


def _with_standard_input(arguments: Sequence[str]) -> Iterator[str]:
    """Let `-` mean standard input where a file is asked for; what follows `--` is another program's."""
    ours = list(arguments).index("--") if "--" in arguments else len(arguments)
    yield from ("/dev/stdin" if argument == "-" else argument for argument in arguments[:ours])
    yield from arguments[ours:]


def _answer(arguments: Sequence[str]) -> int:
    from devcloud.errors import DevcloudError
    from runtime.errors import ApiError

    try:
        answer = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = " ".join(("fairlead", *(error.command_chain or ())))
        return _fail(f"{error}\n{command} --help tells more.", Exit.USAGE)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except (DevcloudError, ApiError) as error:
        return _fail(str(error), Exit.TOOL_FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", Exit.TOOL_FAILED)
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} is not installed: install fairlead[cli,devcloud]", Exit.TOOL_FAILED)
    return int(answer or Exit.DONE)


def _flow(commands: App) -> None:
    """Join the lines of each paragraph of the commands' texts, so that a screen of any width breaks them anew.

    Plain text is shown as it is; a reader of Markdown, which joins lines, is a third of what `--help` costs.
    """
    for command in (commands[name] for name in commands if not name.startswith("-")):
        if command.default_command is None:
            _flow(command)
        else:
            command.default_command.__doc__ = _BREAK.sub(" ", inspect.getdoc(command.default_command) or "")


def _fail(text: str, code: Exit) -> Exit:
    to_errors(f"fairlead: {text}")
    return code


@app.command
def up(*, clouds: Clouds = "", node: Annotated[bool, Parameter(negative="")] = False) -> Exit:
    """Bring up a whole platform on this machine: API server, simulated clouds, composer, providers. It stays up.

    Without --clouds a new platform gets a platform team's own server, and one that was there keeps what it has.

    Args:
        clouds: Their names.
        node: As root, with a node that runs pods; what is missing of Debian's packages is said.
    """
    import asyncio

    from fairlead import platform

    asyncio.run(platform.up(platform.names_in(clouds), node=node))
    return Exit.DONE


@app.command
def down(
    *,
    keep_data: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
) -> Exit:
    """Stop the platform of `up` and delete its claims and databases, once that was agreed to.

    Args:
        keep_data: Delete nothing: the next `up` goes on where this one ended.
        yes: Do not ask. Without a terminal nobody can be asked, and nothing is deleted without this.
    """
    import asyncio

    from fairlead import platform

    if not (yes or keep_data):
        platform.agree_to_deletion()
    asyncio.run(platform.down(keep_data=keep_data))
    return Exit.DONE


@app.command
def prepare(*namespaces: str) -> Exit:
    """Prepare namespaces of the platform of `up` for claims: composer and providers may use Secrets there, by name.

    Elsewhere: kubectl apply -n NAMESPACE -k deploy/kustomize/claim-namespace

    Args:
        namespaces: Those that exist and are to have claims; `default` is prepared by `up`.
    """
    import asyncio

    from fairlead import platform

    if not namespaces:
        raise CommandError("prepare: name a namespace", exit_code=Exit.USAGE)
    asyncio.run(platform.prepare(namespaces))
    return Exit.DONE


@app.command
def env() -> Exit:
    """Print what a shell needs to talk to the platform of `up`: eval "$(fairlead env)"."""
    import asyncio

    from fairlead import platform

    print(asyncio.run(platform.shell_lines()))
    return Exit.DONE


@app.command
def demo(*, clouds: Clouds = "") -> Exit:
    """Bring the platform up and run its steps: claims, psql, drift repaired, a lost database, a broken claim."""
    import asyncio

    from fairlead import demo as stories
    from fairlead import platform

    asyncio.run(stories.run_demo(platform.names_in(clouds)))
    return Exit.DONE


@app.command
def render(  # noqa: PLR0913 - one for each option
    claims: Path,
    /,
    *,
    compositions: Annotated[Path | None, Parameter(name=["--compositions", "-c"])] = None,
    identity: str = "00000000-0000-0000-0000-000000000000",
    observed: Path | None = None,
    ready: Literal["all", "none"] = "none",
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
    crds: Path | None = None,
    namespace_labels: str | None = None,
) -> Exit:
    """Show what claims would become: no API server, no cloud; equal input gives equal bytes.

    Args:
        claims: A file or folder with claims, `-` for standard input. ConfigMaps in it are environments, and the labels
            of a Namespace in it count where a Composition is chosen.
        compositions: A file or folder of Compositions and environments. Default: the shipped Compositions.
        identity: The claim's uid, of which names are made. Default: zeros.
        observed: A folder of live objects, to render on top of what exists.
        ready: Take every child for ready, or none (default).
        output: `yaml` (default) for people; `json`: one object a line, byte for byte what the composer sends.
        crds: A file or folder with kinds beside ours.
        namespace_labels: Labels of namespaces that are in no file: cloud=aws,team=shop. Default: none, and it is said
            where others might give another Composition.
    """
    from fairlead import rendering
    from fairlead.selection import labels_in

    labels = None if namespace_labels is None else labels_in(namespace_labels)
    options = rendering.Options(claims, compositions, identity, observed, ready, output, crds, labels)
    outcome = rendering.render_files(options)
    to_output(outcome.text, end="")
    for remark in outcome.remarks:
        to_errors(remark)
    return Exit.DONE


@app.command
def simulate(  # noqa: PLR0913 - one for each option
    first: Annotated[tuple[Path, ...], Parameter(name="FILE")],
    /,
    *,
    then: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    cloud: str = "onprem",
    delete: Annotated[bool, Parameter(negative="")] = False,
    hours: float = 24.0,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> Exit:
    """Show what would happen over time: no API server, no cloud; both are simulated, and hours take seconds.

    The composer and the provider of one cloud run as they are. Exit code 5 where a claim is not Ready at the end, 6
    where one is stalled.

    Args:
        first: Files or folders with claims, and Compositions and environments that count before the shipped ones.
        then: A file or folder that is applied once nothing happens any more; several follow each other.
        cloud: onprem (default), aws, gcp or azure.
        delete: Delete the claims at the end.
        hours: For how long to wait after each act at most. Default: 24.
        output: `text` (default) for people, or `json`.
    """
    from msgspec.json import encode

    from fairlead import simulate as simulation

    options = simulation.Options(tuple(first), tuple(then), cloud, delete, hours * 3600)
    with simulation.silent():
        story = simulation.simulate(options)
    for line in simulation.in_words(story) if output == "text" else [encode(story).decode()]:
        to_output(line)
    return story.exit


@app.command
def explain(reason: str = "", /) -> Exit:
    """Say what a condition's reason means and what to do, without any API server: `fairlead explain DatabaseLost`.

    Args:
        reason: As it stands in a condition, an event or a trace, in any letter case. Default: all of them.
    """
    from fairlead import explanations
    from fairlead.assets import assets
    from fairlead.output import columns

    page = (assets("docs") / "troubleshooting.md").read_text(encoding="utf-8")
    chosen = [explanations.explain(page, reason)] if reason else explanations.explanations(page).values()
    width = min(columns(), 100)
    print("\n\n".join(explanation.text(width) for explanation in chosen))
    return Exit.DONE


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> Exit:
    """Print what completes our commands, options and names in a shell: source <(fairlead completion bash).

    Commands and options are in the script; for names of claims, namespaces and Compositions the API server is asked.

    Args:
        shell: Which shell. zsh takes it as a file `_fairlead` on its `fpath`, fish as one in its folder `completions`.
    """
    from fairlead.completing import NAMES_OF_SHELLS

    print(app.generate_completion(prog_name="fairlead", shell=shell), end=NAMES_OF_SHELLS[shell])
    return Exit.DONE


crd = App(name="crd", help="Look at kinds of your own.")
app.command(crd)


@crd.command(name="check")
def crd_check(*files: Path) -> Exit:
    """Return whether CRDs have all that a kind of claim needs; what is missing is named with its place.

    Args:
        files: Files or folders with CRDs, `-` for standard input.
    """
    from fairlead import crd_check as checking

    if not files:
        raise CommandError("crd check: name a file with a CustomResourceDefinition", exit_code=Exit.USAGE)
    failures = checking.check_files(files)
    to_output("\n".join(failures.sentences))
    for remark in failures.remarks:
        to_errors(remark)
    return Exit.DONE


@app.command
def validate(
    *paths: Path,
    crds: Path | None = None,
    compositions: Annotated[Path | None, Parameter(name=["--compositions", "-c"])] = None,
    strict: Annotated[bool, Parameter(negative="")] = False,
) -> Exit:
    """Check claims, Compositions and managed resources as an API server and the composer would, without either.

    Of the rules in CEL those are read that compare fields of one object; `kubectl apply --dry-run=server` asks all.

    Args:
        paths: Files or folders, `-` for standard input.
        crds: A file or folder of CRDs beside ours, for the kinds that Compositions name.
        compositions: A file or folder of Compositions and environments: claims are held against what the one that
            serves them offers, and all that it does not is named. Default: those that lie beside the claims.
        strict: Fail for remarks too: claims that are allowed and that a Composition cannot render.
    """
    from fairlead import validate as validation

    if not paths:
        raise CommandError("validate: name files or folders to check", exit_code=Exit.USAGE)
    validity = validation.validate(paths, crds, compositions)
    for line in validity.good:
        to_output(line)
    for line in (*validity.faults, *(f"remark: {remark}" for remark in validity.remarks), validity.summary()):
        to_errors(line)
    return validity.exit_code(strict=strict)


@app.command(name="test")
def run_tests(
    path: Path, /, *, crds: Path | None = None, update: Annotated[bool, Parameter(negative="")] = False
) -> Exit:
    """Run the tests that lie beside Compositions, in the folder `tests` below them.

    Args:
        path: A folder of Compositions.
        crds: A file or folder with kinds beside ours.
        update: Write the golden files anew; review them like code.
    """
    from fairlead import testing

    results = testing.run_tests(path, crds=crds, update=update)
    for result in results:
        for line in result.lines():
            to_output(line)
    failed = sum(bool(result.differences) for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return testing.exit_of(results)


cli_plan.add_to(app)
cli_fleet.add_to(app)
cli_offerings.add_to(app)
cli_install.add_to(app)
cli_new.add_to(app, crd)
cli_live.add_to(app)
cli_rollout.add_to(app)
cli_import.add_to(app)
cli_migrate.add_to(app)
_flow(app)
