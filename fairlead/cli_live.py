"""The commands that look at one thing in a cluster, or decide about it: trace, psql, pause, resume, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from fairlead.exits import Exit
from fairlead.kube_options import USUAL, Server
from fairlead.printing import to_errors, to_output

if TYPE_CHECKING:
    from fairlead.pausing import Outcome
    from fairlead.tree import Node

Namespace = Annotated[str | None, Parameter(name=["--namespace", "-n"])]
Where = Annotated[Server, Parameter(name="*")]


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    for command in (trace, psql, pause, resume, orphans, adopt, takeover):
        app.command(command)


def trace(  # noqa: PLR0913 - one for each option
    reference: str,
    /,
    *,
    namespace: Namespace = None,
    server: Where = USUAL,
    output: Annotated[Literal["table", "wide", "json", "yaml", "dot"], Parameter(name=["--output", "-o"])] = "table",
    unfolded: Annotated[bool, Parameter(name="--all", negative="")] = False,
    events: Annotated[bool, Parameter(negative="")] = False,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative="")] = False,
    exit_status: Annotated[bool, Parameter(negative="")] = False,
) -> Exit:
    """Show what a claim or another object of the platform became, and the first cause where something is wrong.

    Args:
        reference: A claim's name, or KIND/NAME (`pgi/orders`, `postgresdatabase/orders-db-4x2k7`, `queue/jobs`).
        namespace: Its namespace. Default: the current context's.
        server: Which API server.
        output: `table` (default) for people; `wide`: with what each says and its link in the cloud's console; `json`
            and `yaml` for programs; `dot` for graphviz.
        unfolded: Show each of many leaves that are well by itself.
        events: Show the last events of each, which are kept for an hour.
        watch: Show it anew whenever it changes, until it is gone or interrupted.
        exit_status: Answer 0 when ready, 5 when not yet, 6 when only a person's change helps.
    """
    import asyncio

    from fairlead import tree
    from fairlead.output import clear
    from fairlead.trace import trace as gather
    from fairlead.trace import traces

    def show(root: Node) -> None:
        clear() if watch else None
        _show_traced(root, output, unfolded=unfolded)

    async def follow() -> None:
        async for root in traces(reference, namespace=namespace, server=server, with_events=events):
            show(root)

    if watch:
        asyncio.run(follow())
        return Exit.DONE
    root = asyncio.run(gather(reference, namespace=namespace, server=server, with_events=events))
    show(root)
    return tree.exit_of(root) if exit_status else Exit.DONE


def _show_traced(root: Node, output: str, *, unfolded: bool) -> None:
    from fairlead.output import show_json, show_tree
    from fairlead.tree import json_of

    if output == "json":
        show_json(json_of(root))
    elif output == "yaml":
        from fairlead.yaml_files import dump

        to_output(dump(json_of(root)), end="")
    elif output == "dot":
        from fairlead.tree_view import dot_of

        to_output("\n".join(dot_of(root)))
    else:
        show_tree(root, unfolded=unfolded, wide=output == "wide")


def psql(
    reference: str,
    /,
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    namespace: Namespace = None,
    server: Where = USUAL,
) -> Exit:
    """Open a claim's database with psql: `fairlead psql orders -n shop -- -c 'select 1'`.

    Args:
        reference: A claim's name, or KIND/NAME.
        arguments: What follows `--` goes to psql. What `-c`, `-f` and `-l` print on a terminal is shown as text alone.
        namespace: Its namespace. Default: the current context's.
        server: Which API server.
    """
    import asyncio

    from fairlead import psql as opening

    login = asyncio.run(opening.login_of(reference, namespace=namespace, server=server))
    return Exit.DONE if opening.run(login, arguments) == 0 else Exit.TOOL_FAILED


def pause(
    reference: str,
    /,
    *,
    until: str = "",
    reason: str = "",
    namespace: Namespace = None,
    server: Where = USUAL,
) -> Exit:
    """Let nothing be changed in a cloud: of a claim with its children, or of all that a ProviderConfig serves.

    Deletions wait, too. What is there is still looked at, and conditions go on.

    Args:
        reference: A claim's name, or KIND/NAME (`pgi/orders`, `awspc/default`, `postgresdatabase/by-hand`).
        until: When it ends by itself: 30m, 2h, 1d, or a time as 2026-11-22T18:00:00Z. Default: never.
        reason: Why; the condition shows it.
        namespace: Its namespace. Default: the current context's.
        server: Which API server.
    """
    import asyncio

    from fairlead import pausing

    named = pausing.Named(reference, namespace, server)
    return said(asyncio.run(pausing.pause(named, until=until, reason=reason)))


def resume(reference: str, /, *, destroys_until: str = "", namespace: Namespace = None, server: Where = USUAL) -> Exit:
    """End a pause, or let a ProviderConfig's deletions go on beyond its destroy rate limit.

    Args:
        reference: A claim's name, or KIND/NAME, as for `pause`.
        destroys_until: Of a ProviderConfig: until when deletions and restarts are not limited, as 1h or a time.
        namespace: Its namespace. Default: the current context's.
        server: Which API server.
    """
    import asyncio

    from fairlead import pausing

    named = pausing.Named(reference, namespace, server)
    return said(asyncio.run(pausing.resume(named, destroys_until=destroys_until)))


def orphans(
    config: str = "",
    /,
    *,
    server: Where = USUAL,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> Exit:
    """List what the clouds hold of this installation without a resource: orphaned, detached, or left by a lost cluster.

    Each provider lists its accounts once for it (it is asked by the annotation of a requested reconcile).

    Args:
        config: One ProviderConfig, as `awspc/default`. Default: all.
        server: Which API server.
        output: `text` (default) for people, `json` for programs.
    """
    import asyncio

    import msgspec

    from fairlead import orphans as listing
    from fairlead.output import show_json

    accounts = asyncio.run(listing.orphans(config, server))
    if output == "json":
        show_json({"schemaVersion": 1, "accounts": msgspec.to_builtins(accounts)})
        return Exit.DONE
    for line in (line for account in accounts for line in account.lines()):
        to_output(line)
    to_output(f"{sum(len(account.items) for account in accounts)} without a resource")
    return Exit.DONE


def adopt(
    *, installation: str, dry_run: Annotated[bool, Parameter(negative="")] = False, server: Where = USUAL
) -> Exit:
    """Let all claims have the databases of their earlier lives again: those that wait with `PredecessorFound`.

    For a cluster that was made anew from Git, with the former installation's id.

    Args:
        installation: The installation's id, as ConfigMap fairlead-installation has it.
        dry_run: Say what would be taken over, and change nothing.
        server: Which API server.
    """
    import asyncio

    from fairlead import recovery

    return said(asyncio.run(recovery.adopt(server, installation=installation, dry_run=dry_run)))


def takeover(*, from_cluster: str = "", server: Where = USUAL) -> Exit:
    """Let this cluster change the installation's databases, in place of the one that is recorded (`AwaitingTakeover`).

    For a cluster that was restored or copied from another. Fairlead must run there no longer.

    Args:
        from_cluster: The uid of the cluster that is recorded. Without it the command says which that is.
        server: Which API server.
    """
    import asyncio

    from fairlead import recovery

    return said(asyncio.run(recovery.takeover(server, from_cluster=from_cluster)))


def said(outcome: Outcome) -> Exit:
    """Print what was done, and the remarks on it."""
    for line in outcome.lines:
        to_output(line)
    for remark in outcome.remarks:
        to_errors(remark)
    return Exit.DONE
