"""`fairlead test`: runs the tests that lie beside Compositions, without any API server.

A test is a document of kind CompositionTest in a folder `tests` below the Compositions: a claim, what is known of its
children, and what the Composition must make of it: an exact file, parts of children, what waits, or an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from apis.identity import Identity
from composer.kinds.catalog import Catalog
from composer.render.errors import CompositionError
from composer.render.passwords import secret_names
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from composer.validation.samples import all_ready
from fairlead.exits import CommandError, Exit
from fairlead.rendering import (
    NO_UID,
    Context,
    check_children,
    check_claim_paths,
    checked_claim,
    compositions_in,
    foreign_stateful,
    kinds_in,
    refuse_fields,
    yaml_of,
)
from fairlead.yaml_files import Document, documents_in, invalid
from runtime.objects import Object, metadata

_KIND = "CompositionTest"
_SHOWN_CHARACTERS = 200


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Part(_Strict, frozen=True):
    """What one child must have: all of `object` is in it; more may be."""

    resource: str
    key: str = ""
    object: dict[str, Any] = {}


class Fault(_Strict, frozen=True):
    """The error that must come: its reason, and words of its sentence."""

    reason: str
    says: str = ""


class Expectation(_Strict, frozen=True):
    """What must come out; what is left out is not looked at.

    `golden` is a file beside the test; `ready` and `waiting` are exactly the resources that are ready, and that wait.
    """

    golden: str = ""
    children: tuple[Part, ...] = ()
    absent: tuple[str, ...] = ()
    waiting: tuple[str, ...] | None = None
    ready: tuple[str, ...] | None = None
    status: dict[str, Any] | None = None
    connection: dict[str, Any] | None = None
    error: Fault | None = None


class Live(_Strict, frozen=True):
    """What a child reports; its spec is what was asked for."""

    resource: str
    status: dict[str, Any]
    key: str = ""


class Case(_Strict, frozen=True):
    """One test: what goes in and what must come out.

    `environments` go before those that lie beside the Compositions; None takes one away.
    """

    composition: str
    claim: dict[str, Any]
    expect: Expectation
    environments: dict[str, dict[str, str] | None] = {}
    observed: tuple[Live, ...] = ()
    ready: Literal["all", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Result:
    """One test's outcome: nothing in `differences` means that it passed."""

    name: str
    differences: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Say the outcome."""
        yield f"{'FAIL' if self.differences else 'ok  '} {self.name}"
        yield from (f"     {difference}" for difference in self.differences)


@dataclass(frozen=True, slots=True)
class _Library:
    """The Compositions under test by name, the environments beside them, and the kinds that were given beside ours."""

    compositions: Mapping[str, Document]
    environments: Mapping[str, dict[str, str]]
    catalog: Catalog

    def settings(self, spec: Case) -> dict[str, dict[str, str]]:
        """Return the environments of a test, by name."""
        whole = {**self.environments, **spec.environments}
        return {name: data for name, data in whole.items() if data is not None}

    def missing(self, spec: Case) -> Iterator[str]:
        """Say which environments a test's Composition reads that are nowhere."""
        for name in self.compositions[spec.composition].content["spec"].get("environments") or ():
            if name not in self.settings(spec):
                yield (
                    f"there is no environment {name!r}: put its ConfigMap beside the Compositions, or name it in "
                    "spec.environments of the test"
                )


def run_tests(
    path: Path, *, crds: Path | None = None, update: bool = False, only: Path | None = None
) -> tuple[Result, ...]:
    """Run the tests of a folder of Compositions; with `update`, write golden files anew instead of comparing.

    `crds` is a file or folder with kinds beside ours; `only`: the one file of tests that is run.

    Raises CommandError when a test or Composition cannot be read, or there is no test.
    """
    if path.is_file():
        raise invalid(
            path, "is a file: name the folder that holds the Compositions, and their tests in its folder tests"
        )
    compositions = {str(metadata(document.content)["name"]): document for document in compositions_in(path)}
    folder = path / "tests"
    documents = (
        [document for document in documents_in(folder) if document.content["kind"] == _KIND] if folder.is_dir() else []
    )
    if not documents:
        raise invalid(path, f"holds no test: a document of kind {_KIND} in the folder {folder}")
    environments = Context.of(documents_in(path)).environments
    library = _Library(compositions, environments, kinds_in(crds) if crds else {})
    chosen = (test for test in documents if only in (None, test.path))
    return tuple(_run(test, library, update=update) for test in chosen)


def exit_of(results: tuple[Result, ...]) -> Exit:
    """Return differences where a test failed."""
    return Exit.DIFFERENCES if any(result.differences for result in results) else Exit.DONE


def _run(test: Document, library: _Library, *, update: bool) -> Result:
    try:
        spec = msgspec.convert(test.content.get("spec") or {}, Case)
    except msgspec.ValidationError as error:
        raise invalid(test.place("spec"), f"is no {_KIND}: {error}") from error
    if spec.composition not in library.compositions:
        raise invalid(test.place("spec.composition"), f"there is no Composition {spec.composition!r} beside the tests")
    composition = library.compositions[spec.composition]
    name = f"{spec.composition}/{metadata(test.content).get('name', test.path.stem)}"
    try:
        rendered = _render(spec, composition, library)
    except CompositionError as error:
        differences = tuple(_of_error(spec.expect.error, error))
        return Result(name, (*differences, *library.missing(spec)) if differences else ())
    except CommandError as error:
        return Result(name, tuple(str(error).splitlines()))
    return Result(name, tuple(_differences(test, spec, rendered, update=update)))


