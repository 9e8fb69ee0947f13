"""A name that somebody else wrote is one part of a request's path, or no request is made."""

from __future__ import annotations

import pytest

from runtime.errors import InvalidName
from runtime.objects import CONFIG_MAPS, SECRETS, Key, Resource

# By their number in docs/dev/security-corpus.md.
_FORMS = {
    219: "app-connection?x",
    220: "app-connection#x",
    221: "../alice/app-connection",
    222: "..",
    223: ".",
    224: "a/b",
    225: "%2e%2e/app-connection",
    226: "..%2falice%2fapp-connection",
    227: "..\\alice\\app-connection",
    228: "a\r\nHost: evil.example",
}


@pytest.mark.parametrize("resource", [SECRETS, CONFIG_MAPS], ids=lambda resource: resource.kind)
@pytest.mark.parametrize("number", _FORMS)
def test_a_name_that_is_more_than_one_part_of_a_path_makes_none(resource: Resource, number: int) -> None:
    for key in (Key("mallory", _FORMS[number]), Key(_FORMS[number], "app-connection")):
        with pytest.raises(InvalidName, match="is no name of a"):
            resource.path(key)

    assert resource.path(Key("mallory", "app-connection")).endswith(f"/mallory/{resource.plural}/app-connection")
