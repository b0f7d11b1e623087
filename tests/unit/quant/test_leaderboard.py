"""The leaderboard's numbers, by examples calculated by hand."""

from datetime import date
from decimal import Decimal

import pytest

from libs.quant.leaderboard import (
    Decision,
    Traded,
    alongside,
    buy_and_hold,
    common,
    curve,
    hits,
    max_drawdown_pct,
    return_pct,
    steered,
)
from libs.quant.returns import AccountWorth

D = Decimal
MON, TUE, WED, THU, FRI = (date(2012, 7, day) for day in (2, 3, 4, 5, 6))


def closes(*values: str, first: int = 2) -> dict[date, Decimal]:
    return {date(2012, 7, first + place): D(value) for place, value in enumerate(values)}


def worth(*values: str, first: int = 2, paid_in: tuple[str, ...] = ()) -> dict[date, AccountWorth]:
    flows = [D(each) for each in paid_in] or [D(0)] * len(values)
    equity = closes(*values, first=first)
    return {
        day: AccountWorth(value, paid)
        for (day, value), paid in zip(equity.items(), flows, strict=True)
    }


def decided(*turns: tuple[date, str, str]) -> list[Decision]:
    return [Decision(*turn) for turn in turns]


def test_an_account_of_ones_own_gives_its_returns_from_the_first_decision_on() -> None:
    equity = {"a": worth("100", "110", "99", "99")}

    found = steered(decided((TUE, "p", "a")), equity)

    # Tuesday's close is what Tuesday's decision began with: the 10% before it are not its own.
    assert found == {"p": {WED: D("-0.1"), THU: D(0)}}


def test_a_turn_is_paid_from_the_session_after_it_to_the_session_of_the_next() -> None:
    """p has main on Monday and Wednesday, q on Tuesday; else each has an account of its own."""
    equity = {
        "main": worth("100", "110", "121", "108.9"),
        "of-p": worth("50", "50", "60", "30"),
        "of-q": worth("80", "88", "88", "66"),
    }
    days = decided(
        (MON, "p", "main"),
        (MON, "q", "of-q"),
        (TUE, "p", "of-p"),
        (TUE, "q", "main"),
        (WED, "p", "main"),
        (WED, "q", "of-q"),
    )

    found = steered(days, equity)

    assert found["p"] == {TUE: D("0.1"), WED: D("0.2"), THU: D("-0.1")}
    assert found["q"] == {TUE: D("0.1"), WED: D("0.1"), THU: D("-0.25")}


def test_who_missed_a_day_has_no_return_of_an_account_that_another_has_taken_over() -> None:
    equity = {"main": worth("100", "110", "121"), "of-q": worth("80", "88", "88")}
    days = decided((MON, "p", "main"), (MON, "q", "of-q"), (TUE, "q", "main"))

    found = steered(days, equity)

    assert found == {"p": {TUE: D("0.1")}, "q": {TUE: D("0.1"), WED: D("0.1")}}


def test_the_last_of_several_decisions_of_a_session_counts() -> None:
    equity = {"a": worth("100", "110"), "b": worth("100", "90")}

    assert steered(decided((MON, "p", "a"), (MON, "p", "b")), equity) == {"p": {TUE: D("-0.1")}}
    assert steered(decided((MON, "p", "b"), (MON, "p", "a")), equity) == {"p": {TUE: D("0.1")}}


def test_a_session_that_could_not_be_valued_is_part_of_the_next_return() -> None:
    equity = {
        "a": {MON: AccountWorth(D(100)), THU: AccountWorth(D(120)), FRI: AccountWorth(D(120))}
    }

    assert steered(decided((MON, "p", "a")), equity) == {"p": {THU: D("0.2"), FRI: D(0)}}
    # Not where another had the account for a part of that time.
    shared = decided((MON, "q", "a"), (WED, "p", "a"))
    assert steered(shared, equity) == {"q": {}, "p": {FRI: D(0)}}