def _render(spec: Case, composition: Document, library: _Library) -> Rendered:
    """Render the test's claim. Raises CompositionError, or CommandError when claim or children fit no schema."""
    claim = checked_claim(Document.written(composition.path, spec.claim), NO_UID, library.catalog)
    identity = Identity(NO_UID, metadata(claim)["namespace"], metadata(claim)["name"])
    request = Request(
        composition_name=spec.composition,
        composition=composition.content["spec"],
        claim=claim,
        identity=str(identity),
        environments=library.settings(spec),
        stateful_foreign=foreign_stateful(library.catalog),
        passwords=secret_names(composition.content["spec"], identity, claim),
    )
    # One after the other: what a child reports may be what the next one waits for.
    for live in spec.observed:
        made = {child.slot: child.object for child in render(request).children}
        desired = made.get((live.resource, live.key))
        if desired is None:
            raise CommandError(f"observed: resource {live.resource!r} is not made, so it can report nothing")
        seen = Observed(live.resource, live.key, _reporting(desired, live.status))
        request = msgspec.structs.replace(request, observed=(*request.observed, seen))
    rendered = all_ready(request) if spec.ready == "all" else render(request)
    check_claim_paths(composition, claim, library.catalog)
    check_children(composition, rendered, library.catalog)
    refuse_fields(request, rendered, library.catalog)
    return rendered


def _reporting(desired: Object, status: Object) -> Object:
    return {
        **desired,
        "metadata": {**metadata(desired), "generation": 1},
        "status": {"observedGeneration": 1, **status},
    }


def _of_error(wanted: Fault | None, error: CompositionError) -> Iterator[str]:
    if wanted is None:
        yield from map(str, error.problems)
    elif not any(problem.reason == wanted.reason and wanted.says in str(problem) for problem in error.problems):
        causes = "; ".join(f"{problem.reason}: {problem}" for problem in error.problems)
        yield f"error: expected {wanted.reason} {wanted.says!r}, found {causes}"


def _differences(test: Document, spec: Case, rendered: Rendered, *, update: bool) -> Iterator[str]:
    expect = spec.expect
    if expect.error is not None:
        yield f"error: expected {expect.error.reason}, found none"
    if expect.golden:
        yield from _of_golden(test.path.parent / expect.golden, yaml_of(spec.composition, rendered.children), update)
    children = {child.slot: child.object for child in rendered.children}
    for part in expect.children:
        place = f"{part.resource}[{part.key}]" if part.key else part.resource
        if (part.resource, part.key) in children:
            yield from _unlike(part.object, children[part.resource, part.key], place)
        else:
            yield f"{place}: expected, found none; made: {', '.join(name for name, _ in children) or 'nothing'}"
    for name in expect.absent:
        if any(child.resource == name for child in rendered.children):
            yield f"{name}: expected none, found one"
    yield from _of_resources(expect, rendered)
    for place, wanted, actual in (
        ("status", expect.status, rendered.status),
        ("connection", expect.connection, rendered.connection),
    ):
        if wanted is not None and wanted != actual:
            yield f"{place}: expected {_shown(wanted)}, found {_shown(actual)}"


def _of_resources(expect: Expectation, rendered: Rendered) -> Iterator[str]:
    """Yield how the resources that wait, and those that are ready, differ from those that were expected."""
    waiting = sorted(pending.resource for pending in rendered.waiting)
    for place, resources, actual_resources in (
        ("waiting", expect.waiting, waiting),
        ("ready", expect.ready, _ready_resources(rendered)),
    ):
        if resources is not None:
            yield from _unlike(sorted(resources), actual_resources, place)


def _ready_resources(rendered: Rendered) -> list[str]:
    """Return the resources of which all children are ready, sorted."""
    unready = {child.resource for child in rendered.children if not child.ready}
    return sorted({child.resource for child in rendered.children} - unready)


def _of_golden(path: Path, text: str, update: bool) -> Iterator[str]:  # noqa: FBT001 - passed on
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        yield f"{path} does not exist; `fairlead test --update` writes it"
        return
    before, after = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            yield f"{path}:{number}: expected {old.strip()!r}, found {new.strip()!r}"
            return
    if len(before) != len(after):
        yield f"{path}:{min(len(before), len(after)) + 1}: expected {len(before)} lines, found {len(after)}"


def _unlike(wanted: Any, actual: Any, place: str) -> Iterator[str]:
    """Yield where `found` lacks a part of `wanted`: maps may hold more, lists and all else are equal."""
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        for name, item in wanted.items():
            if name in actual:
                yield from _unlike(item, actual[name], f"{place}.{name}")
            elif item is not None:
                yield f"{place}.{name}: expected {_shown(item)}, found nothing"
    elif wanted != actual:
        yield f"{place}: expected {_shown(wanted)}, found {_shown(actual)}"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:_SHOWN_CHARACTERS]
