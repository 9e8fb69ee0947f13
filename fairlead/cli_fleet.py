"""The commands that show many things at a glance: status."""

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
    app.command(status)


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