def test_what_is_paid_in_and_taken_out_is_no_return_of_a_pipeline() -> None:
    """100 and 900 paid in before Tuesday's open become 1,100: 10%. Half of it is taken out before
    Wednesday's, and the other half stays as it is."""
    account = worth("100", "1100", "550", paid_in=("100", "1000", "450"))

    found = steered(decided((MON, "p", "a")), {"a": account})

    assert found == {"p": {TUE: D("0.1"), WED: D(0)}}


def test_without_a_decision_or_a_session_after_it_there_is_no_return() -> None:
    assert steered([], {"a": worth("100", "110")}) == {}
    assert steered(decided((TUE, "p", "a")), {"a": worth("100", "110")}) == {"p": {}}


def test_holding_is_equal_parts_left_alone() -> None:
    """1 each of 10 and 20: at 11 and 18 worth (1.1 + 0.9) / 2 = 1; at 12 and 24, 1.2."""
    prices = {"A": closes("10", "11", "12"), "B": closes("20", "18", "24")}

    found = buy_and_hold(prices, MON, [TUE, WED])

    assert found == {TUE: D(0), WED: D("0.2")}


def test_holding_leaves_out_what_had_no_price_and_carries_on_what_paused() -> None:
    prices = {"A": {MON: D(10), WED: D(15)}, "NEW": {TUE: D(5), WED: D(50)}}

    assert buy_and_hold(prices, MON, [TUE, WED]) == {TUE: D(0), WED: D("0.5")}
    assert buy_and_hold({"NEW": {TUE: D(5)}}, MON, [TUE]) == {}


def test_only_sessions_that_all_have_are_compared() -> None:
    one, two = {TUE: D(0), WED: D(0), THU: D(0)}, {THU: D(0), WED: D(0), FRI: D(0)}

    assert common([one, two]) == [WED, THU]
    assert common([one, {}]) == []
    assert common([]) == []


def test_returns_are_chained_over_the_chosen_sessions() -> None:
    returns = {TUE: D("0.1"), WED: D("-0.5"), THU: D("0.2")}

    assert curve(returns, [TUE, WED, THU]) == [D(1), D("1.1"), D("0.55"), D("0.66")]
    assert return_pct(curve(returns, [TUE, WED, THU])) == D("-34.0000")
    assert return_pct(curve(returns, [TUE, THU])) == D("32.0000")
    assert return_pct(curve(returns, [])) == 0


@pytest.mark.parametrize(
    ("worth", "pct"),
    [
        (["1", "1.1", "0.55", "0.66"], "50.0000"),  # from 1.1 to 0.55
        (["1", "0.9", "1.2", "1.14"], "10.0000"),  # from 1 to 0.9, and 5% later
        (["1", "1.1", "1.2"], "0"),
        (["1"], "0"),
        (["3", "2", "1", "4"], "66.6667"),
    ],
)
def test_the_drawdown_is_the_deepest_fall_from_the_highest_before(
    worth: list[str], pct: str
) -> None:
    assert max_drawdown_pct([D(value) for value in worth]) == D(pct)


def test_a_hit_went_the_way_it_was_picked_for() -> None:
    bought = [Traded(D("1.2")), Traded(D("-0.1")), Traded(D(0))]
    sold = [Traded(D("-3"), sold=True), Traded(D("0.5"), sold=True), Traded(D(0), sold=True)]

    assert hits(bought) == 1
    assert hits(sold) == 1
    assert hits([]) == 0


def test_who_shares_less_than_half_of_the_longests_sessions_is_not_compared() -> None:
    long = dict.fromkeys((MON, TUE, WED, THU), D(0))
    half, newcomer = dict.fromkeys((WED, THU, FRI), D(0)), {THU: D(0)}

    assert alongside({"a": long, "b": half, "c": newcomer}) == {"a", "b"}
    assert alongside({"c": newcomer}) == {"c"}
    assert alongside({}) == frozenset()
