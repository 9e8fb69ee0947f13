"""Shows links that lead out of docs/ as the path they name: the site has the pages alone."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any, Final

_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_more: Any) -> str:
    """Return a page's text with its links out of docs/ as text; properdocs calls this for each page."""
    depth = len(PurePosixPath(page.file.src_uri).parts) - 1

    def shown(link: re.Match[str]) -> str:
        if link[2].count("../") <= depth:
            return link[0]
        path = link[2].replace("../", "")
        return link[1] if link[1].strip("`") in path else f"{link[1]} (`{path}`)"

    return _LINK.sub(shown, markdown)
