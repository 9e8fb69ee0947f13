"""Time and chance of the product come from two modules, so that a run can be repeated."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.architecture import tree

SEAM = {"runtime.clock", "runtime.randomness"}
# What has to do with real processes: those that render.
EXEMPT = {
    ("composer.workers.pool", "time.clock_gettime"),
    ("composer.workers.pool", "asyncio.to_thread"),
    ("composer.workers.processes", "asyncio.to_thread"),
}
MODULES = {"random", "secrets", "uuid", "time"}
CALLS = {"now", "utcnow", "today"}
LOOPS = {"loop", "get_running_loop", "get_event_loop"}
THREADS = {"ThreadPoolExecutor"}


def sources(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield what the nodes of a module read of time and chance by themselves."""
    own = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names if alias.name in MODULES
    }
    for node in nodes:
        match node:
            case ast.ImportFrom(module=module, level=0) if module in MODULES:
                yield f"from {module}"
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in own:
                yield f"{name}.{attribute}"
            case ast.Attribute(value=ast.Name(id="datetime" | "date" as name), attr=attribute) if attribute in CALLS:
                yield f"{name}.{attribute}"
            case ast.Attribute(value=ast.Name(id=name), attr="time") if name in LOOPS:
                yield f"{name}.time"
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr=name)), attr="time") if name in LOOPS:
                yield f"{name}.time"
            case ast.Attribute(value=ast.Name(id="asyncio"), attr="to_thread"):
                yield "asyncio.to_thread"
            case ast.Name(id=name) if name in THREADS:
                yield name
            case _:
                pass


def test_time_and_chance_come_from_two_modules() -> None:
    read = {
        (tree.module_name(path), source)
        for path in tree.modules("runtime", "composer", "providers", "apis")
        if tree.module_name(path) not in SEAM
        for source in sources(tree.nodes(path))
    }

    assert read == EXEMPT
