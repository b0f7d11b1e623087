"""A time with a Z that is not always UTC: the later reading counts, unless UTC is proven."""

from datetime import UTC, date, datetime

from libs.market.edgar.accepted import FilingTime, accepted_at

# 16:26 in New York in January, said in UTC; dated that same day, so New York's 21:26 it cannot be.
IN_UTC = FilingTime("2010-01-25T21:26:00.000Z", date(2010, 1, 25))
# At 03:30 in New York EDGAR takes nothing: this is New York's own clock with a Z.
IN_NEW_YORK = FilingTime("2025-04-30T07:30:32.000Z", date(2025, 4, 30))
# 12:21 or 16:21 in New York: both keep the rules.
EITHER = FilingTime("2025-05-01T16:21:59.000Z", date(2025, 5, 1))


def test_a_record_that_proves_utc_is_read_as_utc() -> None:
    first, second = accepted_at([IN_UTC, EITHER])
    assert first == datetime(2010, 1, 25, 21, 26, tzinfo=UTC)
    assert second == datetime(2025, 5, 1, 16, 21, 59, tzinfo=UTC)


def test_a_record_that_proves_new_york_is_read_as_new_york() -> None:
    first, second = accepted_at([IN_NEW_YORK, EITHER])
    assert first == datetime(2025, 4, 30, 11, 30, 32, tzinfo=UTC)
    assert second == datetime(2025, 5, 1, 20, 21, 59, tzinfo=UTC)


def test_a_record_that_proves_nothing_is_read_as_the_later_of_the_two() -> None:
    assert accepted_at([EITHER]) == (datetime(2025, 5, 1, 20, 21, 59, tzinfo=UTC),)


def test_a_record_of_both_sorts_is_read_as_the_later_of_the_two() -> None:
    read = accepted_at([IN_UTC, IN_NEW_YORK, EITHER])
    assert read[2] == datetime(2025, 5, 1, 20, 21, 59, tzinfo=UTC)
    assert read[0] == datetime(2010, 1, 26, 2, 26, tzinfo=UTC)


def test_in_a_record_in_utc_a_time_that_breaks_the_rules_is_read_as_the_later() -> None:
    odd = FilingTime("2010-01-26T05:00:00.000Z", date(2010, 1, 26))  # midnight in New York
    assert accepted_at([IN_UTC, odd])[1] == datetime(2010, 1, 26, 10, 0, tzinfo=UTC)


def test_what_came_after_half_past_five_and_is_dated_the_next_day_is_evidence_too() -> None:
    # 14:06 in New York would have been dated the same day: it is New York's 19:06.
    late = FilingTime("2025-12-23T19:06:26.000Z", date(2025, 12, 24))
    assert accepted_at([late]) == (datetime(2025, 12, 24, 0, 6, 26, tzinfo=UTC),)


def test_a_time_that_cannot_be_read_is_none() -> None:
    assert accepted_at([FilingTime("", date(2010, 1, 25)), IN_UTC]) == (
        None,
        datetime(2010, 1, 25, 21, 26, tzinfo=UTC),
    )
