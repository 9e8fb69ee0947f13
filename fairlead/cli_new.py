"""The commands that write files to begin with: a kind of claim of one's own, a Composition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from fairlead.exits import CommandError, Exit
from fairlead.printing import to_errors, to_output

if TYPE_CHECKING:
    from fairlead.scaffolding import Files

Folder = Annotated[Path, Parameter(name=["--output", "-o"])]


def add_to(app: App, crd: App) -> None:
    """Add these commands to the command line; `crd` is the group of commands on kinds."""
    crd.command(crd_new, name="new")
    composition = App(name="composition", help="Begin a Composition.")
    app.command(composition)
    composition.command(composition_new, name="new")


def crd_new(kind: str, /, *, group: str, folder: Folder = Path()) -> Exit:
    """Write a kind of claim of your own: CRD, rights, policy bindings, a first Composition with its test, a claim.

    Args:
        kind: Its kind, as Queue.
        group: Its group, a domain of yours, as queues.example.org.
        folder: Where to. Default: here. A file that is there already is not written over.
    """
    from fairlead.assets import assets
    from fairlead.scaffolding import NewKind, kind_files
    from fairlead.yaml_files import objects_in

    (shipped,) = objects_in(assets("crds"), "database.fairlead.dev_postgresqlinstances.yaml")
    _write(folder, kind_files(NewKind(kind, group), shipped))
    to_errors(f"next: fairlead crd check {folder / 'crds'}; fairlead validate {folder} --crds {folder / 'crds'}")
    to_errors(f"      fairlead test {folder / 'compositions'} --crds {folder / 'crds'}; docs/kinds.md has the rest")
    return Exit.DONE


def composition_new(  # noqa: PLR0913 - one for each option
    name: str,
    /,
    *,
    kind: str = "",
    values: Path | None = None,
    claim: str = "PostgreSQLInstance.database.fairlead.dev",
    crds: Path | None = None,
    folder: Folder = Path(),
) -> Exit:
    """Write a Composition with its test: of a kind's CRD, or of values as Helm has them. Both are checked then.

    Of a kind it has what is required, and what claims have fields for by the same names; of values it has variables,
    and a ConfigMap with them. The test compares a golden file.

    Args:
        name: The Composition's name.
        kind: The composed kind, as RDSInstance.aws.fairlead.dev.
        values: A file with values, as `values.yaml` of a chart; in place of --kind.
        claim: The kind of claim. Default: PostgreSQLInstance.database.fairlead.dev.
        crds: A file or folder with kinds beside ours.
        folder: Where to. Default: here. A file that is there already is not written over.
    """
    from fairlead import testing
    from fairlead import validate as validation
    from fairlead.rendering import kinds_in, shipped_kinds
    from fairlead.scaffolding import composition_files, spec_of_kind, spec_of_values

    if bool(kind) == (values is not None):
        raise CommandError("composition new: --kind or --values, one of them", exit_code=Exit.USAGE)
    catalog = {**shipped_kinds("*.yaml"), **(kinds_in(crds) if crds else {})}
    for named in filter(None, (claim, kind)):
        if named not in catalog:
            text = f"no kind {named} is known here: KIND.GROUP, of ours or of --crds"
            raise CommandError(text, exit_code=Exit.INVALID_INPUT)
    made_of = catalog[claim]
    spec = (
        spec_of_kind(catalog[kind], made_of, catalog) if values is None else spec_of_values(_values_in(values), made_of)
    )
    _write(folder, composition_files(name, catalog[claim], spec))
    validity = validation.validate([folder / f"{name}.yaml"], crds)
    for line in (*validity.faults, *validity.remarks):
        to_errors(line)
    if validity.faults:
        return Exit.INVALID_INPUT
    results = testing.run_tests(folder, crds=crds, update=True, only=folder / "tests" / f"{name}.yaml")
    to_output(str(folder / "tests" / "golden" / f"{name}.yaml"))
    return testing.exit_of(results)


def _values_in(path: Path) -> dict[str, Any]:
    """Read a file with values. Raises CommandError where it holds no map."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: not YAML: {' '.join(str(error).split())}", exit_code=Exit.INVALID_INPUT) from error
    if not isinstance(values, dict):
        raise CommandError(f"{path}: holds no map of values", exit_code=Exit.INVALID_INPUT)
    return values


def _write(folder: Path, files: Files) -> None:
    """Write files. Raises CommandError (refused), and writes none, where one of them is there."""
    from fairlead.yaml_files import dump

    there = [str(folder / name) for name in files if (folder / name).exists()]
    if there:
        raise CommandError(f"{', '.join(there)}: there already; nothing was written", exit_code=Exit.REFUSED)
    for name, documents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("---\n".join(dump(document) for document in documents), encoding="utf-8")
        to_output(str(path))
