"""What a refused patch is: a conflict, which is tried again at once, or a content that is refused each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import ApiError, Invalid, WriteConflict
from runtime.objects import CONFIG_MAPS
from runtime.preconditions import patch_tests
from tests.runtime.test_kube_client import KEY, READ, answering, client, server


@pytest.mark.parametrize(
    ("details", "error"),
    [(b"{}", WriteConflict), (b'{"causes":[{"field":"data"}]}', Invalid)],
    ids=["of a test", "of a value"],
)
async def test_a_patch_that_is_refused_for_its_content_is_no_conflict(
    tmp_path: Path, details: bytes, error: type[ApiError]
) -> None:
    status = b'{"reason":"Invalid","message":"no","details":%b}' % details

    async with server(answering(status, "422 Unprocessable Entity")) as port, client(tmp_path, port) as kube:
        with pytest.raises(error):
            await kube.json_patch(CONFIG_MAPS, KEY, patch_tests(READ), manager="m")
