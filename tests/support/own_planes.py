"""Which files of tests have a control plane of their own, and why; all others share that of tests/support/shared.py."""

from __future__ import annotations

from typing import Final

OWN_PLANES: Final = {
    "tests/system/test_upgrades.py": "its etcd goes back to a snapshot",
    "tests/deploy/test_installed.py": "the chart is installed where nothing of ours is, and nobody bound a right",
}
