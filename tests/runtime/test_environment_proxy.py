"""Which proxy the environment names for a URL."""

from __future__ import annotations

import pytest

from runtime.environment_proxy import proxy_of_environment

ROWS = [
    pytest.param({}, "https://api.example", "", id="no variable"),
    pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, "https://api.example", "http://proxy:3128", id="https"),
    pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, "http://api.example", "", id="of the other scheme"),
    pytest.param({"HTTP_PROXY": "http://proxy:1"}, "http://api.example", "http://proxy:1", id="http"),
    pytest.param(
        {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "api.example"}, "https://api.example:8443", "", id="excepted"
    ),
    pytest.param({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "*"}, "https://api.example", "", id="all excepted"),
    pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, "nonsense", "", id="no host"),
]


@pytest.mark.parametrize(("variables", "url", "proxy"), ROWS)
def test_a_url_has_the_proxy_of_its_scheme_unless_it_is_excepted(
    variables: dict[str, str], url: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert proxy_of_environment(url) == proxy
