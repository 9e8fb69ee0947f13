"""The commands that look at many things: status, wait, backups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Namespace, Where
from fairlead.exits import Exit
from fairlead.kube_options import USUAL

if TYPE_CHECKING:
    from fairlead.fleet import Fleet
    from fairlead.status import By, Scope

AllNamespaces = Annotated[bool, Parameter(name=["--all-namespaces", "-A"], negative="")]
Watching = Annotated[bool, Parameter(name=["--watch", "-w"], negative="")]
Wide = Annotated[Literal["text", "wide", "json"], Parameter(name=["--output", "-o"])]


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    for command in (status, wait, backups):
        app.command(command)


def status(  # noqa: PLR0913 - one for each option
    *,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    by: Literal["composition", "namespace", "cloud"] = "composition",
    watch: Watching = False,
    output: Wide = "text",
    server: Where = USUAL,
) -> Exit:
    """Show how the claims fare, and managed resources made by hand: what is wrong, since when, and whose move it is.

    Exit code 6 where a person is needed, 3 where a cloud differs and nobody puts that right, else 0, also while things
    are on their way.

    Args:
        namespace: Of which namespace. Default: the current context's.
        all_namespaces: Of all namespaces.
        by: How they are counted: by `composition` (default), `namespace` or `cloud`.
        watch: Show it anew whenever it changes, until interrupted.
        output: `text` (default): one screen, what goes on by itself alike in one row, causes cut; `wide`: all, and
            whole; `json`: for programs.
        server: Which API server.
    """
    import asyncio

    from fairlead import status as looking
    from fairlead.cluster import current_namespace

    home = "" if all_namespaces else namespace or current_namespace(server)
    scope = looking.Scope(home, server)
    if watch:
        return asyncio.run(_watch_status(scope, by, output))
    fleet = asyncio.run(looking.status(scope))
    _show_status(fleet, by, output)
    return fleet.exit


def wait(
    *references: str,
    goal: Annotated[Literal["ready", "synced", "gone"], Parameter(name="--for")] = "ready",
    timeout: str = "",
    namespace: Namespace = None,
    server: Where = USUAL,
) -> Exit:
    """Wait until claims or other objects are ready, in sync or gone, and show what they do meanwhile.

    It ends at once with exit code 6 and the cause where only a person's change helps, and with 5 after the time-out.

    Args:
        references: Names of claims, or KIND/NAME.
        goal: `ready` (default): usable with the newest spec; `synced`: all is as the spec says; `gone`.
        timeout: For how long at most: 90s, 30m, 2h. Default: without an end.
        namespace: Their namespace. Default: the current context's.
        server: Which API server.
    """
    import asyncio

    from fairlead import waiting
    from fairlead.exits import CommandError
    from fairlead.pausing import timeout_in
    from fairlead.printing import to_output

    if not references:
        raise CommandError("wait: name what is waited for, as orders or pgi/orders", exit_code=Exit.USAGE)
    wanted = waiting.Wanted(references, goal, namespace, timeout_in(timeout), server)
    return asyncio.run(waiting.wait(wanted, lambda line: to_output(line, wraps=True, at_once=True)))


def backups(
    config: str = "",
    /,
    *,
    namespace: Namespace = None,
    claim: str = "",
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
    server: Where = USUAL,
) -> Exit:
    """List what is kept of databases whose resource is gone, and by which command each comes back or ends for good.

    Orphaned and retired databases, final and other snapshots, automated backups of what was deleted. Each provider
    lists its accounts once for it.

    Args:
        config: One ProviderConfig, as `awspc/default`. Default: all.
        namespace: Of claims of one namespace. Default: all.
        claim: Of one claim.
        output: `text` (default) for people, `json` for programs.
        server: Which API server.
    """
    import asyncio

    from fairlead import backups as keeping
    from fairlead.output import show_json
    from fairlead.printing import to_output
    from runtime import clock

    accounts = asyncio.run(keeping.backups(config, server, namespace=namespace or "", claim=claim))
    if output == "json":
        kept = [item.json() for account in accounts for item in account.kept]
        show_json({"schemaVersion": 1, "complete": all(account.complete for account in accounts), "kept": kept})
        return Exit.DONE
    for account in accounts:
        for item in account.kept:
            first, *commands = item.lines(clock.now())
            to_output(first, wraps=True)
            for line in commands:
                to_output(line)
        if not account.complete:
            to_output(f"{account.config}: not every list was whole, there may be more", wraps=True)
    to_output(f"{sum(len(account.kept) for account in accounts)} kept")
    return Exit.DONE


async def _watch_status(scope: Scope, by: By, output: str) -> Exit:
    from fairlead import status as looking
    from fairlead.output import clear

    async for fleet in looking.statuses(scope):
        clear()
        _show_status(fleet, by, output)
    return Exit.DONE


def _show_status(fleet: Fleet, by: By, output: str) -> None:
    from fairlead import status as looking
    from fairlead.output import columns, show_json, show_lines
    from runtime import clock

    if output == "json":
        show_json(looking.json_of(fleet))
    else:
        show_lines(looking.lines_of(fleet, by, columns(), clock.now(), wide=output == "wide"))
