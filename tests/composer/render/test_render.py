"""How resources wait, repeat and disappear; what a render is refused for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from composer.render.errors import CompositionError
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from runtime.objects import Object
from tests.composer.factories import TEMPLATE, claim, composition_of, resource_of, template_of

IDENTITY = "claim-uid@shop/orders"
READY = [{"type": "Ready", "status": "True"}]


def _render(composition: dict[str, Any], *observed: Observed, **spec: Any) -> Rendered:
    return render(Request("c", composition, claim(**spec), IDENTITY, observed=observed))


def _observed(name: str, status: Object | None = None, key: str = "") -> Observed:
    obj = {
        **TEMPLATE,
        "metadata": {"name": name, "generation": 1},
        "status": {"observedGeneration": 1, **(status or {})},
    }
    return Observed(name, key, obj)


def _made(rendered: Rendered) -> list[str]:
    return [child.resource for child in rendered.children]


PAIR = composition_of(
    resource_of("user", template_of(username="{{ resources.net.status.id }}")),
    resource_of("net"),
)


def test_a_resource_is_composed_when_the_status_is_there() -> None:
    waiting, rendered = _render(PAIR), _render(PAIR, _observed("net", {"id": "n1"}))

    assert _made(waiting) == ["net"]
    assert [str(held) for held in waiting.waiting] == ["resource 'user' waits for resources.net.status.id"]
    assert _made(rendered) == ["net", "user"]
    assert rendered.children[1].object["spec"]["forProvider"]["username"] == "n1"
    assert rendered.children[1].depends_on == ("net",)


def test_a_child_that_has_reported_nothing_yet_is_not_ready_unless_ready_when_says_so() -> None:
    created = msgspec.structs.replace(_observed("a"), object={**_observed("a").object, "status": {}})
    silent = msgspec.structs.replace(created, is_silent=True)
    always = composition_of(resource_of("a", readyWhen="{{ resources.a.metadata.name != '' }}"))

    assert _render(composition_of(resource_of("a")), created).children[0].ready
    assert not _render(composition_of(resource_of("a")), silent).children[0].ready
    assert _render(always, silent).children[0].ready


def test_ready_when_decides_where_it_is_set() -> None:
    composition = composition_of(resource_of("a", readyWhen="{{ resources.a.status.phase == 'Up' }}"))

    assert not _render(composition, _observed("a", {"conditions": READY})).children[0].ready
    assert not _render(composition, _observed("a", {"phase": "Down"})).children[0].ready
    assert _render(composition, _observed("a", {"phase": "Up"})).children[0].ready


def test_annotations_of_others_are_not_copied_to_children() -> None:
    tracked = claim(annotations={"argocd.argoproj.io/tracking-id": "x", "fairlead.dev/adopt": "none"})
    (child,) = render(Request("c", composition_of(resource_of("a")), tracked, IDENTITY)).children

    assert sorted(child.object["metadata"]["annotations"]) == [
        "fairlead.dev/adopt",
        "fairlead.dev/claim-name",
        "fairlead.dev/composition",
        "fairlead.dev/resource",
    ]


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [("a=legacy", False), ("b=legacy", True), ("a/x=legacy", True), ("a=", True), ("a", True)],
)
def test_a_name_in_the_cloud_of_what_is_not_composed_is_refused(text: str, *, is_refused: bool) -> None:
    request = Request(
        "c", composition_of(resource_of("a")), claim(annotations={"fairlead.dev/external-names": text}), IDENTITY
    )
    with pytest.raises(CompositionError, match="external-names") if is_refused else nullcontext():
        render(request)
    # What is there already is another matter.
    assert render(msgspec.structs.replace(request, observed=(_observed("a"),))).children


REPEATED = resource_of("a", forEach="{{ claim.spec.extensions }}")


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        pytest.param(resource_of("a", when="{{ false }}"), "EmptyResult", id="nothing composed"),
        pytest.param(resource_of("a", when="{{ 'yes' }}"), "RenderFailed", id="when that is no condition"),
        pytest.param(resource_of("a", forEach="{{ 3 }}"), "RenderFailed", id="forEach over a number"),
        pytest.param(resource_of("a", forEach="{{ ['x', 'x'] }}"), "DuplicateResource", id="the same key twice"),
        pytest.param(resource_of("a", forEach="{{ [''] }}"), "RenderFailed", id="an empty key"),
        pytest.param(REPEATED, "RenderLimit", id="more children than there may be"),
    ],
)
def test_a_render_with_a_fault_is_refused_whole(resource: dict[str, Any], reason: str) -> None:
    with pytest.raises(CompositionError) as caught:
        _render(composition_of(resource), extensions=[f"x{number}" for number in range(200)])

    assert [problem.reason for problem in caught.value.problems] == [reason]


VOLUME: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}
SETTINGS: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}


@pytest.mark.parametrize(
    ("offered", "spec", "written"),
    [
        pytest.param(["Orphan", "Delete"], {}, "Orphan", id="none is asked for"),
        pytest.param(["Orphan", "Delete"], {"deletionPolicy": "Delete"}, "Delete", id="one that is offered"),
        pytest.param(["Orphan"], {"deletionPolicy": "Delete"}, "Orphan", id="one that is not offered"),
    ],
)
def test_a_managed_child_has_the_deletion_policy_in_force(
    offered: list[str], spec: dict[str, str], written: str
) -> None:
    composition = composition_of(resource_of("a"), resource_of("settings", SETTINGS), deletionPolicies=offered)
    database, settings = (child.object for child in _render(composition, **spec).children)

    assert database["spec"]["deletionPolicy"] == written
    assert "spec" not in settings


@pytest.mark.parametrize(
    "spec", [{"deletionPolicy": "Delete"}, "{{ {'deletionPolicy': 'Delete'} }}"], ids=["plain", "computed"]
)
def test_a_template_cannot_set_the_deletion_policy(spec: Any) -> None:
    with pytest.raises(CompositionError) as refused:
        _render(composition_of(resource_of("a", {**TEMPLATE, "spec": spec})))

    (problem,) = refused.value.problems
    assert (problem.reason, problem.path) == ("TemplateForbidden", "spec.resources[0].template.spec.deletionPolicy")


def test_a_child_carries_what_is_needed_when_the_status_is_lost() -> None:
    composition = composition_of(
        resource_of("volume", VOLUME, stateful=True),
        resource_of("user", template_of(username="{{ resources.net.metadata.name }}"), dependsOn=["volume"]),
        resource_of("net", SETTINGS, readyWhen="{{ true }}"),
    )
    ready = Observed("volume", "", {**VOLUME, "metadata": {"name": "v"}, "status": {"phase": "Bound"}})
    request = Request("c", composition, claim(), IDENTITY, observed=(ready,), origins={"volume": "disk"})
    carried = {
        child.resource: {
            name.removeprefix("fairlead.dev/"): text
            for name, text in child.object["metadata"]["annotations"].items()
            if name in ("fairlead.dev/stateful", "fairlead.dev/depends-on", "fairlead.dev/resource")
        }
        for child in render(request).children
    }

    assert carried["volume"] == {"resource": "disk", "stateful": "true"}
    assert carried["net"] == {"resource": "net"}
    # By the names under which the objects were made, as these are what is found without a status.
    assert carried["user"] == {"resource": "user", "depends-on": "net,disk"}


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({"stateful_foreign": ("PersistentVolumeClaim",)}, id="its kind holds data"),
        pytest.param({"stateful_places": (("volume", "", "PersistentVolumeClaim"),)}, id="it held data once"),
    ],
)
def test_a_foreign_child_with_data_carries_our_finalizer_and_no_owner(known: dict[str, Any]) -> None:
    composition = composition_of(resource_of("volume", VOLUME))
    (plain,) = _render(composition).children
    (kept,) = render(Request("c", composition, claim(), IDENTITY, **known)).children

    assert "ownerReferences" in plain.object["metadata"]
    assert "ownerReferences" not in kept.object["metadata"]
    assert kept.object["metadata"]["finalizers"] == ["fairlead.dev/teardown"]


# All faults at once


def _faults(*resources: dict[str, Any], **spec: Any) -> list[tuple[str, str]]:
    with pytest.raises(CompositionError) as caught:
        _render(composition_of(*resources, **spec))
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_a_render_that_used_up_a_limit_goes_no_further() -> None:
    large = template_of(username="{{ 'a' * 100000000 }}")

    faults = _faults(resource_of("one", large), resource_of("two", template_of(username="{{ claim.spec.sise }}")))

    assert len(faults) == 1
