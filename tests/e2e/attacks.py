"""The corpus of attacks by one request each, as in tests/security/test_attacks.py, on Fairlead's own pods.

Run by `make e2e` after the audit of what the pods ask for: some attacks use stolen tokens.
"""

from __future__ import annotations

# ruff: noqa: F401 - pytest runs what is imported
import pytest

from tests.security.conftest import alice, mallory
from tests.security.test_attacks import (
    hostile,
    marked,
    test_a_database_in_the_administrators_name_is_another_one,
    test_a_database_is_taken_over_by_no_marks_of_the_composers,
    test_a_hostile_setting_is_refused_in_words,
    test_a_mark_of_a_claim_is_not_copied_to_its_child,
    test_a_provider_acts_in_nobody_elses_name,
    test_a_request_is_refused_but_for_what_the_page_says,
    test_a_resource_without_a_claim_is_served_and_marks_that_are_removed_come_back,
    test_a_statement_in_a_setting_gave_no_role_a_right,
    test_a_storm_of_edits_in_one_namespace_holds_up_nobody_else,
    test_a_token_gives_no_power_over_the_cluster,
    test_an_identity_that_a_tenant_puts_into_a_status_is_dropped,
    town,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
