import pytest, asyncio, time
from tests.apiserver.composer.test_any_kind import _served, _until
from tests.support.kinds import *
from tests.support.second_api import SecondApi
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
async def test_cm(composing, namespace):
    api, name = SecondApi(f"{namespace}.example.org"), f"{namespace}-c"
    await _served(composing, api)
    comp = api.composition(name, appliesTo={})
    comp["spec"]["resources"] = comp["spec"]["resources"][:1]
    await composing.create(COMPOSITION, comp)
    for i in range(3):
        t=time.time()
        await composing.create(api.cache, api.cache.new(namespace, f"s{i}", spec={"memoryMB": 64}))
        await _until(composing, api.cache, namespace, f"s{i}", is_ready)
        print("READY", i, time.time()-t)
