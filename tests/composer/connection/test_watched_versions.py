"""A connection Secret whose versions a watch has: verified again without a request while none of them moved."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta

import pytest

from apis.connection import SecretRef
from fairlead.simulation.virtual_time import VirtualLoop
from runtime.objects import CONFIG_MAPS, SECRETS, Key
from tests.composer.connection.world import SECRET, TEN_MINUTES, World, encoded, published

LOOP = VirtualLoop

SOURCE = Key("shop", "app-login")


def _edited(at: World) -> None:
    stored = at.kube.objects[SECRETS, SECRET]
    kept = {name: stored["metadata"][name] for name in ("labels", "ownerReferences")}
    data = encoded(password="by hand")
    at.kube.put(SECRETS, SECRET.name, namespace="shop", type=stored["type"], data=data, metadata=kept)


@pytest.mark.parametrize(
    ("meanwhile", "reads", "is_changed"),
    [
        pytest.param(lambda _at: None, 0, False, id="nothing"),
        pytest.param(lambda at: at.login("second"), 2, True, id="another password"),
        pytest.param(_edited, 2, True, id="edited"),
        pytest.param(lambda at: at.kube.objects.pop((SECRETS, SECRET)), 2, True, id="deleted"),
    ],
)
async def test_a_secret_whose_versions_a_watch_has_is_read_again_only_where_one_moved(
    meanwhile: Callable[[World], None], reads: int, *, is_changed: bool
) -> None:
    at = World(are_versions_watched=True)
    await at.publish(published(), known=False)
    meanwhile(at)
    at.kube.reads.clear()
    at.now += TEN_MINUTES
    publications = [await at.publish(published())]
    before = len(at.kube.reads)
    at.now += TEN_MINUTES
    publications.append(await at.publish(published()))
    assert len(at.kube.reads) == before, "what was verified is read again"
    assert at.stored() == base64.b64decode(at.kube.objects[SECRETS, SOURCE]["data"]["password"]).decode()

    assert (before, publications[0].changed, publications[1].again) == (reads, is_changed, timedelta(minutes=10))


async def test_what_is_made_of_a_config_map_is_read_within_a_resync() -> None:
    at = World(are_versions_watched=True)
    at.kube.put(CONFIG_MAPS, "ca", namespace="shop", data={"ca.crt": "PEM"})
    want = published(certificates=SecretRef("ca", "ca.crt", kind="ConfigMap"))
    await at.publish(want, known=False)
    at.kube.reads.clear()
    at.now += TEN_MINUTES
    await at.publish(want)

    assert len(at.kube.reads) == 3
