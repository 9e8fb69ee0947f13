"""The commands of an import: find what is there, look at it, write it down, see what managing it changes, adopt it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from fairlead.cli_live import Namespace, Where
from fairlead.exits import CommandError, Exit, worst
from fairlead.kube_options import USUAL
from fairlead.printing import to_errors, to_output

if TYPE_CHECKING:
    from fairlead.imports.written import Written

Output = Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])]
imports = App(name="import", help="Take over databases that are there: find, show, write, preview, adopt.")


def add_to(app: App) -> None:
    """Add these commands to the command line."""
    app.command(imports)
    for command in (find, show, write, preview, adopt):
        imports.command(command)


def find(  # noqa: PLR0913 - one for each option
    config: str = "",
    /,
    *,
    name: str = "*",
    tag: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    within: str = "",
    operators: Annotated[bool, Parameter(negative="")] = False,
    namespace: Namespace = None,
    server: Where = USUAL,
    output: Output = "text",
) -> Exit:
    """List what the clouds hold that no resource here names: servers, and databases of servers on premises.

    Each provider lists its accounts for it, once for each thousand things. What this installation made and orphaned or
    retired is marked with the claim of which it was.

    Args:
        config: One ProviderConfig, as `awspc/default`. Default: all.
        name: A pattern for names, as `shop-*`. Default: all.
        tag: KEY=VALUE of a tag or label that it has in the cloud; of several, all. Databases on premises have none.
        within: A server of CONFIG, as `shop-prod`: databases and logins inside of it, as far as its cloud lists them.
        operators: List objects with data of other operators that are no claim's instead: no cloud is asked.
        namespace: Of which namespace, with --operators. Default: all.
        server: Which API server.
        output: `text` (default) for people, `json` for programs.
    """
    import asyncio

    import msgspec

    from fairlead.account_lists import Search
    from fairlead.imports import unmanaged
    from fairlead.output import show_json

    search = Search(name, _pairs("--tag", tag), within, to_errors)
    if operators:
        from fairlead.imports.operators import find as of_operators

        accounts = asyncio.run(of_operators(name, namespace, server))
    else:
        accounts = asyncio.run(unmanaged.find(config, search, server))
    if output == "json":
        show_json({"schemaVersion": 1, "accounts": msgspec.to_builtins(accounts)})
        return Exit.DONE
    for line in (line for account in accounts for line in account.lines()):
        to_output(line, wraps=True)
    to_output(f"{sum(len(account.things) for account in accounts)} unmanaged")
    return Exit.DONE


def show(
    config: str,
    /,
    *things: str,
    kind: str = "",
    namespace: Namespace = None,
    server: Where = USUAL,
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> Exit:
    """Show every field of something that is there, who has rights on it, and what managing it as it is would change.

    Its provider looks at it through an object with `managementPolicy: Observe`, which is deleted afterwards.

    Args:
        config: The ProviderConfig, as `awspc/default`.
        things: Names in its cloud, or patterns as `shop-*`.
        kind: Of names that several kinds have.
        namespace: Where the object is that looks. Default: the current context's.
        server: Which API server.
        output: `yaml` (default) or `json`.
    """
    import asyncio

    from fairlead.imports import writing
    from fairlead.output import show_json
    from fairlead.yaml_files import dump

    options = writing.Options(config, _named(things), namespace, server, kind)
    shown = asyncio.run(writing.show(options))
    if output == "json":
        show_json({"schemaVersion": 1, "things": shown})
        return Exit.DONE
    for item in shown:
        to_output(f"---\n{dump(item)}", end="")
    return Exit.DONE


def write(  # noqa: PLR0913 - one for each option
    config: str,
    /,
    *things: str,
    claim: Annotated[bool, Parameter(negative="")] = False,
    composition: str = "",
    inside: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    observe: Annotated[bool, Parameter(negative="")] = False,
    password_secret: str = "",
    kind: str = "",
    within: str = "",
    namespace: Namespace = None,
    server: Where = USUAL,
    folder: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> Exit:
    """Write a file for each thing: a managed resource that has every field as it is, or a claim that comes close.

    Nothing is changed in the cloud, neither by this command nor once the files are applied: that needs `adopt`.

    Args:
        config: The ProviderConfig, as `awspc/default`; or with --claim another operator's object, as `cluster/shop-db`.
        things: Names in its cloud, or patterns as `shop-*`.
        claim: Write claims; what their Composition would have otherwise than it is goes to standard error.
        composition: The Composition of the claims. Default: the one that would change least.
        inside: Of a claim for a server: RESOURCE=NAME of what is inside, as `database=orders`.
        password_secret: The Secret that has the present password of the login, by the key `password`. Without it the
            database is adopted and serves on, and its password is not published.
        observe: Write managed resources that only look (`managementPolicy: Observe`).
        kind: Of names that several kinds have.
        within: A server, where what is named is inside of it.
        namespace: Where the objects shall be. Default: the current context's.
        server: Which API server.
        folder: Write one file each into this folder. Default: all to standard output.
    """
    import asyncio

    from fairlead.imports import writing

    if claim and not things:
        from fairlead.imports.operators import fitted
        from fairlead.imports.writing import file_of, remarks_on

        fit = asyncio.run(fitted(config, namespace, composition, server))
        return _written([file_of(fit.claim, tuple(remarks_on(fit)))], folder)
    policy = "Observe" if observe else "Manage"
    options = writing.Options(
        config,
        _named(things),
        namespace,
        server,
        kind,
        claim,
        composition,
        inside,
        policy,
        password_secret,
        within=within,
    )
    return _written(asyncio.run(writing.write(options)), folder)


def _written(files: Sequence[Written], folder: Path | None) -> Exit:
    from fairlead.imports.written import save

    if folder is None:
        for written in files:
            to_output(f"---\n{written.text}", end="")
    else:
        for path in save(folder, files):
            to_output(path)
    for remark in (remark for written in files for remark in written.remarks):
        to_errors(remark, wraps=True)
    return Exit.DONE


def preview(*references: str, namespace: Namespace = None, server: Where = USUAL, output: Output = "text") -> Exit:
    """Show what managing each thing would change, field by field, and the hash by which a person agrees to it.

    Args:
        references: Managed resources, as `postgresdatabase/orders`, or a claim that names other operators' objects, as
            `pgi/orders`. Default: all managed resources of the namespace that wait for it.
        namespace: Their namespace. Default: the current context's.
        server: Which API server.
        output: `text` (default) for people; `json`: a file for `adopt --from`.
    """
    import asyncio

    import msgspec

    from fairlead.imports import adopting, agreeing
    from fairlead.output import show_json

    previews = asyncio.run(agreeing.previews(references, namespace, server))
    if output == "json":
        show_json({"schemaVersion": 1, "previews": msgspec.to_builtins(previews)})
    else:
        for line in (line for shown in previews for line in shown.lines()):
            to_output(line, wraps=not line.lstrip().startswith(adopting.TO_AGREE))
    return Exit.DONE if all(shown.agreement for shown in previews) else Exit.NOT_READY


def adopt(  # noqa: PLR0913 - one for each option
    reference: str = "",
    /,
    *,
    agreed: str = "",
    previews: Annotated[Path | None, Parameter(name="--from")] = None,
    wave: int = 10,
    namespace: Namespace = None,
    server: Where = USUAL,
) -> Exit:
    """Take things over, where managing them changes exactly what was agreed to.

    It can be interrupted and run again. The first wave in which something is refused is the last one.

    Args:
        reference: A managed resource, as `postgresdatabase/orders`, or a claim, as `pgi/orders`.
        agreed: The hash of its preview.
        previews: What `preview -o json` wrote: all that is in it is agreed to.
        wave: How many at a time.
        namespace: Its namespace. Default: the current context's.
        server: Which API server.
    """
    import asyncio

    from fairlead.imports import agreeing

    if bool(reference and agreed) == (previews is not None) or wave < 1:
        text = "adopt: name a managed resource with --agreed HASH, or --from FILE; waves have at least one"
        raise CommandError(text, exit_code=Exit.USAGE)
    agreement = agreeing.Request(reference, agreed, previews, namespace, server, wave)
    outcomes = asyncio.run(agreeing.adopt(agreement))
    for outcome in outcomes:
        (to_output if outcome.exit is Exit.DONE else to_errors)(f"{outcome.called}: {outcome.text}", wraps=True)
    return worst(outcome.exit for outcome in outcomes)


def _pairs(option: str, pairs: tuple[str, ...]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    for key, is_pair, value in split:
        if not (key and is_pair):
            raise CommandError(f"{option} {key}{is_pair}{value} is not KEY=VALUE", exit_code=Exit.USAGE)
    return {key: value for key, _, value in split}


def _named(things: tuple[str, ...]) -> tuple[str, ...]:
    if not things:
        raise CommandError("import: name what is meant, as `fairlead import find` lists it", exit_code=Exit.USAGE)
    return things
