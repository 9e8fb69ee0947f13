"""The commands that take over what another tool manages: Terraform's state, Crossplane's managed resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from fairlead.cli_live import Namespace, Where
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import USUAL
from fairlead.printing import to_errors, to_output

if TYPE_CHECKING:
    from fairlead.imports import writing
    from fairlead.imports.migrating import Migration
    from fairlead.imports.written import Written

migrations = App(name="migrate", help="Take over what Terraform or Crossplane manages.")
Folder = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    app.command(migrations)
    for command in (terraform, crossplane):
        migrations.command(command)


def terraform(  # noqa: PLR0913 - one for each option
    state: Path,
    /,
    *,
    config: str,
    namespace: Namespace = None,
    server: Where = USUAL,
    password_secret: str = "",
    folder: Folder = None,
) -> Exit:
    """Write down what a Terraform state has of one cloud, and say by which commands Terraform forgets it afterwards.

    Nothing is changed in the cloud. Databases of PostgreSQL, their servers, groups, rules and users are taken.

    Args:
        state: What `terraform show -json` printed, `-` for standard input.
        config: The ProviderConfig that shall serve them, as `awspc/default`.
        namespace: Where the objects shall be. Default: the current context's.
        server: Which API server.
        password_secret: The Secret that has the present password of each login, by the key `password`.
        folder: Write one file each into this folder. Default: all to standard output.
    """
    from msgspec import DecodeError
    from msgspec.json import decode

    from fairlead.imports import migrating, writing

    try:
        migration = migrating.of_terraform(decode(state.read_bytes()))
    except (DecodeError, ValueError) as error:
        raise CommandError(f"{state}: {error}", exit_code=Exit.INVALID_INPUT) from error
    options = writing.Options(config, (), namespace, server, password_secret=password_secret)
    return _migrated(migration, options, folder)


def crossplane(  # noqa: PLR0913 - one for each option
    resources: Path,
    /,
    *,
    config: str = "",
    namespace: Namespace = None,
    server: Where = USUAL,
    password_secret: str = "",
    folder: Folder = None,
) -> Exit:
    """Write down what Crossplane manages and composes: managed resources of one cloud, definitions and Compositions.

    Nothing is changed in the cloud. Definitions (XRDs) become kinds of claim, Compositions of patches ours, without any
    cluster; what has no place here is said with its line. For managed resources it is said how Crossplane lets them go.

    Args:
        resources: What `kubectl get managed,xrd,composition -o yaml` printed, a folder, `-` for standard input.
        config: The ProviderConfig that shall serve managed resources, as `awspc/default`.
        namespace: Where the objects shall be. Default: the current context's.
        server: Which API server.
        password_secret: The Secret that has the present password of each login, by the key `password`.
        folder: Write one file each into this folder. Default: all to standard output.
    """
    from fairlead.imports import migrating, writing
    from fairlead.imports.crossplane.files import files_of
    from fairlead.yaml_files import documents_in

    files = files_of(list(documents_in(resources)))
    migration = migrating.of_crossplane(document.content for document in files.others)
    if migration.managed and not config:
        raise CommandError("migrate: name the ProviderConfig of managed resources by --config", exit_code=Exit.USAGE)
    _show(files.written, folder)
    for remark in files.remarks:
        to_errors(remark, wraps=True)
    if not migration.managed:
        _remark(migration.remarks)
        return Exit.DONE if files.written else Exit.INVALID_INPUT
    options = writing.Options(config, (), namespace, server, password_secret=password_secret)
    return _migrated(migration, options, folder)


def _show(files: Sequence[Written], folder: Path | None) -> None:
    from fairlead.imports.written import save

    for written in files if folder is None else ():
        to_output(f"---\n{written.text}", end="")
    for path in [] if folder is None or not files else save(folder, files):
        to_output(path)


def _remark(remarks: Iterable[str]) -> None:
    for remark in remarks:
        to_errors(f"remark: {remark}", wraps=True)


def _migrated(migration: Migration, options: writing.Options, folder: Path | None) -> Exit:
    """Write the files of one cloud, and print by which commands the other tool forgets what they are of."""
    import asyncio

    from fairlead.imports import writing

    managed, elsewhere, files = asyncio.run(writing.migrate(options, migration.managed))
    _show(files, folder)
    _remark(migration.remarks)
    for other in elsewhere:
        to_errors(f"remark: {other.address}: of {other.cloud}; name a ProviderConfig of that by --config", wraps=True)
    to_errors(
        f"{len(managed)} written. Once each is adopted (fairlead import preview, adopt), in this order:", wraps=True
    )
    for command in (command for item in reversed(managed) for command in item.forget):
        to_errors(f"  {command}")
    return Exit.DONE
