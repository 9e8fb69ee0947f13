"""The command that makes an installation's id and the chart's values for it."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Where
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL
from fairlead.printing import to_errors, to_output

Listed = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]


def add_to(app: App) -> None:
    """Add this command to the command line."""
    app.command(install)


def install(  # noqa: PLR0913 - one for each option
    *,
    apply: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    id: str = "",  # noqa: A002 - the option is called so
    clouds: Listed = (),
    claim_namespaces: Listed = (),
    server: Where = USUAL,
    output: Annotated[Literal["values", "id", "json"], Parameter(name=["--output", "-o"])] = "values",
) -> Exit:
    """Make the installation's id, once, and print the chart's values for it.

    Whether the API server is new enough and whether you may install is asked before anything is written. What is
    installed already stays as it is: a second time prints the same. Exit code 7 where something speaks against it.

    Args:
        apply: Make the ConfigMap fairlead-installation, and its namespace, where they are not there.
        dry_run: Write nothing (default).
        id: The id of an installation that was here before, whose databases are to be known again. Default: a new one.
        clouds: The providers to run: aws azure gcp onprem. Default: those of another values file.
        claim_namespaces: The namespaces that have claims. Default: those of another values file.
        server: Which API server.
        output: `values` (default): YAML for `helm install --values`; `id` alone; `json`.
    """
    import asyncio

    from fairlead import installing

    if apply and dry_run:
        raise CommandError("install: --apply or --dry-run, not both", exit_code=Exit.USAGE)
    outcome = asyncio.run(installing.install(installing.Options(apply, id, clouds, claim_namespaces, server)))
    for remark in outcome.remarks:
        to_errors(remark)
    if output == "id":
        to_output(outcome.installation.id)
    elif output == "json":
        from fairlead.output import show_json

        show_json(dict(outcome.values))
    else:
        from fairlead.yaml_files import dump

        to_output(dump(dict(outcome.values)), end="")
    return Exit.DONE
