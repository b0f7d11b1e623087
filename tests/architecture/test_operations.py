"""docs/operations.md lists the faults that are tested, and each has its tests."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.sources import source

ROOT = Path(__file__).parents[2]
TABLE = "| fault | you see | what happens |"
FAULTS: Mapping[str, str] = {
    "Postgres is gone, frozen, starting, a standby, or has no connection left": (
        "test_while_postgres_cannot_be_used_cycles_wait_and_none_fails"
    ),
    (
        "Postgres takes no write: a failover (25006), a full disk (53100), an absent "
        "synchronous standby, a read-only file system, a quota, no transaction id left"
    ): (
        "test_while_postgres_cannot_be_used_cycles_wait_and_none_fails "
        "test_a_committer_leaves_a_connection_that_can_only_read_and_commits_by_another "
        "test_readiness_answers_while_a_server_is_frozen_or_read_only_and_agrees_with_doctor "
        "test_a_full_disk_of_postgres_is_seen_before_anything_is_refused "
        "test_an_error_of_postgres_own_storage_is_an_outage_whatever_its_state"
    ),
    "the desk starts during any of these": (
        "test_a_desk_that_begins_meanwhile_waits_or_says_why_not"
    ),
    "Postgres' roles or tables are not in order": (
        "test_a_result_is_not_answered_while_the_database_is_not_in_order"
    ),
    "the primary is lost and its standby promoted": (
        "test_the_leading_node_and_the_primary_go_and_nothing_is_lost_or_paid_twice"
    ),
    "the host of the primary or of a NATS node vanishes": (
        "test_every_connection_breaks_when_its_server_falls_silent "
        "test_a_server_whose_host_falls_silent_is_left_without_a_goodbye"
    ),
    "a standby that was behind is promoted": ("test_commits_that_postgres_has_lost_are_said_once"),
    "an outage longer than limits and leases": (
        "test_limits_stand_during_an_outage_and_are_as_long_after_it_as_before "
        "test_a_lease_is_live_as_long_after_an_outage_as_it_was_before"
    ),
    "NATS is killed, its store wiped, or frozen": (
        "test_cycles_under_every_fault_end_as_without_faults "
        "test_readiness_answers_while_a_server_is_frozen_or_read_only_and_agrees_with_doctor "
        "test_the_clock_stands_while_no_result_can_come"
    ),
    "NATS' disk is full": (
        "test_a_full_disk_of_nats_is_seen_and_the_desk_goes_on_once_there_is_room "
        "test_real_cycles_under_every_fault_complete_and_the_books_hold"
    ),
    "NATS refuses a service's key, or ends its connection": (
        "test_while_nats_refuses_a_key_the_desk_says_so_and_goes_on_once_it_does_not "
        "test_a_connection_that_the_server_ends_for_its_own_reasons_comes_back"
    ),
    "Postgres finds its files damaged": (
        "test_damaged_files_of_postgres_are_named_with_the_backup_to_restore "
        "test_damaged_data_is_told_with_what_to_do_and_waited_for"
    ),
    "an embedded server cannot start again": (
        "test_a_postgres_that_cannot_start_is_tried_again_until_it_can "
        "test_a_child_that_was_ready_and_cannot_start_is_tried_for_as_long_as_it_takes"
    ),
    "a market source is silent": (
        "test_no_answer_ends_nothing_so_the_command_is_sent_again "
        "test_where_no_source_is_heard_of_the_digest_waits_and_nothing_is_on_record "
        "test_a_silent_source_is_waited_for_unless_it_answers_for_some"
    ),
    "a service is killed or frozen": (
        "test_real_cycles_under_every_fault_complete_and_the_books_hold"
    ),
    "a clock jumps by an hour or a day": (
        "test_limits_and_leases_are_as_long_after_a_jump_of_the_clock_as_before "
        "test_a_clock_that_jumps_a_day_ahead_and_back_fires_each_slot_once_and_says_so "
        "test_a_machine_whose_clock_is_ahead_of_yahoo_gets_no_prices"
    ),
    "a handler has a defect": ("test_a_defect_of_a_plain_command_is_a_failure_after_its_tries"),
}
"""The tests of each fault in the page's table."""


def faults() -> list[str]:
    """The faults of the page's table, in its order."""
    lines = (ROOT / "docs/operations.md").read_text().splitlines()
    found = []
    for line in lines[lines.index(TABLE) + 2 :]:
        if not line.startswith("|"):
            break
        found.append(line.split("|")[1].strip())
    return found


@pytest.mark.slow
def test_each_fault_has_a_test_that_there_is() -> None:
    paths = (ROOT / "tests").rglob("test_*.py")
    there = {name for path in paths for name in source(path).given}
    assert faults() == [*FAULTS]
    assert {test for tests in FAULTS.values() for test in tests.split()} - there == set()
