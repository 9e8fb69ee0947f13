"""The commands of a plan: what edits would do, and their application as it was read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Namespace, Where
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL
from fairlead.printing import to_errors, to_output

FailOn = Annotated[tuple[Literal["restart", "replace", "consent"], ...], Parameter(consume_multiple=True, negative="")]


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    for command in (plan, apply):
        app.command(command)


def plan(
    *paths: Path,
    namespace: Namespace = None,
    server: Where = USUAL,
    output: Annotated[Literal["text", "json", "markdown"], Parameter(name=["--output", "-o"])] = "text",
    fail_on: FailOn = (),
    out: Path | None = None,
) -> Exit:
    """Show what edited claims, Compositions, ProviderConfigs and environments would do, and change nothing.

    What an edit does in the cloud is what the provider would decide on what it observed last (`status.observed`): in
    place, with a restart, in the maintenance window, after a consent, or refused.

    Args:
        paths: Files or folders with claims, Compositions, ProviderConfigs and environments (ConfigMaps of namespace
            fairlead-system, or of none), `-` for standard input. The labels of a Namespace in them count where a
            Composition is chosen.
        namespace: Of claims that name none; of the claims that an edited Composition or environment changes. Default:
            the context's; all.
        server: Which API server.
        output: `text` (default) for people, `json` for programs, `markdown` for a merge request.
        fail_on: For pipelines: answer 4 where something restarts or cuts sessions (`restart`), is replaced, deleted or
            loses data (`replace`), or waits for a person (`consent`), and 0 for all other differences.
        out: Write the plan to this file, for `fairlead apply`.
    """
    import asyncio

    from fairlead import plan as planning_run
    from fairlead.output import show_json
    from fairlead.plan_diff import SCHEMA_VERSION
    from fairlead.plan_output import exit_of, markdown_of, text_of

    if not paths:
        raise CommandError("plan: name files or folders with what is edited", exit_code=Exit.USAGE)
    options = planning_run.Options(paths, namespace, server)
    outcome = asyncio.run(planning_run.plan(options))
    if output == "json":
        show_json({"schemaVersion": SCHEMA_VERSION, "claims": outcome.claims})
    else:
        is_text = output == "text"
        for line in text_of(outcome.claims) if is_text else markdown_of(outcome.claims, outcome.remarks):
            to_output(line)
    for remark in outcome.remarks:
        to_errors(remark)
    if out is not None:
        from fairlead.saved_plan import save

        save(out, options, outcome)
    return exit_of(outcome.claims, fail_on)


def apply(file: Path, /, *, server: Where = USUAL) -> Exit:
    """Apply a plan of `fairlead plan --out`, where nothing has moved since it was made; else apply nothing.

    Args:
        file: What `fairlead plan --out` wrote.
        server: Which API server.
    """
    import asyncio

    from fairlead import plan as planning_run
    from fairlead import saved_plan

    for line in asyncio.run(saved_plan.apply(file, planning_run.Options((), server=server))):
        to_output(line)
    return Exit.DONE
