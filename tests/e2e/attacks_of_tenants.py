"""What a tenant cannot do by asking the API server, as in tests/security/test_tenants.py, on Fairlead's own pods.

Run by `make e2e` after the audit of what the pods ask for.
"""

from __future__ import annotations

# ruff: noqa: F401 - pytest runs what is imported
import pytest

from tests.security.conftest import alice, mallory
from tests.security.test_tenants import (
    forger,
    test_a_claim_neither_publishes_into_nor_deletes_a_secret_of_another,
    test_a_tenant_forges_no_mark_of_a_claim,
    test_a_tenant_reads_nothing_of_others,
    thefts,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
