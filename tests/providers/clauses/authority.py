"""Of the endpoint's authority: a renewed one is published within a sweep, and no password changes for it."""

from __future__ import annotations

import base64
from datetime import timedelta

from tests.providers.adapter import Adapter, Property, clause

_PEM = "PEM of the next authority\n"


@clause(Property.AUTHORITY)
async def renewed_authority_is_published_within_one_sweep(cloud: Adapter) -> None:
    await cloud.create()
    before, published = _data(cloud), cloud.status()["connection"]
    cloud.renew_authority(_PEM)
    # What a sweep wakes is its next pass.
    await cloud.step()
    await cloud.pass_for(timedelta(minutes=1))

    after = _data(cloud)
    assert base64.b64decode(after["ca.crt"]).decode() == _PEM
    assert {**after, "ca.crt": ""} == {**before, "ca.crt": ""}
    assert cloud.status()["connection"]["caRef"]["hash"] != published["caRef"]["hash"]
    assert (cloud.writes(), cloud.is_ready()) == ([], True)


def _data(cloud: Adapter) -> dict[str, str]:
    return dict((cloud.secret() or {})["data"])
