"""Time-weighted returns, by examples calculated by hand."""

from datetime import date
from decimal import Decimal

import pytest

from libs.quant.returns import (
    AccountWorth,
    at_exposure,
    drawdowns,
    growth,
    monthly,
    period_return,
    yearly,
)

D = Decimal
MON, TUE, WED, THU = (date(2012, 7, day) for day in (2, 3, 4, 5))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            AccountWorth(D(100), D(100)), AccountWorth(D(110), D(100)), D("0.1"), id="no flow"
        ),
        # 100 and 100 paid in are 200 at the open; 210 at the close is 5% more.
        pytest.param(
            AccountWorth(D(100), D(100)), AccountWorth(D(210), D(200)), D("0.05"), id="deposit"
        ),
        # 100 less 50 taken out are 50 at the open; 40 at the close is 20% less.
        pytest.param(
            AccountWorth(D(100), D(100)), AccountWorth(D(40), D(50)), D("-0.2"), id="withdrawal"
        ),
        pytest.param(
            AccountWorth(D(100), D(100)), AccountWorth(D(0), D(0)), D(0), id="all taken out"
        ),
        pytest.param(
            AccountWorth(D(0), D(0)), AccountWorth(D(55), D(50)), D("0.1"), id="paid in again"
        ),
    ],
)
def test_what_is_paid_in_or_taken_out_is_neither_gain_nor_loss(
    before: AccountWorth, after: AccountWorth, expected: Decimal
) -> None:
    assert period_return(before, after) == expected


def test_the_returns_of_sessions_are_linked_whatever_the_flows() -> None:
    """+10%, then 1,000 is paid in and the session brings -10%, then +20% after 500 is taken out:
    1.1 x 0.9 x 1.2 = 1.188, though the money itself lost."""
    worth = {
        MON: AccountWorth(D(1_000), D(1_000)),
        TUE: AccountWorth(D(1_100), D(1_000)),
        WED: AccountWorth(D(1_890), D(2_000)),
        THU: AccountWorth(D(1_668), D(1_500)),
    }

    assert growth(worth) == {MON: 1, TUE: D("1.1"), WED: D("0.99"), THU: D("1.188")}


def test_a_drawdown_is_the_distance_from_the_highest_close_before() -> None:
    grown = {TUE: D("1.25"), MON: D(1), WED: D(1), THU: D("1.5")}
    assert drawdowns(grown) == {MON: 0, TUE: 0, WED: D("0.2"), THU: 0}
    assert drawdowns({}) == {}


def test_an_account_without_a_close_has_no_growth() -> None:
    assert growth({}) == {}


def test_a_years_return_is_that_of_its_closes_from_the_last_one_of_the_year_before() -> None:
    grown = {date(2012, 11, 30): D(1), date(2012, 12, 31): D("1.21"), date(2013, 1, 2): D("1.331")}
    assert yearly(grown) == {"2012": D("0.21"), "2013": D("0.1")}
    assert list(monthly(grown).values()) == [0, D("0.21"), D("0.1")]


def test_at_exposure_each_session_counts_as_much_as_was_held_before_it() -> None:
    days = [date(2012, 6, day) for day in (26, 27, 28, 29)]
    line = dict(zip(days, map(D, ("1", "1.1", "0.99", "1.98")), strict=True))
    part = dict(zip(days, map(D, ("0.5", "0", "1", "0.3")), strict=True))
    found = at_exposure(line, part)
    # +10 % by half, -10 % by nothing, +100 % by all.
    assert [found[day] for day in days] == [1, D("1.05"), D("1.05"), D("2.10")]
    assert at_exposure({}, part) == {}
    assert list(at_exposure(line, {days[0]: D(1)})) == days[:1]
