"""Which files of tests have a control plane of their own, and why; all others share that of tests/support/shared.py.

Of the latter those of tests/system find it as it was at first, but for those that go on with the processes at work.
"""

from __future__ import annotations

from typing import Final

OWN_PLANES: Final = {
    "tests/deploy/test_installed.py": "the chart is installed where nothing of ours is, and nobody bound a right",
}
AT_WORK: Final = frozenset(
    f"tests/system/test_{name}.py"
    for name in (
        "applyset",
        "bad_configurations",
        "bad_inputs",
        "claim_namespaces",
        "edits",
        "endings",
        "import",
        "kubectl",
        "recovery",
        "teardown",
        "upgrades",
    )
)
"""Files of tests/system that go on with composer and provider as they are at work, beside what others left."""
