"""Stories of the demo: what a story types, and that it ends where a step was not seen. Decided without a platform."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from devcloud.clouds import Cloud, all_clouds
from devcloud.errors import DevcloudError
from devcloud.stories import LABELS, Stage, Story, child_of, claim_document, one_claim, until_unready
from runtime.objects import Object

Answer = TypeVar("Answer")
READY = {"type": "Ready", "status": "True", "reason": "Available", "observedGeneration": 1}


@dataclass
class Typed:
    """A stage on which each probe is tried once; it keeps what was typed."""

    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    rows: str = "3"
    namespace: str = "nowhere"
    typed: list[str] = field(default_factory=list)

    def chapter(self, title: str) -> None:
        self.typed.append(f"# {title}")

    def say(self, text: str) -> None:
        self.typed.append(text)

    def show(self, text: str, *, prefix: str = "", style: str = "") -> None:
        del prefix, style
        self.typed.append(text)

    async def kubectl(self, *arguments: str, document: str | None = None) -> str:
        named = [line.strip() for line in (document or "").splitlines() if line.startswith(("kind:", "  name:"))]
        self.typed.append(" ".join((*arguments, *named)))
        return ""

    async def prepare(self) -> None:
        self.typed.append(f"prepare {self.namespace}")

    async def quietly(self, *arguments: str) -> str:
        del arguments
        return ""

    async def find(self, kind: str, name: str) -> Object | None:
        return self.objects.get((kind, name))

    async def psql(self, claim: str, statement: str) -> str:
        self.typed.append(f"psql {claim}: {statement}")
        return f" {self.rows}\n"

    async def try_psql(self, claim: str, statement: str) -> tuple[str, str, int]:
        return await self.psql(claim, statement), "", 0

    async def trace(self, claim: str) -> None:
        self.typed.append(f"trace {claim}")

    async def until(
        self, goal: str, probe: Callable[[], Awaitable[Answer | None]], *, claim: str, limit_s: float = 60.0
    ) -> Answer:
        answer = await probe()
        if not answer:
            raise DevcloudError(f"not seen within {limit_s:g} s: {goal} of {claim}")
        return answer


def _claim(*conditions: dict[str, Any], **status: Any) -> Object:
    return {"metadata": {"name": "orders", "generation": 1}, "status": {"conditions": list(conditions), **status}}


async def _play(stage: Stage, folder: Path, octet: int) -> None:
    del stage, folder, octet


STORY = Story(namespace="demo-gcp", labels={"cloud": "gcp"}, play=_play)
TITLE = "A claim becomes an instance"


async def test_a_claim_is_shown_from_its_namespace_to_its_rows() -> None:
    stage = Typed({("postgresqlinstance", "orders"): _claim(READY)})

    await one_claim(stage, STORY, title=TITLE, resources="sqlinstances")

    assert stage.typed == [
        f"# {TITLE}",
        "apply --filename=- kind: Namespace name: demo-gcp",
        "prepare demo-gcp",
        "apply --filename=- kind: PostgreSQLInstance name: orders",
        "trace orders",
        "get sqlinstances --namespace=demo-gcp",
        "# psql opens the database with the Secret, TLS verified",
        "psql orders: CREATE TABLE invoice (id int); INSERT INTO invoice VALUES (1), (2), (3)",
        "psql orders: SELECT count(*) FROM invoice",
    ]


@pytest.mark.parametrize(
    ("conditions", "rows", "sentence"),
    [
        pytest.param((), "3", "orders is Ready of orders", id="a claim without a condition"),
        pytest.param(({**READY, "status": "False"},), "3", "orders is Ready", id="a claim that is not Ready"),
        pytest.param(({**READY, "observedGeneration": 0},), "3", "orders is Ready", id="one that was, before an edit"),
        pytest.param((READY,), "2", "psql should have counted 3 rows, said: 2", id="rows that are lost"),
    ],
)
async def test_a_story_ends_where_a_step_is_not_seen(
    conditions: tuple[dict[str, Any], ...], rows: str, sentence: str
) -> None:
    stage = Typed({("postgresqlinstance", "orders"): _claim(*conditions)}, rows=rows)

    with pytest.raises(DevcloudError, match=sentence):
        await one_claim(stage, STORY, title=TITLE, resources="sqlinstances")


async def test_a_claim_that_nobody_can_use_is_awaited_with_its_reason() -> None:
    lost = {**READY, "status": "False", "reason": "DatabaseLost"}
    stalled = {**READY, "type": "Stalled", "reason": "DatabaseLost"}
    claim = ("postgresqlinstance", "orders")

    await until_unready(Typed({claim: _claim(lost)}), "orders", "DatabaseLost")
    await until_unready(Typed({claim: _claim(lost, stalled)}), "orders", "DatabaseLost", stalled=True)
    for stage, reason, is_stalled in (
        (Typed({claim: _claim(lost)}), "DatabaseLost", True),
        (Typed({claim: _claim(lost, stalled)}), "CompositionNotFound", False),
        (Typed(), "DatabaseLost", False),
    ):
        with pytest.raises(DevcloudError, match=f"orders says {reason}"):
            await until_unready(stage, "orders", reason, stalled=is_stalled)


async def test_a_child_is_of_the_claim_and_of_the_kind() -> None:
    child = {"metadata": {"name": "orders-db"}}
    claim = _claim(READY, inventory=[{"name": "orders-group"}, {"name": "orders-db"}])
    stage = Typed({("postgresqlinstance", "orders"): claim, ("sqlinstance", "orders-db"): child})

    assert await child_of(stage, "orders", "sqlinstance") == child
    with pytest.raises(DevcloudError, match="orders has no postgresdatabase; `fairlead trace orders -n nowhere`"):
        await child_of(stage, "orders", "postgresdatabase")


def test_a_namespace_carries_the_labels_of_the_demo_and_of_its_cloud() -> None:
    document = STORY.namespace_document()

    for name, value in {**LABELS, "cloud": "gcp"}.items():
        assert f'    {name}: "{value}"' in document
    assert "cloud" not in replace(STORY, labels={}).namespace_document()


def test_a_claim_names_a_composition_where_it_is_to() -> None:
    assert "compositionRef" not in claim_document("shop", "orders")
    assert claim_document("shop", "orders", composition="mine").endswith("  compositionRef:\n    name: mine\n")


@pytest.mark.parametrize("cloud", all_clouds(), ids=lambda cloud: cloud.name)
def test_no_two_clouds_share_a_namespace(cloud: Cloud) -> None:
    others = {other.story.namespace for other in all_clouds() if other is not cloud}

    assert cloud.story.namespace.startswith("demo")
    assert cloud.story.namespace not in others
    assert sum(other.is_default for other in all_clouds()) == 1
