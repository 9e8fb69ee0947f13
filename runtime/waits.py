"""Where a task waits, for whoever has to end it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

_LIBRARIES: Final = (str(Path(asyncio.__file__).parent.parent), "site-packages")


def waits_at(task: asyncio.Task[Any]) -> str:
    """Return the innermost line of our own code at which a task waits, such as `package/module.py:190 call`.

    It is a library's where none is ours, and empty when the task has ended.
    """
    awaited: Any = task.get_coro()
    place = ""
    is_ours = False
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            file = Path(frame.f_code.co_filename)
            is_library = any(part in str(file) for part in _LIBRARIES)
            if not (is_library and is_ours):
                place = f"{file.parent.name}/{file.name}:{frame.f_lineno} {frame.f_code.co_name}"
            is_ours = is_ours or not is_library
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return place
