"""The commands of a rollout: status, history, undo, pause, resume."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Where, said
from fairlead.exits import Exit
from fairlead.kube_options import USUAL
from fairlead.printing import to_errors, to_output

rollout = App(name="rollout", help="Follow a Composition's revisions, go back to an earlier one, pause and resume.")


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    app.command(rollout)
    for command in (status, history, undo, pause, resume):
        rollout.command(command)


def status(
    composition: str,
    /,
    *,
    wait: bool = True,
    timeout: str = "",
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
    server: Where = USUAL,
) -> Exit:
    """Show how far the newest revision has come, who waits for it and what failed; wait until it ends.

    Exit code 0 when all claims have it, 5 when not yet, 6 when it is refused or stopped.

    Args:
        composition: Its name.
        wait: Wait until nothing moves any more by itself. With --no-wait show it as it is now.
        timeout: For how long at most: 90s, 30m, 2h. Default: without an end.
        output: `text` (default) or `json`.
        server: Which API server.
    """
    import asyncio

    from fairlead import rollout_report, rollouts
    from fairlead.output import columns, show_json, show_lines
    from fairlead.pausing import timeout_in
    from runtime import clock

    limit = timeout_in(timeout)
    work = rollouts.ended(composition, server, limit, to_errors) if wait else rollouts.report(composition, server)
    report = asyncio.run(work)
    if output == "json":
        show_json(rollout_report.json_of(report))
    else:
        show_lines(rollout_report.lines_of(report, clock.now(), columns()))
    return report.exit


def history(composition: str, /, *, revision: int = 0, server: Where = USUAL) -> Exit:
    """List the revisions that are kept, or print one as a file for `fairlead plan` and `kubectl apply`.

    Args:
        composition: Its name.
        revision: The number of the one to print.
        server: Which API server.
    """
    import asyncio

    from fairlead import rollout_report, rollouts
    from fairlead.yaml_files import dump
    from runtime import clock

    report = asyncio.run(rollouts.report(composition, server))
    if revision:
        for document in rollouts.manifest_of(report, rollouts.row_of(report, revision)):
            to_output(f"---\n{dump(document)}", end="")
        return Exit.DONE
    for line in rollout_report.history_of(report, clock.now()):
        to_output(line)
    return Exit.DONE


def undo(
    composition: str,
    /,
    *,
    to: int = 0,
    with_environments: Annotated[bool, Parameter(negative="")] = False,
    server: Where = USUAL,
) -> Exit:
    """Give a Composition the content of an earlier revision; it goes to the claims by that revision's own waves.

    Args:
        composition: Its name.
        to: The number of the revision. Default: the last that came to all claims; of an edit that is refused, the
            revision that is in use.
        with_environments: Write the ConfigMaps that it reads as they were then, too, whoever else reads them.
        server: Which API server.
    """
    import asyncio

    from fairlead import rollouts

    return said(asyncio.run(rollouts.undo(composition, rollouts.Undo(to, with_environments), server)))


def pause(composition: str, /, *, until: str = "", reason: str = "", server: Where = USUAL) -> Exit:
    """Let no further claim take a new revision; those that have it keep it.

    Args:
        composition: Its name.
        until: When it ends by itself: 30m, 2h, 1d, or a time as 2026-11-22T18:00:00Z. Default: never.
        reason: Why.
        server: Which API server.
    """
    import asyncio

    from fairlead import rollouts

    return said(asyncio.run(rollouts.pause(composition, until=until, reason=reason, server=server)))


def resume(composition: str, /, *, server: Where = USUAL) -> Exit:
    """End a pause; let a rollout that was stopped go on, once what failed is mended.

    Args:
        composition: Its name.
        server: Which API server.
    """
    import asyncio

    from fairlead import rollouts

    return said(asyncio.run(rollouts.resume(composition, server=server)))
