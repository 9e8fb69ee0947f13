"""The command that shows what claims may ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Namespace, Where
from fairlead.exits import Exit
from fairlead.kube_options import USUAL
from fairlead.printing import columns_of_output, to_errors, to_output


def add_to(app: App) -> None:
    """Add this command to the command line."""
    app.command(show, name="offers")


def show(  # noqa: PLR0913 - one for each option
    composition: str = "",
    /,
    *,
    namespace: Namespace = None,
    compositions: Annotated[Path | None, Parameter(name=["--compositions", "-c"])] = None,
    crds: Path | None = None,
    server: Where = USUAL,
    output: Annotated[Literal["table", "wide", "json", "yaml"], Parameter(name=["--output", "-o"])] = "table",
) -> Exit:
    """Show what claims may ask for: versions, sizes with their numbers, ranges, and the fields that are refused.

    It is what the composer computed that each Composition offers (`status.offers`); a provider may refuse in its turn
    what its account or server does not have.

    Args:
        composition: One Composition. Default: all that claims of the namespace may use.
        namespace: Whose claims. Default: the current context's.
        compositions: A file or folder of Compositions and environments, which are asked in place of an API server.
        crds: With --compositions: a file or folder with kinds beside ours.
        server: Which API server.
        output: `table` (default), `wide` with types and defaults, `json` or `yaml` for programs.
    """
    import asyncio

    from fairlead import offerings

    if compositions is not None:
        from fairlead.rendering import kinds_in

        outcome = offerings.in_files(compositions, composition, kinds_in(crds) if crds else {})
    else:
        outcome = asyncio.run(offerings.in_namespace(server, namespace, composition))
    documents = offerings.documents_of(outcome.offered)
    if output == "json":
        from fairlead.output import show_json

        show_json({"offers": documents})
    elif output == "yaml":
        from fairlead.yaml_files import dump

        to_output(dump({"offers": documents}), end="")
    else:
        for line in offerings.text_of(outcome.offered, columns_of_output(), wide=output == "wide"):
            to_output(line)
    for remark in outcome.remarks:
        to_errors(remark)
    return Exit.DONE
